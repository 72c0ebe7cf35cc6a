"""The paper's experiments on recorded votes; no model is asked."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from pcs_annotator.base.errors import ConfigError, UndefinedMetric, UnknownNameError
from pcs_annotator.base.fields import setting
from pcs_annotator.core.elicitations import base_annotator
from pcs_annotator.core.result_table import Experiment
from pcs_annotator.core.votes import check_known
from pcs_annotator.judging.evaluate.methods import all_baselines
from pcs_annotator.judging.evaluate.scored import EvaluationOptions, Splitting
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs.recorded_votes import RecordedVotes
from pcs_annotator.showing.report import charts
from pcs_annotator.studies.paper.research_questions import EXPERIMENTS
from pcs_annotator.studies.paper.study import Replication, Settings
from pcs_annotator.tables.find import table_stem
from pcs_annotator.tables.write import STRICT, OutputPolicy
from pcs_annotator.verbs.evaluate import WRITERS, check_folder, write_results
from pcs_annotator.version import __version__

ALL = "all"
NAMES = (*EXPERIMENTS, ALL)
PACKAGES = ("numpy", "scipy")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRequest:
    """Which experiments to run, and on which data.

    Attributes:
        optimiser: How PCS learns.
        relations: Relations that PCS uses; default: all that are recorded.
        models: Recorded model to use; default: all.
    """

    name: str  # name of an experiment, or `all`
    sources: Sequence[str]  # tables of votes or run folders, as `PATH` or `NAME=PATH`
    out: Path  # the output folder
    optimiser: str = setting("lr", "--optimiser NAME")
    relations: Sequence[str] = setting((), "--relations A,B")
    models: Sequence[str] = setting((), "--model NAME")
    rewritten: Sequence[str] = ()  # relations whose variants a model wrote; those of a run folder are known
    splitting: Splitting = field(default_factory=Splitting)  # folds, seeds and resamples
    policy: OutputPolicy = STRICT  # whether files in the way are kept aside
    on_step: Callable[[str], None] = lambda step: None  # called with the name of every step before it starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Experimented:
    """Tables and figures, and the files written."""

    experiments: Sequence[Experiment]
    files: Sequence[Path]


def experiment(request: ExperimentRequest) -> Experimented:
    """Run experiments and write their tables and plots."""
    out, policy, about = request.out, request.policy, request.out / "experiments.json"
    names = [*EXPERIMENTS] if request.name == ALL else [request.name]
    check_folder(out)
    for path in (about, *(out / f"{name}{ending}" for name in names for ending in (*WRITERS, ".svg"))):
        policy.check(path, [path.suffix])
    sources = named_sources(request.sources)
    sets = {name: _recorded(name, path, request) for name, path in sources.items()}
    settings = _settings(request, sets)
    study = Replication.of({name: (recorded.votes, recorded.gold) for name, recorded in sets.items()}, settings)
    if not study.benches:
        raise UndefinedMetric("; ".join(f"{name}: {reason}" for name, reason in study.refused.items()))
    done, files = list[Experiment](), list[Path]()
    for name in names:
        request.on_step(name)
        with one_thread():
            done.append(EXPERIMENTS[name](study))
        files += [*write_results(done[-1].tables, out, policy), *_draw(done[-1], out, policy)]
    values = {
        "version": __version__,
        "python": platform.python_version(),
        "packages": {name: version_of(name) for name in PACKAGES},
        "experiments": names,
        "settings": settings.to_dict(),
        "sources": {name: {"source": str(path), **_facts(sets[name])} for name, path in sources.items()},
    }
    policy.write_json(about, values)
    return Experimented(experiments=done, files=[*files, about])


def named_sources(texts: Sequence[str]) -> dict[str, Path]:
    """Return name → path of each `PATH` or `NAME=PATH`; names must differ, because tables list datasets by name."""
    sources: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or "/" in name or Path(text).exists():
            name, path = table_stem(text), text
        if name in sources:
            raise ConfigError(f"two sources are named {name!r}: rename one, as in NAME=PATH")
        sources[name] = Path(path)
    return sources


def _recorded(name: str, path: Path, request: ExperimentRequest) -> RecordedVotes:
    """Return the votes of a source, those of the requested models; an unknown name is an error that lists the known."""
    recorded = RecordedVotes.read(path)
    votes = recorded.votes
    bases = [base_annotator(annotator) for annotator in votes.annotators]
    try:
        check_known(request.relations, votes.relations, "relation")
        check_known(request.models, [*dict.fromkeys(bases)], "model")
    except UnknownNameError as error:
        raise UnknownNameError(f"{name}: {error}") from None
    kept = [annotator for annotator, base in zip(votes.annotators, bases, strict=True) if base in request.models]
    return recorded._replace(votes=votes.select(annotators=kept)) if kept else recorded


def _settings(request: ExperimentRequest, sets: Mapping[str, RecordedVotes]) -> Settings:
    relations = list(dict.fromkeys(name for recorded in sets.values() for name in recorded.votes.relations))
    check_known(request.rewritten, relations, "relation")
    rewritten = frozenset(request.rewritten).union(*(recorded.rewritten for recorded in sets.values()))
    return Settings(
        how=EvaluationOptions(**asdict(request.splitting), rewritten=rewritten),
        optimiser=request.optimiser,
        relations=tuple(request.relations) or None,
        baselines=all_baselines(),
    )


def _draw(done: Experiment, out: Path, policy: OutputPolicy) -> list[Path]:
    path = out / f"{done.name}.svg"
    if done.curves or done.pairs:
        policy.make_way(path)
    if done.curves:
        charts.draw_curves(done.curves, path)
    if done.pairs:
        charts.draw_pairs(done.pairs, done.rival, path)
    return [path] if done.curves or done.pairs else []


def _facts(recorded: RecordedVotes) -> dict[str, Any]:
    axes = {name: list(getattr(recorded.votes, name)) for name in ("annotators", "relations", "labels")}
    return {"rows": len(recorded.votes), "gold_rows": int((recorded.gold >= 0).sum()), **axes}
