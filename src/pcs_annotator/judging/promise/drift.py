"""Drift: whether new texts, or what models answer to them, differ from those that the model was fitted on."""

import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import MismatchError
from pcs_annotator.base.text import short_names
from pcs_annotator.core.arrays import Array, Codes, Floats, Integers, frozen
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import NO_GROUP, NOT_ASKED, Votes, positions_of
from pcs_annotator.judging.metrics.significance import holm
from pcs_annotator.judging.metrics.special import chdtrc, xlogy
from pcs_annotator.judging.reasons import spoken

SCRIPTS = (
    *("LATIN", "CYRILLIC", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "ARABIC", "HEBREW", "GREEK", "DEVANAGARI", "THAI"),
    *("OTHER", "NONE"),
)
"""Scripts as Unicode names them; other scripts, and texts without letters."""
CHARACTERS_READ = 500


def script_of(text: str) -> int:
    """Return the position in `SCRIPTS` of the script that most letters at the start of a text have.

    >>> SCRIPTS[script_of("Привет, world")], SCRIPTS[script_of("42!")]
    ('CYRILLIC', 'NONE')
    """
    start = text[:CHARACTERS_READ]
    if start.isascii():
        return SCRIPTS.index("LATIN" if any(map(str.isalpha, start)) else "NONE")
    names = Counter(unicodedata.name(letter, "OTHER").split()[0] for letter in start if letter.isalpha())
    script = max(names, key=names.__getitem__, default="NONE")
    return SCRIPTS.index(script if script in SCRIPTS else "OTHER")


GRID = 100
SCORE_BINS = 8
MIN_ROWS = 20
MIN_EXPECTED = 5.0
MAX_P_VALUE = 0.001
# Leaving out this share of the texts changes the other shares by at most as much: too little for an alarm.
MAX_UNASKED = 0.05
MIN_CHANGE = 0.1
UNFAMILIAR = 10  # hundredths of n-grams that a text must have less than the median of those before
FALSE_ALARMS = 0.05
SUM_OF_LEVELS = 2.13
COUNTED = ("items", "cells", "chosen", "highest", "scripts", "familiar")
UNSEEN = (
    "small shifts may go unnoticed; a fall in accuracy that leaves the answers alike cannot be seen without an audit"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Profile:
    """Summary counts of a set of votes, for a later comparison with other votes."""

    annotators: Sequence[str]  # name of every annotator
    relations: Sequence[str]  # name of every relation
    labels: Sequence[str]  # the labels
    items: int  # number of items
    # how often each cell gave each label, or none, when asked: `[annotator, relation, draw, label or none]`
    cells: Integers
    chosen: Integers  # how often each label is the label of an item
    highest: Integers  # how often the highest score falls in each hundredth between 0 and 1
    scripts: Integers  # how many texts are written in each of `SCRIPTS`; none where texts are unknown
    familiar: Integers  # the same for the share of a text's n-grams that gold texts have; none without a text model

    __repr__ = brief

    def __post_init__(self) -> None:
        for name in ("annotators", "relations", "labels"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "items", int(self.items))
        for name in COUNTED[1:]:
            object.__setattr__(self, name, frozen(np.asarray(getattr(self, name)), np.intp))

    def scaled(self, times: float) -> "Profile":
        """Return the profile as if it had so many times as many items."""
        return replace(self, **{name: np.rint(times * getattr(self, name)) for name in COUNTED})

    def plus(self, other: "Profile") -> "Profile":
        """Return the profile of both sets of votes together."""
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in COUNTED})


class Drift(NamedTuple):
    """Whether two profiles differ."""

    # probability of a difference as clear as the clearest one if nothing changed, corrected for the number of
    # comparisons (Holm)
    p_value: float
    found: bool  # whether a difference is significant and affects at least 10 % of the texts
    sentence: str  # what changed most; or that nothing did, or why it is unknown
    groups: "Mapping[str, Drift] | None" = None  # if a promise is made for groups of texts, the same for each of them

    @property
    def unlike(self) -> tuple[str, ...]:
        """The groups that differ, if only some may; empty if all texts do, or none."""
        return tuple(name for name, drift in (self.groups or {}).items() if drift.found)

    @property
    def unseen(self) -> str:
        """What the comparison cannot see."""
        return UNSEEN


def profile(votes: Votes, scores: Floats, best: Codes, familiar: Floats | None = None) -> Profile:
    """Return the profile of votes, their scores `[item, label]`, their labels, and how familiar their texts are."""
    labels = len(votes.labels)
    answers = np.where(votes.codes < 0, np.where(votes.codes == NOT_ASKED, NOT_ASKED, labels), votes.codes)
    cells = np.stack([(answers == answer).sum(axis=0) for answer in range(labels + 1)], axis=-1)
    speaking = scores[~votes.silent]
    return Profile(
        annotators=votes.annotators,
        relations=votes.relations,
        labels=votes.labels,
        items=len(votes),
        cells=cells,
        chosen=np.bincount(best[~votes.silent], minlength=labels),
        highest=_in_hundredths(speaking.max(axis=1)),
        scripts=np.bincount(np.array([*map(script_of, votes.texts or ())], dtype=np.intp), minlength=len(SCRIPTS)),
        familiar=_in_hundredths(np.zeros(0) if familiar is None else familiar),
    )


