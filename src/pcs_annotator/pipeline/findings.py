"""What to look at: what is or may be wrong with a run, each in one sentence that says what to do.

The command line and the report show the same findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Mask
from pcs_annotator.core.gold import UNLABELLED, gold_codes
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import is_empty
from pcs_annotator.core.variant import ORIGINAL, VariantCount
from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Flag, FlagKind
from pcs_annotator.judging.metrics.metrics import exact_interval
from pcs_annotator.judging.promising.drift import MAX_P_VALUE, MIN_CHANGE, homogeneity
from pcs_annotator.pipeline.certificate_text import promised
from pcs_annotator.pipeline.languages import MANY, MOST, languages_of
from pcs_annotator.pipeline.learn import Learned, counted_once
from pcs_annotator.relations.language import LIMITS

FEW_VOTES = 0.2
MANY_UNREADABLE = 0.1
LEAST_UNREADABLE = 5
MANY_TIMES = 2.0
MANY_CHOSEN = 0.1
IMPORTANCE: tuple[FlagKind, ...] = (
    "promise fell away",
    "no gold labels",
    "confidence below chance",
    "label given too often",
    "silent annotator",
    "rows without a label",
    "constant annotator",
    "chance not ruled out",
    "uniform fallback",
    "not for this language",
    "relation without votes",
    "unreadable answers",
    "relation with few votes",
    "texts cut",
    "gold contradictory",
    "gold chosen",
    "label without gold",
    "no original",
    "one annotator decides alone",
    "gold repeated",
)
"""Kinds of findings, the most important first."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What findings are made from.

    Attributes:
        votes: All votes.
        outcomes: The label of every item.
        gold: The gold label of every item or None; empty if none has one.
        learned: The model, and its figures.
        rewrites: How rewrites ended, per relation and reason; empty if that is unknown.
        cut: Annotator → texts that did not fit into its model's context.
        texts: The text of every item; None if unknown.
        random_sample: Which gold rows were drawn at random or may be assumed to be; None for all.
    """

    votes: Votes
    outcomes: Sequence[Outcome]
    gold: Sequence[object]
    learned: Learned
    rewrites: Sequence[VariantCount] = ()
    cut: Mapping[str, int] = field(default_factory=dict)
    texts: Sequence[str] | None = None
    random_sample: Mask | None = None

    @cached_property
    def gold_codes(self) -> Codes:
        """The gold labels that are known, one for every text, as positions in the labels."""
        return self._gold_codes(None)

    @cached_property
    def random_gold_codes(self) -> Codes:
        """Those of rows drawn at random, which tell how common labels are."""
        return self._gold_codes(self.random_sample)

    @cached_property
    def language_limits(self) -> dict[str, int]:
        """Relation → texts to which it did not apply because of their language, where these are many."""
        counts: Counter[str] = Counter()
        for one in self.rewrites:
            if one.status == "not_applicable" and one.reason.endswith(LIMITS):
                counts[one.relation] += one.times
        return {name: times for name, times in counts.items() if times > MANY * len(self.votes)}

    def _gold_codes(self, among: Mask | None) -> Codes:
        codes = gold_codes(self.votes, self.gold or [None] * len(self.votes))
        codes = codes if among is None else np.where(among, codes, UNLABELLED).astype(np.int8)
        return codes[(codes != UNLABELLED) & counted_once(self.votes, codes, self.texts).distinct]

    @property
    def label_counts(self) -> Counter[str]:
        """How often each label was given, every text counted once."""
        nothing = np.full(len(self.votes), UNLABELLED, dtype=np.int8)
        counted = counted_once(self.votes, nothing, self.texts).distinct.tolist()
        pairs = zip(self.outcomes, counted, strict=True)
        return Counter(one.label for one, counts in pairs if counts and one.label is not None)


def what_to_look_at(facts: Facts) -> list[Flag]:
    """Return all findings, the most important first."""
    found = [
        *facts.learned.model.weights.diagnostics.flags,
        *_revoked(facts),
        *_without_gold(facts),
        *_chosen_gold(facts),
        *_chance(facts),
        *_given_too_often(facts),
        *_without_label(facts),
        *_not_for_this_language(facts),
        *_few_votes(facts),
        *_unreadable(facts),
        *texts_cut(facts.cut, len(facts.votes)),
    ]
    return sorted(found, key=lambda flag: IMPORTANCE.index(flag.kind))


def _revoked(facts: Facts) -> Iterator[Flag]:
    certificate = facts.learned.model.certificate
    if certificate is not None and certificate.revoked:
        detail = f"{promised(certificate).headline}; no label is accepted until a new fit: label more random rows"
        yield Flag("promise fell away", detail)


def _without_gold(facts: Facts) -> Iterator[Flag]:
    if not len(facts.gold_codes):
        detail = (
            "how often the labels are right is unknown, even where all answers agree: label some rows (30 are a start) "
            "and run pcs fit"
        )
        yield Flag("no gold labels", detail)


def _chosen_gold(facts: Facts) -> Iterator[Flag]:
    gold = len(facts.gold_codes)
    chosen = gold - len(facts.random_gold_codes)
    if chosen and chosen >= MANY_CHOSEN * gold:
        detail = (
            f"{chosen:,} of {gold:,} gold rows were chosen, not drawn at random, and are mostly harder than others, so "
            "figures look worse than they are; a promise counts random rows alone"
        )
        yield Flag("gold chosen", detail)


def _chance(facts: Facts) -> Iterator[Flag]:
    """Yield that guessing would do as well: by the held-out class AUROC, or by the mean confidence."""
    if facts.learned.figures:
        auroc = facts.learned.figures[0].auroc
        low, high = auroc.interval.rounded(2)
        figures = f"a class AUROC of {auroc.value:.2f} [{low:.2f}, {high:.2f}] on {auroc.n:,} gold rows"
        if auroc.interval.high < 0.5:
            detail = f"labels are told apart worse than by chance: {figures}; check that gold and labels mean the same"
            yield Flag("confidence below chance", detail)
        elif auroc.interval.low <= 0.5:
            detail = (
                f"PCS may tell labels apart no better than chance: {figures}; use better models, or label more rows"
            )
            yield Flag("chance not ruled out", detail)
    sure = [outcome.confidence for outcome in facts.outcomes if outcome.confidence is not None]
    gold = facts.random_gold_codes
    if not sure or not len(gold):
        return
    counts = np.bincount(gold)
    mean, top = float(np.mean(sure)), int(counts.argmax())
    if mean < exact_interval(int(counts[top]), len(gold)).low:
        detail = (
            f"the mean confidence is {_percent(mean)}, but {_percent(counts[top] / len(gold))} of {len(gold):,} gold "
            f"rows say {facts.votes.labels[top]!r}: always giving that label would be right more often"
        )
        yield Flag("confidence below chance", detail)


def _given_too_often(facts: Facts) -> Iterator[Flag]:
    """Yield the labels whose share is far above that among gold, beyond what samples of this size show by chance."""
    labels, gold = facts.votes.labels, facts.random_gold_codes
    given = facts.label_counts
    rows = given.total()
    if not rows or not len(gold):
        return
    expected = np.bincount(gold, minlength=len(labels))
    for code, label in enumerate(labels):
        share, usual = given[label] / rows, expected[code] / len(gold)
        if share < usual + MIN_CHANGE and share < MANY_TIMES * usual:
            continue
        usually, here = (np.array([one, n - one]) for one, n in ((expected[code], len(gold)), (given[label], rows)))
        if share > usual and homogeneity(usually, here) < MAX_P_VALUE / len(labels):
            detail = (
                f"{label!r} is the label of {_percent(share)} of {rows:,} rows, but of {_percent(usual)} of the "
                f"{len(gold):,} gold rows: look at rows with this label and say in the instruction what it does not "
                "mean, unless the gold rows were chosen to have another mix of labels"
            )
            yield Flag("label given too often", detail)


def _without_label(facts: Facts) -> Iterator[Flag]:
    empty = np.array([outcome.label is None for outcome in facts.outcomes], dtype=np.bool_)
    unasked = empty & (facts.votes.codes == NOT_ASKED).all(axis=(1, 2, 3))
    blank = np.zeros_like(empty)
    if facts.texts is not None:
        blank = empty & np.array([is_empty(text) for text in facts.texts], dtype=np.bool_)
    for rows, why in (
        (unasked & ~blank, "because no question was answered: run again, with a higher limit if one was reached"),
        (empty & ~unasked & ~blank, "because no model gave a usable answer"),
        (blank, "because the text is empty"),
    ):
        if count := int(rows.sum()):
            yield Flag(
                "rows without a label", f"{f'{count:,} rows have' if count > 1 else '1 row has'} no label, {why}"
            )


class _Ends(NamedTuple):
    """How the rewrites of one relation ended without a text to ask about."""

    not_applicable: Counter[str]
    rejected: Counter[str]


def _not_for_this_language(facts: Facts) -> Iterator[Flag]:
    """Yield the rules that did not apply to many texts because of their language, and what to use instead."""
    limits = facts.language_limits
    if limits and facts.texts is not None:
        yield Flag("not for this language", languages_of(facts.texts).limited(limits, len(facts.votes)))


def _few_votes(facts: Facts) -> Iterator[Flag]:
    votes = facts.votes
    if votes.silent.all():  # then the models are to blame, not the relations
        return
    for place, name in enumerate(votes.relations):
        cells = votes.codes[:, :, place]
        voted = (cells >= 0).any(axis=(1, 2))
        explained = facts.texts is not None and facts.language_limits.get(name, 0) > MOST * (~voted).sum()
        if name == ORIGINAL or voted.sum() >= FEW_VOTES * len(votes) or explained:
            continue
        unreadable = int((~voted & (cells == ABSTAINED).any(axis=(1, 2))).sum())
        cast = "no votes" if not voted.any() else f"votes on only {voted.sum():,} of {len(votes):,} texts"
        kind: FlagKind = "relation with few votes" if voted.any() else "relation without votes"
        left = len(votes) - int(voted.sum()) - unreadable
        yield Flag(kind, f"{name} cast {cast}: {_why(_ends(facts.rewrites, name), unreadable, left)}")


def _ends(rewrites: Sequence[VariantCount], relation: str) -> _Ends:
    ends = _Ends(Counter(), Counter())
    for one in rewrites:
        if one.relation == relation and one.status in ends._fields:
            getattr(ends, one.status)[one.reason] += one.times
    return ends


def _why(ends: _Ends, unreadable: int, left: int) -> str:
    """Return why a relation has few votes, the commonest cause first, and what helps against that one.

    `left` counts texts without any answer under the relation, whether or not it is known how their rewrite ended.
    """
    unasked = max(left - ends.not_applicable.total() - ends.rejected.total(), 0)
    causes = [
        (
            ends.not_applicable.total(),
            f"it did not apply to {{}} texts{_commonest(ends.not_applicable)}",
            "leave it out of --relations, or look for others with pcs relations check",
        ),
        (
            ends.rejected.total(),
            f"a check rejected {{}} rewrites{_commonest(ends.rejected)}",
            "look at the rejected rewrites in the report, or use a better --rewriter",
        ),
        (
            unreadable,
            "no answer to {} texts was readable",
            "look at the answers with pcs ledger export, or use a model that keeps to the labels",
        ),
        (unasked, "{} texts were not asked about", "run the same command again, or leave it out of --relations"),
    ]
    causes = sorted((cause for cause in causes if cause[0]), key=lambda cause: -cause[0])
    return f"{', '.join(what.format(f'{times:,}') for times, what, _ in causes)}; {causes[0][2]}"


def _commonest(reasons: Counter[str]) -> str:
    top = next((reason for reason, _ in reasons.most_common(1)), "")
    return f" ({'most often: ' if len(reasons) > 1 else ''}{top})" if top else ""


def _unreadable(facts: Facts) -> Iterator[Flag]:
    for place, name in enumerate(facts.votes.annotators):
        codes = facts.votes.codes[:, place]
        asked, silent = int((codes != NOT_ASKED).sum()), int((codes == ABSTAINED).sum())
        if LEAST_UNREADABLE <= silent < asked and silent >= MANY_UNREADABLE * asked:
            detail = (
                f"{silent:,} of {asked:,} answers of {name} have no readable label: look at them with pcs ledger "
                "export, or use a model that keeps to the labels"
            )
            yield Flag("unreadable answers", detail)


def texts_cut(cut: Mapping[str, int], texts: int) -> Iterator[Flag]:
    """Yield the annotators that saw only a part of some texts."""
    for name, times in cut.items():
        detail = (
            f"{times:,} of {texts:,} texts do not fit into the context of {name}, which saw only a part of "
            "them: use a model with a longer context, or split these texts"
        )
        yield Flag("texts cut", detail)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
