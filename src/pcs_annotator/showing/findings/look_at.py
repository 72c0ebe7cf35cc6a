"""All findings about a run, each in one sentence that says what to do."""

from __future__ import annotations

from pcs_annotator.core.weights import Flag, FlagKind
from pcs_annotator.runs.run_result import Facts
from pcs_annotator.showing.findings import answers, labels

IMPORTANCE: tuple[FlagKind, ...] = (
    "promise fell away",
    "no gold labels",
    "confidence below chance",
    "no better than one label",
    "label given too often",
    "label never given",
    "texts tell labels",
    "nothing accepted",
    "silent annotator",
    "rows without a label",
    "constant annotator",
    "disagreeing annotator",
    "label flips",
    "label given too rarely",
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


def what_to_look_at(facts: Facts) -> list[Flag]:
    """Return all findings, the most important first."""
    found = [*facts.learned.model.weights.diagnostics.flags, *labels.about_labels(facts), *answers.about_answers(facts)]
    return sorted(found, key=lambda flag: IMPORTANCE.index(flag.kind))
