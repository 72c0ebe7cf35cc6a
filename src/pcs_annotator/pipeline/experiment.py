"""The paper's experiments, on recorded votes or on texts that models are asked about first."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from pcs_annotator.core.elicitations import base_annotator
from pcs_annotator.core.result_table import Experiment
from pcs_annotator.core.votes import check_known
from pcs_annotator.errors import MissingPackage, UndefinedMetric, UnknownNameError
from pcs_annotator.files.config import Config
from pcs_annotator.files.plots import draw_curves, draw_pairs
from pcs_annotator.files.runs import write_json
from pcs_annotator.judging.evaluation.experiments import EXPERIMENTS, Settings, Study
from pcs_annotator.pipeline.evaluate import RecordedVotes, Splitting, all_baselines, write_result
from pcs_annotator.pipeline.experiment_sources import Asking, ExperimentSource, ask_source
from pcs_annotator.pipeline.learn import one_thread
from pcs_annotator.version import __version__

ALL = "all"
NAMES = (*EXPERIMENTS, ALL)
HEAVY = ("optimisers",)
"""Twelve figures of ten optimisers: half of all the time would go into resamples."""
MOST_RESAMPLES = 1000
PACKAGES = ("numpy", "scipy", "scikit-learn")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRequest:
    """Which experiments to run on what.

    Attributes:
        name: Of an experiment, or `all`.
        sources: Votes, run folders or texts.
        out: Where everything goes; runs over texts into `runs` there.
        optimiser: What learns the weights of PCS.
        relations: Which recorded relations PCS uses; empty for all. Texts are asked about as `asking` says.
        models: Which recorded models; empty for all.
        rewritten: Relations whose variants a model wrote; those of a run are known.
        splitting: Folds, seeds and resamples.
        asking: How models are asked about texts.
        on_step: Told what is done next.
    """

    name: str
    sources: Sequence[ExperimentSource]
    out: Path
    optimiser: str = "lr"
    relations: Sequence[str] = ()
    models: Sequence[str] = ()
    rewritten: Sequence[str] = ()
    splitting: Splitting = field(default_factory=Splitting)
    asking: Asking = field(default_factory=lambda: Asking(config=Config()))
    on_step: Callable[[str], None] = lambda step: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experimented:
    """What came of it: tables and figures, the files written, what could not be, and questions left unanswered."""

    experiments: Sequence[Experiment]
    files: Sequence[Path]
    notes: Sequence[str]
    unanswered: Mapping[str, int]


def experiment(request: ExperimentRequest) -> Experimented:
    """Run experiments and write their tables and plots; models are asked only about texts that have no votes yet."""
    unanswered: dict[str, int] = {}
    sets: dict[str, RecordedVotes] = {}
    for source in request.sources:
        place = source.path
        if source.kind == "texts":
            request.on_step(f"asking about {source.name}")
            asked = ask_source(source, request.out / "runs" / source.name, request.asking, request.splitting.folds)
            unanswered.update(asked.unanswered)
            place = asked.folder
        sets[source.name] = _chosen(RecordedVotes.read(place), request, source)
    settings = _settings(request, sets)
    study = Study.of({name: (found.votes, found.gold) for name, found in sets.items()}, settings)
    if not study.benches:
        raise UndefinedMetric("; ".join(f"{name}: {reason}" for name, reason in study.refused.items()))
    found, files, notes = [], [], []
    for name in EXPERIMENTS if request.name == ALL else [request.name]:
        request.on_step(name)
        with one_thread():
            one = EXPERIMENTS[name](_lighter(study) if name in HEAVY else study)
        found.append(one)
        files += [path for table in one.tables for path in write_result(table, request.out)]
        drawn, trouble = _drawn(one, request.out)
        files += drawn
        notes += [trouble] if trouble and trouble not in notes else []
    about = request.out / "experiments.json"
    write_json(about, _about(request, sets, settings))
    return Experimented(experiments=found, files=[*files, about], notes=notes, unanswered=unanswered)


def _chosen(found: RecordedVotes, request: ExperimentRequest, source: ExperimentSource) -> RecordedVotes:
    """Return the votes of the models that were named; a name that is not there is an error that says what is."""
    if source.kind == "texts":
        return found
    try:
        votes = found.votes
        check_known(request.relations, votes.relations, "relation")
        bases = [base_annotator(name) for name in votes.annotators]
        check_known(request.models, [*dict.fromkeys(bases)], "model")
    except UnknownNameError as error:
        raise UnknownNameError(f"{source.name}: {error}") from None
    kept = [name for name, base in zip(votes.annotators, bases, strict=True) if base in request.models]
    return found._replace(votes=votes.select(annotators=kept)) if request.models else found


def _settings(request: ExperimentRequest, sets: Mapping[str, RecordedVotes]) -> Settings:
    recorded = list(dict.fromkeys(name for found in sets.values() for name in found.votes.relations))
    check_known(request.rewritten, recorded, "relation")
    rewritten = frozenset(request.rewritten).union(*(found.rewritten for found in sets.values()))
    return Settings(
        how=request.splitting.how(rewritten),
        optimiser=request.optimiser,
        relations=tuple(request.relations) or None,
        baselines=all_baselines(),
    )


def _lighter(study: Study) -> Study:
    how = study.settings.how
    fewer = replace(how, resamples=min(how.resamples, MOST_RESAMPLES))
    return replace(study, settings=replace(study.settings, how=fewer))


def _drawn(one: Experiment, out: Path) -> tuple[list[Path], str]:
    """Return the plots of an experiment, or why there are none."""
    files: list[Path] = []
    try:
        if one.curves:
            files += draw_curves(one.curves, out / one.name)
        if one.pairs:
            files += draw_pairs(one.pairs, one.rival, out / one.name)
    except MissingPackage as error:
        return [], str(error)
    return files, ""


def _about(request: ExperimentRequest, sets: Mapping[str, RecordedVotes], settings: Settings) -> dict[str, Any]:
    """Return what somebody needs to take the same figures again."""
    how = settings.how
    return {
        "version": __version__,
        "python": platform.python_version(),
        "packages": {name: version_of(name) for name in PACKAGES},
        "experiments": list(EXPERIMENTS) if request.name == ALL else [request.name],
        "settings": {
            **asdict(request.splitting),
            "seeds": list(how.seeds),
            "optimiser": settings.optimiser,
            "optimisers": list(settings.optimisers),
            "baselines": [baseline.name for baseline in settings.baselines],
            "relations": None if settings.relations is None else list(settings.relations),
            "rewritten": sorted(how.rewritten),
            "gold_sizes": list(settings.sizes),
            "draws_per_size": settings.draws,
        },
        "sources": {
            source.name: {
                "source": source.spec,
                "rows": len(sets[source.name].votes),
                "gold_rows": int((sets[source.name].gold >= 0).sum()),
                "annotators": list(sets[source.name].votes.annotators),
                "relations": list(sets[source.name].votes.relations),
                "labels": list(sets[source.name].votes.labels),
            }
            for source in request.sources
        },
    }
