"""What a baseline is, and the published ones by name; register your own in the same way.

A published method uses one model. On the votes of one annotator (with its elicited siblings) a baseline is that
method; on the votes of several, each annotator is scored separately and the scores are averaged over those that
answered. All but `logprob` are defined on labels, so graded votes count as the label that was answered.

`benchmarks/results/baselines.md` has the papers' formulas and every change from them.

>>> baselines.names()[:4]
['1s-top-k', '2s-top-k', 'ling-1s', 'logprob']
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.base.registry import Registry
from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.core.elicitations import LING_1S, guesses_of, kind_of
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import NOT_ASKED, Votes
from pcs_annotator.judging.score import DECIMALS


class Asks(NamedTuple):
    """What a method pays for on every item."""

    cells: Mask  # true for the answers it uses, `[annotator, relation, draw]`
    rewrites: frozenset[str] = frozenset()  # relations whose text a model must write first
    graded: bool = False  # whether it needs the log-probabilities of these answers, not just their labels


class Baseline(Protocol):
    """A method that scores labels from some of the votes and learns nothing."""

    @property
    def name(self) -> str:
        """Return the name for tables."""
        ...

    def scores(self, votes: Votes) -> Floats:
        """Return the score of every label for every item; rows sum to 1, an item without usable votes is uniform."""
        ...

    def asks(self, votes: Votes) -> Asks:
        """Return which of the votes it uses."""
        ...


baselines: Registry[Baseline] = Registry("baseline", "pcs_annotator.baselines")
baseline = baselines.register  # decorator that registers a baseline class under a name


def original_column(votes: Votes, who: str) -> int:
    """Return the position of the unchanged text among the relations."""
    if ORIGINAL not in votes.relations:
        raise UndefinedMetric(
            f"{who} needs answers on the unchanged text, and these votes hold only {', '.join(votes.relations)}: "
            f"record it, or name its relation {ORIGINAL!r}"
        )
    return list(votes.relations).index(ORIGINAL)


def plain_rows(votes: Votes, who: str) -> list[int]:
    """Return the positions of the annotators that gave plain labels, without stating a confidence."""
    rows_found = [row for row, name in enumerate(votes.annotators) if not kind_of(name)]
    if not rows_found:
        raise UndefinedMetric(f"{who} needs plain labels: record a model without an elicitation too")
    return rows_found


def cells_of(votes: Votes, annotators: Sequence[int], relations: Sequence[int], draws: int | None = None) -> Mask:
    """Return the mask of the answers that were asked for at these positions, `[annotator, relation, draw]`."""
    cells = np.zeros(votes.codes.shape[1:], dtype=np.bool_)
    cells[np.ix_(annotators, relations, range(votes.codes.shape[3])[:draws])] = True
    return cells & (votes.codes != NOT_ASKED).any(axis=0)


def mean_scores(by_annotator: Floats, who: str) -> Floats:
    """Return the mean over annotators of `[item, annotator, label]` without rows of zeros; raise if all of them are."""
    present = by_annotator.sum(axis=2, keepdims=True) > 0
    if present.size and not present.any():
        raise UndefinedMetric(f"{who} finds no usable answer to its questions among these votes: look at the answers")
    voices = present.sum(axis=1)
    total = by_annotator.sum(axis=1)
    scores = np.where(voices > 0, total / np.maximum(voices, 1), 1 / by_annotator.shape[2])
    return np.asarray(np.round(scores, DECIMALS))


class _Share:
    """The share of first answers on the unchanged text, averaged over annotators; subclasses say which are asked."""

    name: ClassVar[str]
    graded: ClassVar[bool] = False  # whether answers count with their log-probabilities
    draws: ClassVar[int | None] = 1  # how many answers to the same question count; None for all

    def rows(self, votes: Votes) -> list[int]:
        """Return the positions of the annotators that it asks."""
        return plain_rows(votes, self.name)

    def scores(self, votes: Votes) -> Floats:
        """Return the share of draws for every label, averaged over annotators."""
        rows, column = self.rows(votes), original_column(votes, self.name)
        shares = (votes if self.graded else votes.hard()).select(draws=self.draws).shares()[:, rows, column]
        total = shares.sum(axis=2, keepdims=True)  # log-probabilities leave a rest that went to no label
        return mean_scores(shares / np.where(total > 0, total, 1.0), self.name)

    def asks(self, votes: Votes) -> Asks:
        """Return one call per annotator and draw."""
        cells = cells_of(votes, self.rows(votes), [original_column(votes, self.name)], self.draws)
        return Asks(cells, graded=self.graded)


@baseline("zero-shot")
class ZeroShot(_Share):
    """One call per text: 1 for the label of the first answer on the unchanged text (RQ1 of Salimian et al.).

    Several annotators are averaged, so select one for the paper's figure.
    """

    name: ClassVar[str] = "zero-shot"


@baseline("majority-vote")
class MajorityVote(_Share):
    """The share of annotators that give a label to the unchanged text, one call each (RQ3 of Salimian et al.)."""

    name: ClassVar[str] = "majority-vote"

    def rows(self, votes: Votes) -> list[int]:
        """Return the positions of the annotators, of which two or more must have answered."""
        rows = plain_rows(votes, self.name)
        asked = int((votes.codes[:, rows, original_column(votes, self.name), 0] >= 0).any(axis=0).sum())
        if asked < 2:
            raise UndefinedMetric(
                f"{self.name} needs answers of two models or more, and these votes have {asked}: record more"
            )
        return rows


@baseline("self-consistency")
class SelfConsistency(_Share):
    """The share of draws on the unchanged text that give a label: the same question asked several times.

    Wang et al. 2022, arXiv:2203.11171: of m sampled answers a_1 … a_m take arg max_a Σ_i 1[a_i = a]; the score is the
    m-th part of that sum.
    """

    name: ClassVar[str] = "self-consistency"
    draws: ClassVar[int | None] = None

    def rows(self, votes: Votes) -> list[int]:
        """Return the positions of the annotators, all of which must have been asked several times."""
        rows = plain_rows(votes, self.name)
        drawn = (votes.codes[:, rows, original_column(votes, self.name)] >= 0).any(axis=0).sum(axis=1)
        fewest = int(np.argmin(drawn))
        if drawn[fewest] < 2:
            raise UndefinedMetric(
                f"self-consistency needs several draws of the original, and {votes.annotators[rows[fewest]]} has "
                f"{drawn[fewest]}: record them with --draws 5"
            )
        return rows


@baseline("logprob")
class LogProb(_Share):
    """The probabilities that the model gives to the labels in its first answer on the unchanged text; no learning.

    What went to no label is left out, so that rows sum to 1. An answer without log-probabilities, from a model that
    gave them elsewhere, counts as its label.
    """

    name: ClassVar[str] = "logprob"
    graded: ClassVar[bool] = True

    def rows(self, votes: Votes) -> list[int]:
        """Return the positions of the annotators that give log-probabilities."""
        return graded_rows(votes, self.name)


def graded_rows(votes: Votes, who: str) -> list[int]:
    """Return the positions of the annotators whose first answers on the unchanged text have log-probabilities."""
    rows, column = plain_rows(votes, who), original_column(votes, who)
    graded: list[int] = []
    if votes.grades is not None:
        graded = [row for row in rows if not np.isnan(votes.grades[:, row, column, 0]).all()]
    if not graded:
        raise UndefinedMetric(
            f"{who} needs the log-probabilities of answers on the unchanged text, and these votes hold none: record "
            "them with --answers graded, from a model that gives them"
        )
    return graded


PERTURBATIONS = ("paraphrase", "dummy", "system", "temperature")
"""Those of SPUQ's paper; each may have numbered variants such as `paraphrase-2`."""
FREE = frozenset(["dummy", "system", "temperature"])  # those that need no model to write them
_NUMBER = re.compile(r"(?:[-_ ]|(?<!\d))\d+\Z")


