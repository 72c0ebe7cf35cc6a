"""Confusion tables: how class-aware optimisers weigh a vote, and what that makes each cell worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Evidence, Weights


def weights_from_evidence(votes: Votes, evidence: Evidence, worth: Floats, told: Diagnostics) -> Weights:
    """Return weights that carry the evidence, summarised by what each cell is worth, `[annotator, relation]`."""
    return replace(Weights.normalised(votes, worth.sum(axis=1), worth.sum(axis=0), told), evidence=evidence)


def log_confusion(counts: Floats, pseudo: Floats) -> Floats:
    """Return log P(vote | label) from counts `[…, vote, label]` and pseudo-counts."""
    smoothed = counts + pseudo
    return np.asarray(np.log(smoothed) - np.log(smoothed.sum(axis=-2, keepdims=True)))


def mutual_information(log_likelihood: Floats, log_prior: Floats) -> Floats:
    """Return how much a cell's vote tells about the label, in nats, `[annotator, relation]`."""
    prior = np.exp(log_prior)
    joint = np.exp(log_likelihood) * prior
    marginal = joint.sum(axis=3, keepdims=True)
    return np.maximum(np.sum(joint * (log_likelihood - np.log(marginal)), axis=(2, 3)), 0.0)
