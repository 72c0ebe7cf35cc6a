"""Why an item is easy or hard, in one short sentence."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.text import series, short_names
from pcs_annotator.core.arrays import Array, Codes, Floats, Mask
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import NOT_ASKED, Votes
from pcs_annotator.judging.score import row_parts

MAX_NAMED = 3
UNDECIDED = -1
KNOWN_ERRORS = "but the models' known errors point to"
TEXT_OR_ERRORS = "but the text or the models' known errors point to"


def reasons(votes: Votes, scores: Floats, best: Codes, sure: Array | None = None) -> list[str]:
    """Return for each item the first of `_causes` that applies; `sure` is how often its label is right, in %, or −1."""
    sentences: list[str] = []
    sure = np.full(len(best), UNDECIDED) if sure is None else sure
    for rows in row_parts(votes):
        causes = _causes(_Facts.of(votes, rows), scores[rows], best[rows], sure[rows])
        sentences += _explain(causes, len(best[rows]))
    return sentences


def spoken(relation: str) -> str:
    """Return the name of a relation as written in a sentence."""
    return relation.replace("-", " ")


class _Facts(NamedTuple):
    """Counts of the votes on some items; `words` turns them into sentences."""

    counts: Array  # answers of every cell, `[item, annotator, relation, label]`
    # the label that a cell gave most often, `UNDECIDED` where there is none, `[item, annotator, relation]`
    voice: Array
    asked: Array  # number of questions asked
    original: int | None  # position of the relation that leaves the text unchanged; None when the votes do not have it
    # mean share of every label in the graded answers, in per cent, `[item, label]`; 0 where there are none
    shares: Array
    words: "_Words"  # makes the sentences

    @classmethod
    def of(cls, votes: Votes, rows: slice) -> "_Facts":
        codes = votes.codes[rows]
        counts = np.stack([(codes == code).sum(axis=3, dtype=np.int32) for code in range(len(votes.labels))], axis=-1)
        top = counts.max(axis=3, keepdims=True)
        alone = ((counts == top).sum(axis=3) == 1) & (top[..., 0] > 0)
        return cls(
            counts=counts,
            voice=np.where(alone, counts.argmax(axis=3), UNDECIDED),
            asked=(codes != NOT_ASKED).sum(axis=(1, 2, 3)),
            original=votes.relations.index(ORIGINAL) if ORIGINAL in votes.relations else None,
            shares=_shares(votes, rows),
            words=_Words(tuple(short_names(votes.annotators)), tuple(map(spoken, votes.relations)), votes.labels),
        )


def _shares(votes: Votes, rows: slice) -> Array:
    if votes.grades is None:
        return np.zeros((len(votes.codes[rows]), len(votes.labels)), dtype=np.intp)
    grades = votes.grades[rows].reshape(len(votes.codes[rows]), -1, len(votes.labels))
    total = grades.sum(axis=2, keepdims=True)
    shares = np.divide(grades, total, out=np.zeros_like(grades), where=total > 0)
    answers = (total > 0).sum(axis=1)
    return np.rint(100 * shares.sum(axis=1) / np.maximum(answers, 1)).astype(np.intp)


class _Cause(NamedTuple):
    """A kind of reason: the items it applies to, the numbers for each item's sentence, and the sentence."""

    holds: Mask
    numbers: Sequence[Array]  # each is a column, or several
    sentence: Callable[..., str]


def _explain(causes: Iterator[_Cause], items: int) -> list[str]:
    """Return the sentence of the first cause that applies; equal numbers are formatted once."""
    reasons, unexplained = [""] * items, np.ones(items, dtype=np.bool_)
    for cause in causes:
        rows = np.flatnonzero(cause.holds & unexplained)
        if not len(rows):
            continue
        unexplained[rows] = False
        columns = np.column_stack([column[rows] for column in cause.numbers])
        sentences: dict[tuple[int, ...], str] = {}
        for row, numbers in zip(rows.tolist(), map(tuple, columns.tolist()), strict=True):
            if numbers not in sentences:
                sentences[numbers] = cause.sentence(*numbers)
            reasons[row] = sentences[numbers]
    return reasons


def _causes(facts: _Facts, scores: Floats, best: Codes, sure: Array) -> Iterator[_Cause]:
    words = facts.words
    answers = facts.counts.sum(axis=(1, 2))
    total = answers.sum(axis=1)
    ours = answers[np.arange(len(best)), best]
    yield _Cause(total == 0, [facts.asked > 0], words.no_answer)
    yield _Cause(2 * total < facts.asked, [total, facts.asked], words.few_answers)
    tied = scores == scores.max(axis=1, keepdims=True)
    yield _Cause(tied.sum(axis=1) > 1, [tied], words.tie)
    others = answers.copy()
    others[np.arange(len(best)), best] = 0
    # the only other label that was given, unless there are several, or none
    other = np.where((others > 0).sum(axis=1) == 1, others.argmax(axis=1), UNDECIDED)
    yield _Cause(ours == 0, [best, other, total], words.unsupported)
    if facts.original is not None:
        yield _changed(facts, facts.original)
        yield _contradicted(facts, facts.original, best)
    yield _Cause(total > ours, [best, other, ours, total], words.minority)
    shares = facts.shares[np.arange(len(best)), best]
    yield _Cause(total > 0, [best, total, shares, sure], words.agreement)


