"""A model of the texts: which label a text has, judged by its words alone; free, and known before anything is asked.

It is a ridge regression of the labels on character n-grams. Left-out predictions of all gold rows follow from a single
fit, so that what it says about a gold row never depends on that row's own label.
"""

import base64
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Array, Codes, Floats, Integers
from pcs_annotator.core.ngrams import COLUMNS, count_ngrams, normalised, rarity_of, text_key, weigh, weigh_with_lengths
from pcs_annotator.core.votes import positions_of
from pcs_annotator.judging.score import log_softmax
from pcs_annotator.judging.solver import HARDLY_ANY, fit_softmax

LEAST_GOLD = 50  # with fewer gold rows, what it says is noise more often than not
MOST_GOLD = 3_000  # more gold rows are sampled: the fit takes their number to the power of three
ROWS_TO_CHOOSE = 500
RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)
PRIOR_ROWS = 0.5
STEEPEST = 60.0
LEAST_PROBABILITY = 1e-4
WORDS_SHOWN = 8
LONGEST_WORD = 20
PUNCTUATION = ".,;:!?…\"'()[]{}«»“”„‘’-–—*#/"
# a word without the punctuation around it
WORD = re.compile(rf"[^\s{re.escape(PUNCTUATION)}](?:\S*[^\s{re.escape(PUNCTUATION)}])?")
LEAST_SAID = 0.1  # a word that says less changes the odds of a label by less than a tenth
READ_AT_A_TIME = 2_000  # the n-grams of more texts take much memory
REMEMBERED = 8


class TellingWord(NamedTuple):
    """A word of a text that speaks for a label, or against it."""

    start: int
    end: int
    contribution: float  # to the logarithm of the label's odds; negative if it speaks against


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextModel:
    """What was learned about texts."""

    labels: Sequence[str]
    weights: Floats  # what an n-gram says about each label, `[column, label]`
    offsets: Floats  # how common each label is, as a logarithm
    rarity: Floats  # of every column
    held_out: Mapping[str, Sequence[float]]  # hash of a gold text → what a model without it says, as logarithms
    accuracy: float  # share of gold texts whose label such a model finds
    words: Mapping[str, Sequence[str]]  # label → the words that speak most for it

    def __repr__(self) -> str:
        return f"<TextModel: {len(self.labels)} labels, {self.accuracy:.0%} of {len(self.held_out)} gold texts right>"

    def read(self, texts: Sequence[str], labels: Sequence[str]) -> Floats:
        """Return the logarithm of every label's probability, `[text, label]`; `labels` names the columns."""
        return _read(self, tuple(texts))[0][:, positions_of(labels, self.labels, "label of the text model")]

    def familiar(self, texts: Sequence[str]) -> Floats:
        """Return the share of the n-grams of each text that are in a gold text too; of a gold text, in another one."""
        return _read(self, tuple(texts))[1]

    def telling_words(self, texts: Sequence[str], codes: Sequence[int]) -> list[list[TellingWord]]:
        """Return where the words are that speak most for or against a label of each text, as learned from gold texts.

        N-grams of a single gold text may be there by chance, so they do not count.
        """
        spans = [[(*match.span(), normalised(match[0])) for match in WORD.finditer(text)] for text in texts]
        words = sorted({word for text in spans for *_, word in text if 2 < len(word) <= LONGEST_WORD})
        if not words:
            return [[] for _ in texts]
        vectors, lengths = weigh_with_lengths(count_ngrams(words), self.rarity)
        vectors.data *= 1 - 1 / np.maximum(_gold_texts_with(self)[vectors.indices], 1)
        mean = self.weights.mean(axis=1)
        contributions = {code: lengths * (vectors @ (self.weights[:, code] - mean)) for code in {*codes}}
        row_of = {word: row for row, word in enumerate(words)}
        whole = weigh_with_lengths(count_ngrams(texts), self.rarity)[1]
        telling = []
        for text, code, length in zip(spans, codes, whole.tolist(), strict=True):
            by_word = {word: float(contributions[code][row_of[word]]) / length for *_, word in text if word in row_of}
            strongest = sorted(by_word, key=lambda word: -abs(by_word[word]))[:WORDS_SHOWN]
            shown = {word for word in strongest if abs(by_word[word]) >= LEAST_SAID}
            telling.append([TellingWord(start, end, by_word[word]) for start, end, word in text if word in shown])
        return telling

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "labels": list(self.labels),
            "accuracy": self.accuracy,
            "words": {label: list(words) for label, words in self.words.items()},
            "offsets": self.offsets.tolist(),
            "held_out": {name: list(values) for name, values in self.held_out.items()},
            "rarity": _packed(self.rarity),
            "weights": _packed(self.weights),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TextModel":
        """Return the model that `to_dict` wrote."""
        return cls(
            labels=values["labels"],
            accuracy=values["accuracy"],
            words=values["words"],
            offsets=np.array(values["offsets"]),
            held_out=values["held_out"],
            rarity=_unpacked(values["rarity"]),
            weights=_unpacked(values["weights"]).reshape(COLUMNS, len(values["labels"])),
        )


