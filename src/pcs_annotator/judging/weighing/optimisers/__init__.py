"""Optimisers: one file each, known by name; users' own register in the same way.

>>> from pcs_annotator.judging.weighing.optimisers import optimisers
>>> "lr" in optimisers.names()
True
"""

from pcs_annotator.judging.weighing.optimiser import Optimiser, optimiser, optimisers
from pcs_annotator.judging.weighing.optimisers import (
    auto,
    dawid_skene,
    ga,
    least_squares,
    logit,
    lr,
    lr_authors,
    naive_bayes,
    simple,
)

BUILT_IN = (auto, dawid_skene, ga, least_squares, logit, lr, lr_authors, naive_bayes, simple)

__all__ = ["BUILT_IN", "Optimiser", "optimiser", "optimisers"]