def _changed(facts: _Facts, original: int) -> _Cause:
    """Most comparable models changed their answer, under the relation where that happened most."""
    before = facts.voice[:, :, original, np.newaxis]
    both = (before >= 0) & (facts.voice >= 0)
    changed = both & (facts.voice != before)
    pairs, flips = both.sum(axis=1), changed.sum(axis=1)
    # there are far fewer than a thousand models, so the number only breaks ties between equal shares
    worst = (flips / np.maximum(pairs, 1) + flips / 1e6).argmax(axis=1)
    rows = np.arange(len(worst))
    flips, pairs, first = flips[rows, worst], pairs[rows, worst], changed[rows, :, worst].argmax(axis=1)
    return _Cause(2 * flips > pairs, [worst, flips, pairs, first], facts.words.changed)


def _contradicted(facts: _Facts, original: int, best: Codes) -> _Cause:
    """Some models give the original text a label other than the item's."""
    voice, counts = facts.voice[:, :, original], facts.counts[:, :, original]
    supported = (voice == best[:, np.newaxis]).any(axis=1)
    # a model split between the label and another neither supports nor contradicts the label
    denied = (counts[np.arange(len(best)), :, best] == 0).all(axis=1)
    steady = ((facts.counts.sum(axis=2) > 0).sum(axis=2) <= 1).all(axis=1)
    steady_there = ((counts > 0).sum(axis=2) <= 1).all(axis=1)
    against = ((voice >= 0) & (voice != best[:, np.newaxis])).any(axis=1)
    numbers = [best, steady, steady_there, voice]
    return _Cause(against & (supported | denied), numbers, facts.words.contradicted)


class _Words(NamedTuple):
    """Turns numbers into sentences, one method per cause."""

    models: Sequence[str]
    relations: Sequence[str]
    labels: Sequence[str]

    def no_answer(self, asked: int) -> str:
        return "no model gave a usable answer" if asked else "no model has answered"

    def few_answers(self, answers: int, asked: int) -> str:
        return f"only {answers} of {asked} questions {'was' if answers == 1 else 'were'} answered"

    def tie(self, *tied: int) -> str:
        labels = [label for label, is_tied in zip(self.labels, tied, strict=True) if is_tied]
        return f"{_listed(labels, 'labels')} are tied"

    def unsupported(self, best: int, other: int, answers: int) -> str:
        if other < 0:
            return f"no answer says {self.labels[best]}, {KNOWN_ERRORS} it"
        answer_text = "the only answer says" if answers == 1 else f"{_every(answers)} answers say"
        return f"{answer_text} {self.labels[other]}, {KNOWN_ERRORS} {self.labels[best]}"

    def changed(self, relation: int, flips: int, pairs: int, first: int) -> str:
        comparable = "" if pairs == len(self.models) else "comparable "
        if pairs == 1:
            return f"{self._model(first)} changed its answer under {self.relations[relation]}"
        who = f"{flips} of {pairs} {comparable}" if flips < pairs else f"{_every(pairs)} {comparable}"
        return f"{who.strip()} models changed their answer under {self.relations[relation]}"

    def contradicted(self, best: int, steady: int, steady_there: int, *voice: int) -> str:
        where = "" if steady else "on the original text "
        verb = ("says", "say") if steady_there else ("most often says", "most often say")
        speakers = {
            code: [m for m, answer_text in enumerate(voice) if answer_text == code] for code in sorted({*voice} - {-1})
        }
        if best not in speakers:
            return self._denied(best, verb[0], voice)
        ours = speakers.pop(best)
        parts = [f"{self._who(models)} {self.labels[code]}" for code, models in speakers.items()]
        first, models = next(iter(speakers.items()))
        parts[0] = f"{self._who(models)} {verb[len(models) > 1]} {self.labels[first]}"
        rest = "the others" if len(ours) > 1 and UNDECIDED not in voice else self._who(ours)
        return f"{where}{', '.join(parts)}, {rest} {self.labels[best]}"

    def _denied(self, best: int, verb: str, voice: Sequence[int]) -> str:
        speakers = [
            (self._model(model), self.labels[answer_text])
            for model, answer_text in enumerate(voice)
            if answer_text >= 0
        ]
        if len(speakers) > 1:
            return f"no model says {self.labels[best]} on the original text"
        model, label = speakers[0]
        return f"{model} {verb} {label} on the original text, not {self.labels[best]}"

    def minority(self, best: int, other: int, ours: int, total: int) -> str:
        label = self.labels[best]
        if 2 * ours <= total:
            return f"only {ours} of {total} answers {_say(ours)} {label}"
        against = total - ours
        if other >= 0:
            return f"{against} of {total} answers {_say(against)} {self.labels[other]}"
        return f"{against} of {total} answers do not say {label}"

    def agreement(self, best: int, answers: int, share: int, sure: int) -> str:
        who = "the only answer says" if answers == 1 else f"{_every(answers)} answers say"
        probable = f", with a probability of {share} %{'' if answers == 1 else ' on average'}" if share else ""
        right = f"; such labels are right in {sure} % of cases" if sure >= 0 else ""
        return f"{who} {self.labels[best]}{probable}{right}"

    def _model(self, model: int) -> str:
        return self.models[model] if len(self.models) > 1 else "the model"

    def _who(self, models: list[int]) -> str:
        return _listed([self._model(model) for model in models], "models")


def _listed(names: Sequence[str], plural: str) -> str:
    if len(names) > MAX_NAMED:
        return f"{len(names)} {plural}"
    return series(names)


def _every(count: int) -> str:
    return "both" if count == 2 else f"all {count}"


def _say(count: int) -> str:
    return "says" if count == 1 else "say"