def complete(stated: Floats) -> Floats:
    """Return stated probabilities `[..., label]` as shares that sum to 1; zeros where nothing was stated.

    The remainder is spread evenly over the labels that were not named (nan). Probabilities that add up to more than
    1, or to less with every label named, are divided by their sum.
    """
    named = ~np.isnan(stated)
    probabilities = np.clip(np.where(named, stated, 0.0), 0.0, 1.0)
    unnamed = (~named).sum(axis=-1, keepdims=True)
    rest = np.maximum(1 - probabilities.sum(axis=-1, keepdims=True), 0.0)
    filled = np.where(named, probabilities, rest / np.maximum(unnamed, 1))
    total = filled.sum(axis=-1, keepdims=True)
    # "0 % for every label" is uniform, which differs from no answer
    shares = np.where(total > 0, filled / np.where(total > 0, total, 1.0), 1 / stated.shape[-1])
    return np.where(named.any(axis=-1, keepdims=True), shares, 0.0)


def elicited(votes: Votes, fits: Callable[[str], bool], who: str, record: str) -> tuple[list[int], Floats]:
    """Return the positions of the annotators whose kind of elicitation fits, and all stated probabilities.

    If there are none, an error names the method and what to record.
    """
    rows = [row for row, name in enumerate(votes.annotators) if kind_of(name) and fits(kind_of(name))]
    if not rows or votes.stated is None or np.isnan(votes.stated[:, rows]).all():
        raise UndefinedMetric(
            f"{who} needs probabilities that the models state themselves, and these votes hold none: "
            f"record them with the elicitation {record!r}"
        )
    return rows, votes.stated


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedBaseline:
    """The probabilities stated about the original in the first answer."""

    name: str  # the name for tables, and the kind of elicitation to use

    def source(self, votes: Votes) -> tuple[list[int], Floats]:
        """Return the annotators to use, and all stated probabilities; `…-k` takes the only number of guesses."""
        any_k, like = self.name.endswith("-k"), self.name.removesuffix("k")
        record = f"{like}2" if any_k else self.name
        rows, stated = elicited(votes, lambda kind: kind.startswith(like), self.name, record)
        kinds = sorted({kind_of(votes.annotators[row]) for row in rows}, key=guesses_of)
        if len(kinds) > 1:
            raise UndefinedMetric(
                f"{self.name} takes one number of guesses, these votes hold {', '.join(kinds)}: select one of them"
            )
        return rows, stated

    def scores(self, votes: Votes) -> Floats:
        """Return the probabilities stated about the original, averaged over annotators."""
        rows, stated = self.source(votes)
        return mean_scores(complete(stated[:, rows, original_column(votes, self.name), 0]), self.name)

    def asks(self, votes: Votes) -> Asks:
        """Return the answers on the original that it uses, of one or two calls each."""
        return Asks(cells_of(votes, self.source(votes)[0], [original_column(votes, self.name)], 1))


