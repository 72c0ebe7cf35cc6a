"""The results of a model on many rows as columns, without an object for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model, Verdicts
from pcs_annotator.tables.result_columns import Results

if TYPE_CHECKING:
    import pyarrow as pa


def result_columns(model: Model, votes: Votes, judged: Verdicts) -> dict[str, pa.Array]:
    """Return the columns of results for all rows, as `Model.judge` and `with_outcomes` do."""
    import pyarrow as pa

    silent = votes.silent
    sure = None if judged.probabilities is None else np.where(silent[:, np.newaxis], np.nan, judged.probabilities)
    rows = np.arange(len(votes))
    decided = zip(model.decisions(votes, judged), silent.tolist(), strict=True)
    return Results(
        labels=votes.labels,
        label=pa.array(votes.labels, pa.string()).take(pa.array(judged.best, pa.int64(), mask=silent)),
        decision=["review" if no else one for one, no in decided],
        reason=model.reasons(votes, judged),
        confidence=np.full(len(votes), np.nan) if sure is None else sure[rows, judged.best],
        scores=judged.scores,
        probabilities=sure,
        sets=_sets(model, votes, judged),
    ).columns()


def _sets(model: Model, votes: Votes, judged: Verdicts) -> pa.Array | None:
    import pyarrow as pa

    if model.sets is None or judged.probabilities is None:
        return None
    patterns, places = np.unique(model.sets.of(judged.probabilities), axis=0, return_inverse=True)
    names = ["|".join(np.array(votes.labels)[pattern].tolist()) for pattern in patterns]
    return pa.array(names, pa.string()).take(pa.array(places.ravel()))