@lru_cache(maxsize=REMEMBERED)
def _gold_texts_with(model: TextModel) -> Floats:
    """Return in how many gold texts the n-grams of every column are."""
    return np.rint((1 + len(model.held_out)) / np.exp(model.rarity - 1) - 1)


@lru_cache(maxsize=REMEMBERED)  # labels, report and review ask about the same texts
def _read(model: TextModel, texts: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Return what texts say about every label, and the share of their n-grams that are in other gold texts."""
    log_probs, familiar = np.empty((len(texts), len(model.labels))), np.empty(len(texts))
    held_out = [model.held_out.get(text_key(text)) for text in texts]
    for start in range(0, len(texts), READ_AT_A_TIME):
        rows = slice(start, start + READ_AT_A_TIME)
        counts = count_ngrams(texts[rows])
        log_probs[rows] = _bounded(log_softmax(weigh(counts, model.rarity) @ model.weights + model.offsets))
        sizes = np.diff(counts.indptr)
        row_of = np.repeat(np.arange(len(sizes)), sizes)
        own_texts = np.array([logs is not None for logs in held_out[rows]])[row_of]
        shared = np.bincount(row_of, _gold_texts_with(model)[counts.indices] > own_texts, minlength=len(sizes))
        familiar[rows] = shared / np.maximum(sizes, 1)
    for row, logs in enumerate(held_out):
        if logs is not None:
            log_probs[row] = logs
    return log_probs, familiar


def fit_text_model(
    texts: Sequence[str], gold: Codes, labels: Sequence[str], seed: int = 0, units: Integers | None = None
) -> TextModel | None:
    """Return a model learned from texts and the positions of their labels; None for too few, or a single label.

    Passages of one text have the same unit; none is read by a model that saw another.
    """
    if len(gold) < LEAST_GOLD or len(np.unique(gold)) < 2:
        return None
    rows = np.sort(np.random.default_rng(seed).permutation(len(gold))[:MOST_GOLD])
    units = np.arange(len(gold)) if units is None else units
    texts, gold, units = [texts[row] for row in rows.tolist()], gold[rows], units[rows]
    counts = count_ngrams(texts)
    rarity = _rounded(rarity_of(counts))
    vectors = weigh(counts, rarity)
    alike = (vectors @ vectors.T).toarray().astype(np.float64)
    few = np.random.default_rng(seed).permutation(len(gold))[:ROWS_TO_CHOOSE]
    tried = [_fit(alike[np.ix_(few, few)], gold[few], len(labels), ridge, units[few]) for ridge in RIDGES]
    ridge = RIDGES[int(np.argmin([trial.loss for trial in tried]))]
    fitted = _fit(alike, gold, len(labels), ridge, units)
    weights = _rounded(np.asarray(vectors.T @ (fitted.steepness * fitted.duals)))
    held_out = _bounded(log_softmax(fitted.left_out)).round(4)
    shares = (np.bincount(gold, minlength=len(labels)) + PRIOR_ROWS) / (len(gold) + PRIOR_ROWS * len(labels))
    return TextModel(
        labels=tuple(labels),
        weights=weights,
        offsets=np.log(shares),
        rarity=rarity,
        held_out={text_key(text): row.tolist() for text, row in zip(texts, held_out, strict=True)},
        accuracy=float((held_out.argmax(axis=1) == gold).mean()),
        words=_telling_words(texts, labels, weights, rarity),
    )


class _Fit(NamedTuple):
    duals: Floats  # weight of every row in the solution, `[row, label]`
    left_out: Floats  # logits of every row without its own part in the fit
    steepness: float  # what turns predictions into logits
    loss: float  # of the left-out logits, mean over rows


def _fit(alike: Floats, gold: Codes, labels: int, ridge: float, units: Integers) -> _Fit:
    """Return the ridge regression of labels on rows with these inner products; rows of one unit are left out together.

    What the others say about the rows $g$ of a unit follows from the fit on all: the residuals are
    $(K + r)^{-1}_{gg}$ solved for the duals (the press statistic, in blocks).
    """
    target = np.eye(labels)[gold]
    _, unit, sizes = np.unique(units, return_inverse=True, return_counts=True)
    of_unit = np.zeros((len(sizes), labels))
    np.add.at(of_unit, unit, target)
    others, left = target.sum(axis=0) - of_unit[unit], (len(gold) - sizes[unit])[:, np.newaxis]
    inverse = np.linalg.inv(alike + ridge * np.eye(len(gold)))
    duals = inverse @ (target - target.mean(axis=0))
    centre = others / np.maximum(left, 1)  # a row's own label has no part in what is said about it, nor in the mean
    alone = inverse @ target - inverse.sum(axis=1, keepdims=True) * centre
    residual = alone / np.diag(inverse)[:, np.newaxis]
    for number in np.flatnonzero(sizes > 1).tolist():
        rows = np.flatnonzero(unit == number)
        residual[rows] = np.linalg.solve(inverse[np.ix_(rows, rows)], alone[rows])
    predicted = target - centre - residual
    log_prior = np.log((others + PRIOR_ROWS) / (left + PRIOR_ROWS * labels))
    fit = fit_softmax([predicted], gold, np.ones(1), np.array([HARDLY_ANY]), base=log_prior)
    steepness = float(np.clip(fit.slopes[0], 0.0, STEEPEST))
    left_out = steepness * predicted + log_prior
    loss = -float((log_softmax(left_out) * target).sum()) / len(gold)
    return _Fit(duals, left_out, steepness, loss)


def _bounded(logs: Floats) -> Floats:
    return np.maximum(logs, np.log(LEAST_PROBABILITY))


def _telling_words(
    texts: Sequence[str], labels: Sequence[str], weights: Floats, rarity: Floats
) -> dict[str, Sequence[str]]:
    """Return for every label the words of at least two texts that speak most for it."""
    seen = Counter(word.strip(PUNCTUATION) for text in texts for word in set(normalised(text).split()))
    words = sorted(word for word, times in seen.items() if times > 1 and 2 < len(word) <= LONGEST_WORD)
    if not words:
        return {label: () for label in labels}
    contributions = weigh(count_ngrams(words), rarity) @ weights
    contributions -= contributions.mean(axis=1, keepdims=True)
    # a word in few texts may be there by chance
    contributions *= np.array([1 - 1 / seen[word] for word in words])[:, np.newaxis]
    best = np.argsort(-contributions, axis=0, kind="stable")[:WORDS_SHOWN]
    return {
        label: tuple(words[row] for row in best[:, code].tolist() if contributions[row, code] > 0)
        for code, label in enumerate(labels)
    }


def _rounded(values: Floats) -> Floats:
    """Return numbers as they are stored, so that a model reads the same before and after."""
    return values.astype(np.float16).astype(np.float32)


def _packed(values: Array) -> str:
    return base64.b64encode(zlib.compress(values.astype("<f2").tobytes())).decode()


def _unpacked(text: str) -> Floats:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f2").astype(np.float32)
