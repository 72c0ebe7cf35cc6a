"""The probability of every label of every row, from a fit on all gold rows and from fits that did not see the row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.copies import same_texts
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.judging.evaluation.scored import one_thread
from pcs_annotator.judging.fit_model import fit_model, labelled_rows
from pcs_annotator.runs.learn import counted_once, learning_of
from pcs_annotator.runs.settings import LearnSettings


class Expected(NamedTuple):
    """Probability of every label, `[row, label]`: from the fit on all gold rows, and from fits without the row.

    They differ for gold rows only.
    """

    fitted: Floats
    held_out: Floats


def expected_labels(votes: Votes, codes: Codes, settings: LearnSettings, texts: Sequence[str]) -> Expected | None:
    """Return the probabilities of labels; None if there is too little gold to learn from, or no calibration.

    A copy of a text has the probabilities of the row that counts.
    """
    if (codes == UNLABELLED).all():
        return None
    once = counted_once(votes, codes, texts)
    with one_thread():
        model, trial = fit_model(votes, codes, replace(learning_of(settings), promise=None), distinct=once.distinct)
    fitted = model.judged(votes).probabilities
    if trial is None or fitted is None:
        return None
    rows, _ = labelled_rows(votes.take(once.distinct), codes[once.distinct])
    same = dict(zip(votes.ids, same_texts(texts).tolist(), strict=True))
    place = {same[name]: row for row, name in enumerate(rows.ids)}
    held_out, columns = fitted.copy(), positions_of(votes.labels, rows.labels, "label")
    for row in np.flatnonzero(codes != UNLABELLED).tolist():
        if same[votes.ids[row]] in place:  # copies that contradict each other have no fit of their own
            held_out[row] = trial.probabilities[place[same[votes.ids[row]]]][columns]
    return Expected(fitted, held_out)