def _in_hundredths(shares: Floats) -> Integers:
    return np.bincount((shares * GRID).round().astype(np.intp), minlength=GRID + 1)


def drift(
    before: Profile,
    now: Profile,
    names: tuple[str, str] = ("the calibration set", "new texts"),
    level: float = MAX_P_VALUE,
) -> Drift:
    """Return whether new votes differ from those before, and how; `level` is the probability of a false alarm.

    Answers about one item are correlated, so each cell is compared separately, and so are the chosen labels and the
    highest scores. A cell that early stopping left out for many texts has answers on the hard ones only: it is skipped,
    and so are the scores.
    """
    compared = [
        comparison
        for comparison in _comparisons(before, now)
        if min(comparison.before.sum(), comparison.now.sum()) >= MIN_ROWS
    ]
    if not compared:
        fewest = min(before.items, now.items)
        return Drift(1.0, False, f"{fewest} texts are too few to compare: {MIN_ROWS} are needed on both sides")
    corrected = np.array(holm([homogeneity(comparison.before, comparison.now) for comparison in compared]))
    # total variation: the share of texts that are answered differently
    changes = np.array(
        [
            np.abs(comparison.now / comparison.now.sum() - comparison.before / comparison.before.sum()).sum() / 2
            for comparison in compared
        ]
    )
    alarming = (corrected < level) & (changes >= MIN_CHANGE)
    if not alarming.any():
        return Drift(float(corrected.min()), False, f"{names[1]} are answered like {names[0]}")
    worst = compared[int(np.where(alarming, changes, 0).argmax())]
    return Drift(float(corrected[alarming].min()), True, worst.sentence(names))


def profiles(
    votes: Votes, scores: Floats, best: Codes, names: Iterable[str], familiar: Floats | None = None
) -> dict[str, Profile]:
    """Return the profile of each of some groups that has texts here; an empty name is for all texts."""
    groups = np.array(votes.groups or [NO_GROUP] * len(votes))
    rows = {name: np.flatnonzero((groups == name) | (not name)) for name in names}
    kept = {name: members for name, members in rows.items() if len(members) or not name}
    return {
        name: profile(votes.take(part), scores[part], best[part], None if familiar is None else familiar[part])
        for name, part in kept.items()
    }


def drift_together(before: Mapping[str, Profile], now: Mapping[str, Profile], level: float) -> Drift:
    """Compare groups as one, those of before in the mixture of now: another mixture alone breaks no group's promise."""
    before = {name: profile for name, profile in before.items() if name in now}
    if not before:
        return Drift(1.0, False, "no texts are left to compare")
    recent = reduce(Profile.plus, (now[name] for name in before))
    shares = {name: now[name].items / recent.items for name in before}
    size = 1 / sum(share**2 / before[name].items for name, share in shares.items())  # as many as the estimate is worth
    mixed = reduce(
        Profile.plus, (profile.scaled(size * shares[name] / profile.items) for name, profile in before.items())
    )
    return drift(mixed, recent, level=level)


def drift_by_group(before: Mapping[str, Profile], now: Mapping[str, Profile]) -> Drift:
    """Return whether new texts differ, all of them or, if a promise is made for groups, those of some groups.

    The comparison of all texts has half of the level, and each group an equal part of the other half.
    """
    if "" in before:
        return drift(before[""], now[""])
    groups = {name: drift_together({name: before[name]}, now, MAX_P_VALUE / 2 / len(before)) for name in now}
    alike = {name: before[name] for name, one in groups.items() if not one.found}
    together = drift_together(alike, now, MAX_P_VALUE / 2)
    return gathered(together, groups | (dict.fromkeys(alike, together) if together.found else {}))


def gathered(together: Drift, groups: Mapping[str, Drift]) -> Drift:
    """Return what was found about all groups as one."""
    unlike = "; ".join(f"{name}: {drift.sentence}" for name, drift in groups.items() if drift.found)
    least = 2 * min(together.p_value, *(len(groups) * drift.p_value for drift in groups.values()), 0.5)
    return together._replace(p_value=least, found=bool(unlike), sentence=unlike or together.sentence, groups=groups)


def level_of_look(look: int) -> float:
    r"""Return the level of one of a stream's comparisons, which are all together wrong with a probability of 5 %.

    It falls as $1/(k \log^2 k)$, whose sum is finite: so a stream may run for ever.
    """
    return float(FALSE_ALARMS / (SUM_OF_LEVELS * look * np.log(look + 1.7) ** 2))


def homogeneity(before: Integers, now: Integers) -> float:
    """Return the p-value of a chi-square test that two rows of counts come from the same shares.

    It is the larger one of Pearson's test and the likelihood-ratio test: with few new texts against many, each of them
    alone finds rare outcomes too often. Outcomes are pooled until each has an expected count of at least five in both
    rows.
    """
    table = _pooled(np.stack([before, now]))
    if table.shape[1] < 2:
        return 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    pearson = ((table - expected) ** 2 / expected).sum()
    likelihood = 2 * xlogy(table, table / expected).sum()
    return float(chdtrc(table.shape[1] - 1, min(pearson, likelihood)))


