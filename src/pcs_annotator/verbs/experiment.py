"""The paper's experiments, on recorded votes or on texts that models are asked about first."""

import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from pcs_annotator.asking.ledger.lock import lock_ledger
from pcs_annotator.base.errors import ConfigError, GoldError, UndefinedMetric
from pcs_annotator.core import elicitations
from pcs_annotator.core.result_table import Experiment
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import check_known
from pcs_annotator.judging.evaluation.methods import all_baselines
from pcs_annotator.judging.evaluation.scored import EvaluationOptions, Splitting, one_thread
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.files import runs
from pcs_annotator.runs.recorded_votes import RecordedVotes
from pcs_annotator.runs.run import Run
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Config
from pcs_annotator.showing import pictures
from pcs_annotator.studies.paper import EXPERIMENTS, Replication, Settings
from pcs_annotator.studies.paper.sources import ExperimentSource, with_elicited
from pcs_annotator.tables import chunks, vote_files
from pcs_annotator.tables.files import read_json, write_json
from pcs_annotator.tables.find import table_place
from pcs_annotator.verbs.evaluate import check_folder, write_results
from pcs_annotator.verbs.run import run
from pcs_annotator.version import __version__

ALL = "all"
NAMES = (*EXPERIMENTS, ALL)
PACKAGES = ("numpy", "scipy")
ELICITED = ("1s-top-2", "2s-top-2", "ling-1s")  # how the published baselines ask for confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRequest:
    """Which experiments to run, and on which data."""

    name: str  # name of an experiment, or `all`
    sources: Sequence[ExperimentSource]  # votes, run folders or texts
    out: Path  # the output folder; runs over texts go into `runs` there
    optimiser: str = "lr"  # the optimiser that learns the weights of PCS
    relations: Sequence[str] = ()  # those of recorded votes that PCS uses; empty for all. For texts, see `asking`
    models: Sequence[str] = ()  # the recorded models to use; empty for all
    rewritten: Sequence[str] = ()  # relations whose variants a model wrote; those of a run folder are known
    splitting: Splitting = field(default_factory=Splitting)  # folds, seeds and resamples
    asking: RunRequest  # how models are asked about texts; its data and folder are those of each source
    baselines: bool = False  # whether to also ask what published baselines need
    on_step: Callable[[str], None] = lambda step: None  # called with the name of every step before it starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Experimented:
    """Tables and figures, the files written, and the number of unanswered questions by cause."""

    experiments: Sequence[Experiment]
    files: Sequence[Path]
    unanswered: Mapping[str, int]


def experiment(request: ExperimentRequest) -> Experimented:
    """Run experiments and write their tables and plots; models are asked only about texts that have no votes yet."""
    check_folder(request.out)
    unanswered = Counter[str]()
    sets: dict[str, RecordedVotes] = {}
    for source in request.sources:
        if source.kind == "texts":
            request.on_step(f"asking about {source.name}")
            place = request.out / "runs" / source.name
            unanswered.update(_ask_about(source, place, request))
            sets[source.name] = RecordedVotes.read(place)
        else:
            found = RecordedVotes.read(source.path)
            votes = source.chosen(found.votes, request.models, request.relations)
            sets[source.name] = found._replace(votes=votes)
    settings = _settings(request, sets)
    study = Replication.of({name: (one.votes, one.gold) for name, one in sets.items()}, settings)
    if not study.benches:
        raise UndefinedMetric("; ".join(f"{name}: {reason}" for name, reason in study.refused.items()))
    done, files = [], []
    for name in EXPERIMENTS if request.name == ALL else [request.name]:
        request.on_step(name)
        with one_thread():
            one = EXPERIMENTS[name](study)
        done.append(one)
        files += write_results(one.tables, request.out, None)
        files += _draw(one, request.out)
    about = request.out / "experiments.json"
    write_json(
        about,
        {
            "version": __version__,
            "python": platform.python_version(),
            "packages": {name: version_of(name) for name in PACKAGES},
            "experiments": [one.name for one in done],
            "settings": settings.to_dict(),
            "sources": {one.name: {"source": one.spec, **_facts(sets[one.name])} for one in request.sources},
        },
    )
    return Experimented(experiments=done, files=[*files, about], unanswered=unanswered)


