"""The paper's research questions, answered from recorded votes.

Every figure is cross-validated, so no row is judged by weights that saw it.
"""

from collections.abc import Callable

from pcs_annotator.core.result_table import Experiment
from pcs_annotator.studies.paper.models import each_relation, several_models, single_models, temperatures
from pcs_annotator.studies.paper.rivals import gold_size, published_baselines
from pcs_annotator.studies.paper.study import Replication, Settings

EXPERIMENTS: dict[str, Callable[[Replication], Experiment]] = {
    "rq1": single_models,
    "rq2": published_baselines,
    "rq3": several_models,
    "rq4": each_relation,
    "size": gold_size,
    "temperature": temperatures,
}

__all__ = ["EXPERIMENTS", "Replication", "Settings"]
