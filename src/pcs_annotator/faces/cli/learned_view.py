"""What was learned, as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pcs_annotator.base.plain import to_plain
from pcs_annotator.core.outcome import Counts
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Share
from pcs_annotator.runs import learn
from pcs_annotator.runs.run_result import Facts
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.findings import what_to_look_at
from pcs_annotator.showing.formats import count
from pcs_annotator.showing.report.sections.quality import METRICS, quality
from pcs_annotator.showing.report.sections.questions import weights
from pcs_annotator.showing.report.sections.summary import look_at, promise

if TYPE_CHECKING:  # this module imports the code that asks models
    from pcs_annotator.verbs import label


def learned_json(learned: learn.Learned, votes: Votes) -> dict[str, Any]:
    """Return everything that `learned_shown` shows, and the calibration error of the raw score, as plain values."""
    weights = learned.model.weights
    details = weights.diagnostics
    annotators, relations = weights.shares(votes)
    return {
        "gold_rows": details.gold_rows,
        "optimiser": details.optimiser,
        "candidates": dict(details.candidates),
        "weights": {
            "by_annotator": {name: share and share.weight for name, share in annotators.items()},
            "by_relation": {name: share and share.weight for name, share in relations.items()},
            "annotator_intervals": _intervals(annotators),
            "relation_intervals": _intervals(relations),
        },
        "cross_validation": [_figures_json(figures) for figures in learned.figures],
        "no_cross_validation": learned.no_figures,
        "flags": [flag._asdict() for flag in details.flags],
        **promise_json(learned),
    }


def _intervals(shares: Mapping[str, Share | None]) -> dict[str, list[float]]:
    return {name: list(share.interval) for name, share in shares.items() if share and share.interval}


def _figures_json(figures: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"method": figures.method}
    for name in (*(name for name, _ in METRICS), "ece_score"):
        estimate = figures.figures.get(name)
        result[name] = estimate and {"value": estimate.value, **estimate.interval._asdict(), "n": estimate.n}
    result |= {"questions": figures.questions, "uses_log_probabilities": figures.graded}
    for name, metric, adjusted in (("behind", "auroc", "holm"), ("accuracy_behind", "accuracy", "holm_accuracy")):
        test = getattr(figures, name)
        if test:
            p_values = {"p_value": test.p_value, "p_holm": getattr(figures, adjusted)}
            result[name] = {metric: test.difference, **test.interval._asdict(), **p_values}
    return result


def promise_json(judged: learn.Learned | label.Labelled) -> dict[str, Any]:
    """Return the certificate, what decisions are based on, and how the answers compare, as plain values."""
    model = judged.model
    return {
        "certificate": None if model.certificate is None else model.certificate.as_json(),
        "calibrated": model.calibrated,
        "confidence_margin": model.margin,
        "decided_by": model.decided_by,
        "drift": judged.drift and {**to_plain(judged.drift), "unseen": judged.drift.unseen},
    }


def learned_shown(learned: learn.Learned, votes: Votes, counts: Counts, *, folds: int, unit: str) -> list[b.Block]:
    """Return the weight of each model and relation, how good the weights are, and what is promised."""
    gold_rows = learned.model.weights.diagnostics.gold_rows
    size = f"{count(len(votes))} items × {len(votes.annotators)} models × {len(votes.relations)} relations"
    return [
        b.text(f"{size}; {count(gold_rows)} items have gold labels"),
        b.text(f"labels: {', '.join(votes.labels)}"),
        weights(learned, votes),
        quality(learned, folds, unit),
        promise(learned.model, learned.drift, counts),
    ]


def look_at_shown(facts: Facts, notes: Sequence[str]) -> Iterator[b.Block]:
    """Yield warnings, and what is or may be wrong; a fit has also warned about some of it."""
    details = {flag.detail for flag in what_to_look_at(facts)}
    yield from notes_shown([note for note in notes if note not in details])
    if details:
        yield look_at(facts)


def notes_shown(notes: Sequence[str]) -> Iterator[b.Block]:
    """Yield warnings."""
    yield from (b.text(f"note: {note}", kind="warning") for note in notes)