def _ask_about(source: ExperimentSource, place: Path, request: ExperimentRequest) -> Mapping[str, int]:
    """Do what `pcs run` does with the texts of a source; return the number of unanswered questions by cause."""
    asking = request.asking
    config = _resolved(source, asking, request.splitting.folds)
    own = replace(asking, data=table_place(source.spec), folder=place, config=config, to_label=0)
    with lock_ledger(runs.RunFolder(place).ledger, wait=asking.wait, say=asking.say):
        return _ask_with_baselines(own) if request.baselines else run(own).tally.failed


def _ask_with_baselines(request: RunRequest) -> Mapping[str, int]:
    config = request.config
    if ORIGINAL not in config.relations.use:
        raise ConfigError(f"--baselines asks about the original text: add {ORIGINAL} to --relations")
    # Baselines see the original text only. Both runs share a folder, so that no answer is paid for twice.
    plain = [model for model in config.ask.models if not elicitations.kind_of(model)]
    models = (*plain, *(elicitations.elicited_name(model, kind) for model in plain for kind in ELICITED))
    only = replace(config.relations, use=(ORIGINAL,))
    elicited = run(replace(request, config=replace(config, ask=replace(config.ask, models=models), relations=only)))
    folder = elicited.folder
    answers = Run.open(folder.path).answers
    found = run(request)
    votes = with_elicited(Run.open(folder.path).answers, answers)
    vote_files.write_votes(folder.votes, votes)
    write_json(folder.settings, {**read_json(folder.settings), "annotators": list(votes.annotators)})
    return elicited.tally.failed + found.tally.failed


def _resolved(source: ExperimentSource, asking: RunRequest, folds: int) -> Config:
    """Return complete settings; too little gold is an error before the first call, not after the last."""
    given = asking.config
    if not given.ask.models:
        raise ConfigError(
            f"{source.spec} has texts and no votes: name models to ask with --model provider:model, or give a table "
            "with columns <model>|<relation> and gold"
        )
    columns, reading = resolve_config.columns_of(given), resolve_config.reading_of(given)
    dataset = chunks.read_source(source.spec, columns, asking.limit, reading)
    rows = [label for label in dataset.gold if label]
    classes = len({label.casefold() for label in rows})
    if len(rows) < 2 * folds or classes < 2:
        raise GoldError(
            f"{source.spec}: experiments need at least {2 * folds} gold rows and two classes, there are {len(rows)} of "
            f"{classes}: label more rows, or name the column with --gold-column"
        )
    return resolve_config.with_papers_relations(resolve_config.resolve(given, dataset))


def _settings(request: ExperimentRequest, sets: Mapping[str, RecordedVotes]) -> Settings:
    recorded = list(dict.fromkeys(name for found in sets.values() for name in found.votes.relations))
    check_known(request.rewritten, recorded, "relation")
    rewritten = frozenset(request.rewritten).union(*(found.rewritten for found in sets.values()))
    return Settings(
        how=EvaluationOptions(**asdict(request.splitting), rewritten=rewritten),
        optimiser=request.optimiser,
        relations=tuple(request.relations) or None,
        baselines=all_baselines(),
    )


def _draw(one: Experiment, out: Path) -> list[Path]:
    """Write the chart of an experiment that has one, and return its file."""
    path = out / f"{one.name}.svg"
    if one.curves:
        pictures.draw_curves(one.curves, path)
    if one.pairs:
        pictures.draw_pairs(one.pairs, one.rival, path)
    return [path] if one.curves or one.pairs else []


def _facts(found: RecordedVotes) -> dict[str, Any]:
    axes = {name: list(getattr(found.votes, name)) for name in ("annotators", "relations", "labels")}
    return {"rows": len(found.votes), "gold_rows": int((found.gold >= 0).sum()), **axes}
