"""Baselines: one published method per file, known by name; users' own register in the same way.

>>> from pcs_annotator.judging.baselines import baselines
>>> baselines.names()[:4]
['1s-top-k', '2s-top-k', 'ling-1s', 'majority-vote']
"""

from pcs_annotator.judging.baselines import linguistic, majority, p_true, self_consistency, spuq, top_k, zero_shot
from pcs_annotator.judging.baselines.baseline import Asks, Baseline, baseline, baselines

BUILT_IN = (linguistic, majority, p_true, self_consistency, spuq, top_k, zero_shot)

__all__ = ["BUILT_IN", "Asks", "Baseline", "baseline", "baselines"]
