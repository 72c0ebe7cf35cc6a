"""The probabilities of the labels of all rows, of gold rows from fits that did not see them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import CODE, Codes, Floats
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.core.identity import same_texts
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluation.scored import one_thread
from pcs_annotator.judging.fit_model import fit_model
from pcs_annotator.judging.weighing.label_shape import ONE, LabelShape
from pcs_annotator.runs.learn import counted_once, learning_of
from pcs_annotator.runs.settings import LearnSettings
from pcs_annotator.runs.sharing import held_out_rows


class Expected(NamedTuple):
    """Probability of every label, `[row, label]`: from the fit on all gold rows, and from fits without the row's text.

    They differ for gold rows and their copies only. `said` is the label of every row, `UNLABELLED` where it has none.
    """

    fitted: Floats
    held_out: Floats
    said: Codes


def expected_labels(
    votes: Votes, codes: Codes, settings: LearnSettings, texts: Sequence[str], shape: LabelShape = ONE
) -> Expected | None:
    """Return the probabilities of labels; None if there is too little gold to learn from, or no calibration.

    A copy of a text has the probabilities of the row that counts. Only numbers need a `shape`.
    """
    if (codes == UNLABELLED).all():
        return None
    once = counted_once(votes, codes, texts)
    with one_thread():
        # nothing but probabilities is wanted
        plain = replace(settings, max_error=None, resamples=0)
        how = learning_of(plain, shape=shape if shape.kind == "number" else ONE)
        model, trial = fit_model(votes, codes, how, distinct=once.distinct)
    fitted = model.judged(votes).probabilities
    if trial is None or fitted is None:
        return None
    said = np.where(model.unlabelled(votes), UNLABELLED, shape.choose(fitted, votes.labels)).astype(CODE)
    return Expected(fitted, held_out_rows(fitted, votes, trial, same_texts(texts)), said)
