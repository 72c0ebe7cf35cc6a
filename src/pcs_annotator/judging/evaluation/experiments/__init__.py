"""The paper's research questions, answered from recorded votes: one file each.

Every figure is cross-validated, so no row is judged by weights that saw it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pcs_annotator.core.result_table import Experiment
from pcs_annotator.errors import UnknownNameError
from pcs_annotator.judging.evaluation.experiments.baselines import published_baselines
from pcs_annotator.judging.evaluation.experiments.each_relation import each_relation
from pcs_annotator.judging.evaluation.experiments.gold_size import gold_size
from pcs_annotator.judging.evaluation.experiments.optimiser_choice import optimiser_choice
from pcs_annotator.judging.evaluation.experiments.several_models import several_models
from pcs_annotator.judging.evaluation.experiments.single_models import single_models
from pcs_annotator.judging.evaluation.experiments.study import Recorded, Settings, Study
from pcs_annotator.judging.evaluation.experiments.temperature import temperatures

EXPERIMENTS: dict[str, Callable[[Study], Experiment]] = {
    "rq1": single_models,
    "rq2": published_baselines,
    "rq3": several_models,
    "rq4": each_relation,
    "size": gold_size,
    "optimisers": optimiser_choice,
    "temperature": temperatures,
}

__all__ = ["EXPERIMENTS", "Recorded", "Settings", "Study", "run_experiments"]


def run_experiments(
    names: Sequence[str], sets: Mapping[str, Recorded], settings: Settings | None = None
) -> list[Experiment]:
    """Return what the named experiments give on some datasets.

    Args:
        names: Of `EXPERIMENTS`; `all` for every one.
        sets: Dataset name → votes and gold codes.
        settings: How they are run.
    """
    wanted = list(EXPERIMENTS) if "all" in names else list(names)
    unknown = [name for name in wanted if name not in EXPERIMENTS]
    if unknown:
        raise UnknownNameError(f"no experiment is called {unknown[0]!r}; known: all, {', '.join(EXPERIMENTS)}")
    study = Study.of(sets, settings)
    return [EXPERIMENTS[name](study) for name in wanted]
