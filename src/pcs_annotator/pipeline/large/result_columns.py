"""The results of a model on many rows as columns, without an object for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pcs_annotator.core.votes import Votes
from pcs_annotator.files.tables import SCORE_DECIMALS
from pcs_annotator.judging.model import Model, Verdicts

if TYPE_CHECKING:
    import pyarrow as pa


def result_columns(model: Model, votes: Votes, judged: Verdicts) -> dict[str, pa.Array]:
    """Return label, confidence, decision, reason and scores of all rows, as `Model.judge` and `with_outcomes` do."""
    import pyarrow as pa

    silent = votes.silent
    labels = pa.array(votes.labels, pa.string())
    rows = np.arange(len(votes))
    sure = judged.probabilities
    confidence = np.zeros(len(votes)) if sure is None else sure[rows, judged.best]
    unsure = silent | (sure is None)
    decided = model.decisions(votes, judged)
    columns = {
        "label": labels.take(pa.array(judged.best, pa.int64(), mask=silent)),
        "confidence": pa.array(confidence.round(SCORE_DECIMALS), pa.float64(), mask=unsure),
        "decision": pa.array(
            ["review" if no else one for one, no in zip(decided, silent.tolist(), strict=True)], pa.string()
        ),
        "reason": pa.array(model.reasons(votes, judged), pa.string()),
    }
    if model.sets is not None and sure is not None:
        plausible = model.sets.of(sure)
        patterns, places = np.unique(plausible, axis=0, return_inverse=True)
        names = ["|".join(np.array(votes.labels)[pattern].tolist()) for pattern in patterns]
        columns["label_set"] = pa.array(names, pa.string()).take(pa.array(places.ravel()))
    for code, label in enumerate(votes.labels):
        columns[f"pcs_{label}"] = pa.array(judged.scores[:, code].round(SCORE_DECIMALS), pa.float64())
    if sure is not None:
        for code, label in enumerate(votes.labels):
            columns[f"p_{label}"] = pa.array(sure[:, code].round(SCORE_DECIMALS), pa.float64(), mask=silent)
    return columns
