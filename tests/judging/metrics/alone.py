"""Figures of one set of rows, for tests."""

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.judging.metrics.figures import ChosenFigures, chosen_on


def chosen(scores: Floats, gold: Codes) -> ChosenFigures:
    return chosen_on(scores, gold, np.ones((len(gold), 1)))


def accuracy(scores: Floats, gold: Codes) -> float:
    return float(chosen(scores, gold).accuracy[0])


def ece(scores: Floats, gold: Codes) -> float:
    return float(chosen(scores, gold).ece[0])


def log_loss(scores: Floats, gold: Codes) -> float:
    """The mean of −log of the gold label's probability."""
    return float(-np.mean(np.log(scores[np.arange(len(gold)), gold])))
