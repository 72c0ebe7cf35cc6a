"""Published baselines by name; register your own in the same way.

>>> from pcs_annotator.judging.baselines import baselines
>>> baselines.names()[:4]
['1s-top-k', '2s-top-k', 'ling-1s', 'logprob']
"""

from pcs_annotator.judging.baselines import stated
from pcs_annotator.judging.baselines.baseline import Asks, Baseline, baseline, baselines

BUILT_IN = (stated,)

__all__ = ["BUILT_IN", "Asks", "Baseline", "baseline", "baselines"]