def _pooled(table: Array) -> Array:
    """Return the table with its rarest columns pooled until every expected count is large enough."""
    order = np.argsort(table.sum(axis=0), kind="stable")
    columns, sums = list(table.T[order]), table.sum(axis=0)[order].tolist()
    # expected counts are lowest in the smaller sample
    least = MIN_EXPECTED * table.sum() / table.sum(axis=1).min()
    while len(columns) > 1 and sums[0] < least:
        both, total = columns.pop(0) + columns.pop(0), sums.pop(0) + sums.pop(0)
        bin_at = bisect_left(sums, total)
        columns.insert(bin_at, both)
        sums.insert(bin_at, total)
    return np.stack(columns, axis=1)


class _Comparison(NamedTuple):
    """Two rows of counts, and the words for a difference."""

    before: Integers
    now: Integers
    name: str
    answers: Sequence[str]
    of_model: bool = False

    def sentence(self, names: tuple[str, str]) -> str:
        """Return which answer became more frequent, as a sentence."""
        old, new = self.before / self.before.sum(), self.now / self.now.sum()
        most = int((new - old).argmax())
        # where asking stops early, a model answers about some of the texts only
        of, others = ("of its answers about", "of those about") if self.of_model else ("of", "of")
        shares = f"in {100 * new[most]:.0f} % {of} {names[1]}, {100 * old[most]:.0f} % {others} {names[0]}"
        return f"{self.name} {self.answers[most]} {shares}"


def _comparisons(before: Profile, now: Profile) -> Iterator[_Comparison]:
    if set(before.labels) != set(now.labels):
        raise MismatchError(
            f"the calibration set has the labels {', '.join(before.labels)}, the new texts {', '.join(now.labels)}: "
            "learn again on votes with these labels"
        )
    order = positions_of(before.labels, now.labels, "label")
    names = dict(zip(before.annotators, short_names(before.annotators), strict=True))
    says = [*(f"says {label}" for label in before.labels), "gives no usable answer"]
    old_cells, new_cells = _by_cell(before), _by_cell(now)
    alike = old_cells.keys() == new_cells.keys()
    for cell in sorted(old_cells.keys() & new_cells.keys()):
        annotator, relation, _ = cell
        old, new = old_cells[cell], new_cells[cell][[*order, len(order)]]
        if abs(old.sum() / max(before.items, 1) - new.sum() / max(now.items, 1)) > MAX_UNASKED:
            alike = False
            continue
        where = "" if relation == ORIGINAL else f" under {spoken(relation)}"
        yield _Comparison(old, new, names[annotator] + where, says, of_model=True)
    yield _Comparison(before.chosen, now.chosen[order], "the label", [f"is {label}" for label in before.labels])
    if alike:
        yield _scores_compared(before.highest, now.highest)
    yield _Comparison(before.scripts, now.scripts, "the script", [f"is {name.lower()}" for name in SCRIPTS])
    yield _familiarity_compared(before.familiar, now.familiar)


def _by_cell(profile: Profile) -> dict[tuple[str, str, int], Integers]:
    return {
        (profile.annotators[annotator], profile.relations[relation], draw): profile.cells[annotator, relation, draw]
        for annotator, relation, draw in np.ndindex(profile.cells.shape[:3])
    }


def _familiarity_compared(before: Integers, now: Integers) -> _Comparison:
    """Return how many texts are clearly less familiar than most were; small changes, as of names, do not matter."""
    usual = int(np.searchsorted(np.cumsum(before), before.sum() / 2)) - UNFAMILIAR
    old, new = (
        np.array([histogram[: max(usual, 0)].sum(), histogram[max(usual, 0) :].sum()]) for histogram in (before, now)
    )
    answers = [f"is {word} {usual / GRID:.2f}" for word in ("below", "at least")]
    return _Comparison(old, new, "the share of a text's n-grams that gold texts have", answers)


def _scores_compared(before: Integers, now: Integers) -> _Comparison:
    """Return the highest scores in bins of about equal mass over both sets combined."""
    mass = np.cumsum(before + now)
    places = np.searchsorted(mass, mass[-1] * np.arange(1, SCORE_BINS) / SCORE_BINS)
    starts = np.unique(np.append(0, places + 1))
    starts = starts[starts <= GRID]
    ends = [*(starts[1:] - 1).tolist(), GRID]
    ranges = [_range(low, high) for low, high in zip(starts.tolist(), ends, strict=True)]
    old, new = np.add.reduceat(before, starts), np.add.reduceat(now, starts)
    return _Comparison(old, new, "the highest score", ranges)


def _range(low: int, high: int) -> str:
    if low == 0:
        return f"is at most {high / GRID:.2f}"
    return f"is at least {low / GRID:.2f}" if high == GRID else f"is between {low / GRID:.2f} and {high / GRID:.2f}"
