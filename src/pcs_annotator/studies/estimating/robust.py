"""`pcs robust`: would another model, question or way of learning have changed the conclusion? No model is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.base.errors import ConfigError, UndefinedMetric
from pcs_annotator.core.gold import gold_codes
from pcs_annotator.core.result_table import Figure
from pcs_annotator.core.votes import Votes
from pcs_annotator.runs.learn import expected_labels
from pcs_annotator.runs.run import Run
from pcs_annotator.studies.estimating.answers import Estimated, EstimateQuestion, Line, plain
from pcs_annotator.studies.estimating.estimate import answer
from pcs_annotator.studies.estimating.evidence import evidence_of

OPTIMISERS = ("uniform", "lr")
MOST_CHOICES = 200


class AnalysisChoice(NamedTuple):
    """What could have been chosen: models, relations, and how weights are learned."""

    annotators: tuple[str, ...]
    relations: tuple[str, ...]
    optimiser: str

    def said(self, votes: Votes) -> tuple[str, str, str]:
        """Return models, relations and optimiser in words, short where it is all of them."""
        models = "all models" if self.annotators == tuple(votes.annotators) else " + ".join(self.annotators)
        views = "all relations" if self.relations == tuple(votes.relations) else " + ".join(self.relations)
        return models, views, self.optimiser


class Specification(NamedTuple):
    """A quantity under one choice."""

    parts: tuple[str, str, str]  # models, relations and optimiser
    corrected: Figure
    naive: Figure

    @property
    def choice(self) -> str:
        """All of the choice."""
        return " · ".join(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust:
    """A quantity under all choices."""

    name: str  # what is estimated
    # what the sign and significance are about: 0 for a difference or coefficient, one half for a share
    reference: float
    made: Specification  # the choice that the run made, first among the specifications
    specifications: Sequence[Specification]  # all of them
    left_out: int = 0  # choices under which it could not be estimated

    def flips(self, method: str) -> tuple[float, float]:
        """Return the share of choices with another sign, and with another conclusion, than the run's corrected one."""
        ours = _side(self.made.corrected, self.reference)
        sides = [_side(getattr(one, method), self.reference) for one in self.specifications]
        count = len(sides)
        signs = sum(side.sign != ours.sign for side in sides) / count
        return signs, sum(side.conclusion != ours.conclusion for side in sides) / count

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        rates = {method: dict(zip(("sign", "conclusion"), self.flips(method), strict=True)) for method in _METHODS}
        listed = [
            {"choice": one.choice, **{method: plain(getattr(one, method)) for method in _METHODS}}
            for one in self.specifications
        ]
        return {
            "name": self.name,
            "reference": self.reference,
            "flips": rates,
            "specifications": listed,
            "left_out": self.left_out,
        }


_METHODS = ("corrected", "naive")


class _Side(NamedTuple):
    sign: bool
    conclusion: int


def _side(figure: Figure, reference: float) -> _Side:
    """Return on which side of the reference a figure is, and what its interval says: below, above, or undecided."""
    low, high = figure.interval or (figure.value, figure.value)
    return _Side(figure.value > reference, (low > reference) - (high < reference))


def robust(path: Path, question: EstimateQuestion) -> list[Robust]:
    """Answer a question under every choice that the recorded votes allow; one result per quantity."""
    recorded = Run.open(path)
    if recorded.sampled:
        raise ConfigError(f"{path} is the run of a large table: use a run of a random sample of it")
    votes, evidence = recorded.votes, evidence_of(recorded, question.probability or None)
    gold = gold_codes(votes, recorded.gold.labels)
    found: dict[tuple[str, str], list[Specification]] = {}
    left_out = 0
    for choice in choices(votes, recorded.settings.optimiser):
        part = votes.select(annotators=choice.annotators, relations=choice.relations)
        how = replace(recorded.settings, optimiser=choice.optimiser)
        known = expected_labels(part, gold, how, recorded.texts)
        try:
            assert known is not None  # the run itself could be learned from
            used = replace(evidence, expected=known.fitted, held_out=known.held_out[evidence.sample.rows])
            lines = _lines(answer(used, question))
        except UndefinedMetric:
            left_out += 1
            continue
        for line in lines:
            one = Specification(choice.said(votes), line.corrected, line.naive)
            found.setdefault((line.name, line.group), []).append(one)
    tested = bool(question.formula or question.columns_of_groups)
    return [
        Robust(
            name=f"{name} · {group}" if group else name,
            reference=0.0 if tested or question.values is not None else 0.5,
            made=listed[0],
            specifications=listed,
            left_out=left_out,
        )
        for (name, group), listed in found.items()
    ]


def _lines(found: Estimated) -> Sequence[Line]:
    """Return what a conclusion is about: differences if there are groups."""
    return found.differences or found.lines


def choices(votes: Votes, optimiser: str) -> list[AnalysisChoice]:
    """Return all choices, the run's own first: each model alone and all together, and likewise relations."""
    annotators, relations = tuple(votes.annotators), tuple(votes.relations)
    panels = dict.fromkeys([annotators, *((name,) for name in annotators)])
    original = votes.original
    others = ((original, name) for name in relations if name != original)
    views = dict.fromkeys([relations, (original,), *others])
    optimisers = dict.fromkeys([optimiser, *OPTIMISERS])
    found = (AnalysisChoice(who, which, how) for who in panels for which in views for how in optimisers)
    return list(islice(found, MOST_CHOICES))