@baseline("ling-1s")
def linguistic() -> StatedBaseline:
    """Return Ling 1S: one guess and a phrase for how likely it is; the rest is spread evenly over the other labels.

    Tian et al. 2023, *Just Ask for Calibration*, EMNLP 2023, arXiv:2305.14975 (“Ling. 1S-human”). The phrases and their
    probabilities are `pcs_annotator.core.elicitations.PHRASES`.
    """
    return StatedBaseline(name=LING_1S)


@baseline("1s-top-k")
def one_step() -> StatedBaseline:
    """Return 1S top-k: the probabilities stated for k guesses; the rest is spread evenly over the other labels.

    Tian et al. 2023, *Just Ask for Calibration*, EMNLP 2023, arXiv:2305.14975 (“Verb. 1S top-k”, “Verb. 2S top-k”).
    """
    return StatedBaseline(name="1s-top-k")


@baseline("2s-top-k")
def two_steps() -> StatedBaseline:
    """Return 2S top-k, which asks for the probabilities in a second prompt."""
    return StatedBaseline(name="2s-top-k")


@baseline("spuq")
@dataclass(frozen=True, slots=True, kw_only=True)
class Spuq:
    """Confidence in the answer on the original, from those on perturbed inputs (Gao et al. 2024, arXiv:2403.02509).

    `inter`: the share of answers that agree with the original one. `intra`: the stated confidence, of the kind that
    comes first in the alphabet.
    """

    aggregation: Literal["inter", "intra"] = "inter"

    @property
    def name(self) -> str:
        """`spuq` or `spuq-intra`."""
        return "spuq" if self.aggregation == "inter" else "spuq-intra"

    def scores(self, votes: Votes) -> Floats:
        """Return the confidence at the answer on the original, the rest at the other labels."""
        rows, columns, stated = self._places(votes)
        guess = votes.codes[:, rows, original_column(votes, self.name), 0].astype(np.intp)
        answers = votes.codes[:, rows][:, :, columns].astype(np.intp)
        if stated is None:
            signs = np.where(answers >= 0, answers == guess[:, :, np.newaxis, np.newaxis], np.nan)
        else:
            # what each annotator stated for its own answer
            own_answer = np.maximum(answers, 0)[..., np.newaxis]
            sure = np.take_along_axis(stated[:, rows][:, :, columns], own_answer, axis=-1)[..., 0]
            signs = np.where(answers >= 0, np.clip(sure, 0.0, 1.0), np.nan)
        compared = np.where(guess >= 0, (~np.isnan(signs)).sum(axis=(2, 3)), 0)
        compared_rows = int((compared > 0).any(axis=1).sum())
        if 2 * compared_rows < len(compared):  # the rest would be ties
            raise UndefinedMetric(
                f"{self.name} needs answers on perturbed inputs, and {compared_rows} of {len(compared)} rows have one: "
                "record relations that apply to more texts, such as llm:paraphrase or frame"
            )
        confidence = np.nansum(signs, axis=(2, 3)) / np.maximum(compared, 1)
        return mean_scores(_spread(len(votes.labels), np.where(compared > 0, guess, -1), confidence), self.name)

    def asks(self, votes: Votes) -> Asks:
        """Return the first answer on the original, those on perturbed inputs, and the inputs that a model wrote."""
        rows, columns, _ = self._places(votes)
        first = cells_of(votes, rows, [original_column(votes, self.name)], 1)
        names = {votes.relations[column] for column in columns} - {ORIGINAL}
        written = frozenset(name for name in names if _family(name) not in FREE)
        return Asks(first | cells_of(votes, rows, columns), written)

    def _places(self, votes: Votes) -> tuple[list[int], list[int], Floats | None]:
        """Return the annotators and relations to use, and the stated probabilities; None where only labels count."""
        original, perturbed = original_column(votes, self.name), self._perturbed(votes)
        if self.aggregation == "inter":
            return plain_rows(votes, self.name), perturbed, None
        kinds: set[str] = set()
        if votes.stated is not None:
            asked = ~np.isnan(votes.stated[:, :, perturbed])
            kinds = {kind_of(name) for row, name in enumerate(votes.annotators) if asked[:, row].any()} - {""}
        wanted = min(kinds, default="")
        rows, stated = elicited(votes, wanted.__eq__, f"{self.name}, on perturbed inputs,", "1s-top-1")
        return rows, [original, *perturbed], stated

    def _perturbed(self, votes: Votes) -> list[int]:
        """Return the relations that perturb as in the paper; without any, all but the original."""
        others = {name: column for column, name in enumerate(votes.relations) if name != ORIGINAL}
        if not others:
            raise UndefinedMetric(
                f"{self.name} needs answers on perturbed inputs ({', '.join(PERTURBATIONS)}), and these votes hold "
                f"only {', '.join(votes.relations)}: record such relations"
            )
        return [column for name, column in others.items() if _family(name) in PERTURBATIONS] or [*others.values()]


@baseline("spuq-intra")
def intra_sample() -> Spuq:
    """Return SPUQ by the model's stated confidence."""
    return Spuq(aggregation="intra")


def _family(relation: str) -> str:
    return _NUMBER.sub("", relation)


def _spread(labels: int, guess: Integers, confidence: Floats) -> Floats:
    """Return the confidence at the guessed label and the rest spread evenly over the others; zeros without a guess."""
    if labels == 1:
        confidence = np.ones_like(confidence)  # no other label can take the rest
    hit = guess[..., np.newaxis] == np.arange(labels)
    shares = np.where(hit, confidence[..., np.newaxis], (1 - confidence[..., np.newaxis]) / max(labels - 1, 1))
    return np.where(guess[..., np.newaxis] >= 0, shares, 0.0)
