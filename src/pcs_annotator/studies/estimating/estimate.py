"""`pcs estimate`: shares, means, differences between groups and regressions, corrected for the errors of the labels."""

from __future__ import annotations

from pathlib import Path

from pcs_annotator.runs.run import Run
from pcs_annotator.studies.estimating.answers import Estimated, Question
from pcs_annotator.studies.estimating.evidence import Evidence, evidence_of
from pcs_annotator.studies.estimating.regress import regress
from pcs_annotator.studies.estimating.shares import shares


def estimate_run(path: Path, question: Question) -> Estimated:
    """Answer a question about the labels of the run in a folder."""
    recorded = Run.open(path)
    return answer(evidence_of(recorded, question.probability or None, question.columns), question)


def answer(evidence: Evidence, question: Question) -> Estimated:
    """Answer a question from what is known about labels."""
    return regress(evidence, question) if question.formula else shares(evidence, question)
