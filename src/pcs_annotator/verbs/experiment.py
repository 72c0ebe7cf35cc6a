"""The paper's experiments, on recorded votes or on texts that models are asked about first."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from pcs_annotator.asking.ledger.lock import Say, lock_ledger, warn_user
from pcs_annotator.base.errors import ConfigError, GoldError, MissingPackage, UndefinedMetric, UnknownNameError
from pcs_annotator.core import elicitations
from pcs_annotator.core.arrays import Array
from pcs_annotator.core.result_table import Experiment
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.core.votes import PER_LABEL, Votes, check_known
from pcs_annotator.judging.evaluation.methods import all_baselines, method_name
from pcs_annotator.judging.evaluation.scored import EvaluationOptions, Splitting, one_thread
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.files import runs
from pcs_annotator.runs.files.config import Config
from pcs_annotator.runs.recorded_votes import RecordedVotes
from pcs_annotator.runs.run_folder import Recorded
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.showing import plots
from pcs_annotator.studies.paper import EXPERIMENTS, Replication, Settings
from pcs_annotator.tables import sources, vote_files
from pcs_annotator.tables.table_parts import open_parts
from pcs_annotator.tables.tabular import table_place, table_stem
from pcs_annotator.tables.vote_table import is_long
from pcs_annotator.verbs.evaluate import check_folder, write_result
from pcs_annotator.verbs.run import run
from pcs_annotator.version import __version__

ALL = "all"
NAMES = (*EXPERIMENTS, ALL)
HEAVY = ("optimisers",)
"""Eleven optimisers with twelve figures each: with all resamples, they would take half of the total time."""
MOST_RESAMPLES = 1000
PACKAGES = ("numpy", "scipy", "scikit-learn")
ELICITED = ("1s-top-2", "2s-top-2", "ling-1s", "p-true")
"""How models are asked for their confidence, for the published baselines."""


class ExperimentSource(NamedTuple):
    """One dataset: its name, the path or name that the user wrote, and its kind."""

    name: str
    spec: str
    kind: Literal["votes", "run", "texts"]

    @property
    def path(self) -> Path:
        """The path that the user wrote."""
        return Path(self.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How models are asked about texts.

    Attributes:
        config: Models, relations, columns and all other settings of `pcs run`.
        baselines: Whether to also ask what published baselines need.
        limit: Maximum number of rows of each source; None for all.
        replace: Whether to set aside what a run's folder has of other data, labels or instruction.
        gold_wins: Whether to accept gold labels that contradict each other.
        progress: Whether to show progress.
        environment: Keys and base URLs; None for those of the process and of `.env`.
        wait: Whether to wait while another process asks with the same ledger; otherwise that is an error.
        say: Called with whom an experiment waits for.
    """

    config: Config
    baselines: bool = False
    limit: int | None = None
    replace: bool = False
    gold_wins: bool = False
    progress: bool = False
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    wait: bool = True
    say: Say = warn_user


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRequest:
    """Which experiments to run, and on which data.

    Attributes:
        name: Name of an experiment, or `all`.
        sources: Votes, run folders or texts.
        out: The output folder; runs over texts go into `runs` there.
        optimiser: The optimiser that learns the weights of PCS.
        relations: The recorded relations that PCS uses; empty for all. Texts are asked about as in `asking`.
        models: The recorded models to use; empty for all.
        rewritten: Relations whose variants a model wrote; those of a run folder are known.
        splitting: Folds, seeds and resamples.
        asking: How models are asked about texts.
        on_step: Called with the name of every step before it starts.
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
    """Tables and figures, the files written, why plots are missing, and the number of unanswered questions by cause."""

    experiments: Sequence[Experiment]
    files: Sequence[Path]
    notes: Sequence[str]
    unanswered: Mapping[str, int]


def experiment(request: ExperimentRequest) -> Experimented:
    """Run experiments and write their tables and plots; models are asked only about texts that have no votes yet."""
    check_folder(request.out)
    unanswered: dict[str, int] = {}
    sets: dict[str, RecordedVotes] = {}
    for source in request.sources:
        place = source.path
        if source.kind == "texts":
            request.on_step(f"asking about {source.name}")
            place = request.out / "runs" / source.name
            unanswered.update(_ask_about(source, place, request.asking, request.splitting.folds))
        sets[source.name] = _chosen(RecordedVotes.read(place), request, source)
    settings = _settings(request, sets)
    study = Replication.of({name: (found.votes, found.gold) for name, found in sets.items()}, settings)
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
    runs.write_json(about, _about(request, sets, settings))
    return Experimented(experiments=found, files=[*files, about], notes=notes, unanswered=unanswered)


def find_sources(given: Sequence[str]) -> list[ExperimentSource]:
    """Return the source of each `PATH` or `NAME=PATH`; names must differ, because tables list datasets by name."""
    found = [_source(one) for one in given]
    names = [source.name for source in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two sources are named {name!r}: rename one, as in NAME=PATH")
    return found


def _source(given: str) -> ExperimentSource:
    name, equals, spec = given.partition("=")
    if not equals or "/" in name or Path(given).exists():
        name, spec = "", given
    name = name or _stem(spec)
    if sources.is_public_set(spec):
        return ExperimentSource(name, spec, "texts")
    if Path(spec).is_dir():
        return ExperimentSource(name, spec, "run")
    columns = open_parts(table_place(spec)).contents.schema.names
    has_votes = is_long(columns) or any("|" in column for column in columns)
    return ExperimentSource(name, spec, "votes" if has_votes else "texts")


def _stem(spec: str) -> str:
    name = table_stem(spec)
    return name.rpartition(":")[2] or name


def _ask_about(source: ExperimentSource, place: Path, asking: Asking, folds: int) -> Mapping[str, int]:
    """Do what `pcs run` does with the texts of a source; return the number of unanswered questions by cause."""
    config = _resolved(source, asking, folds)
    request = RunRequest(
        data=table_place(source.spec),
        folder=place,
        config=config,
        limit=asking.limit,
        replace=asking.replace,
        gold_wins=asking.gold_wins,
        progress=asking.progress,
        to_label=0,
        environment=asking.environment,
        wait=asking.wait,
        say=asking.say,
    )
    with lock_ledger(runs.RunFolder(place).ledger, wait=asking.wait, say=asking.say):
        return _ask_with_baselines(request) if asking.baselines else run(request).tally.failed


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
    answers = Recorded.read(folder).answers
    found = run(request)
    votes = _with_elicited(Recorded.read(folder).answers, answers)
    vote_files.write_votes(folder.votes, votes)
    runs.write_json(folder.settings, {**runs.read_json(folder.settings), "annotators": list(votes.annotators)})
    return {**elicited.tally.failed, **found.tally.failed}


def _resolved(source: ExperimentSource, asking: Asking, folds: int) -> Config:
    """Return complete settings; too little gold is an error before the first call, not after the last."""
    if not asking.config.ask.models:
        raise ConfigError(
            f"{source.spec} has texts and no votes: name models to ask with --model provider:model, or give a table "
            "with columns <annotator>|<relation> and gold"
        )
    dataset = sources.read_source(
        source.spec, resolve_config.columns_of(asking.config), asking.limit, resolve_config.reading_of(asking.config)
    )
    rows = [label for label in dataset.gold if label]
    classes = len({label.casefold() for label in rows})
    if len(rows) < 2 * folds or classes < 2:
        raise GoldError(
            f"{source.spec}: experiments need at least {2 * folds} gold rows and two classes, there are {len(rows)} of "
            f"{classes}: label more rows, or name the column with --gold-column"
        )
    return resolve_config.with_papers_relations(resolve_config.resolve(asking.config, dataset))


def _with_elicited(votes: Votes, elicited: Votes) -> Votes:
    """Return the votes plus those, on the original text, of annotators that also state a confidence."""
    names = [name for name in elicited.annotators if elicitations.kind_of(name) and name not in votes.annotators]
    more = elicited.select(annotators=names, relations=[ORIGINAL])
    place = votes.relations.index(ORIGINAL)

    def joined(ours: Array, theirs: Array, nothing: float) -> Array:
        added = np.full((len(votes), len(names), *ours.shape[2:]), nothing, dtype=ours.dtype)
        added[:, :, place] = theirs[:, :, 0]
        return np.concatenate([ours, added], axis=1)

    probabilities: dict[str, Any] = {
        name: joined(_or_nan(votes, name), _or_nan(more, name), np.nan)
        for name in PER_LABEL
        if any(getattr(one, name) is not None for one in (votes, more))
    }
    return replace(
        votes,
        codes=joined(votes.codes, more.codes, NOT_ASKED),
        annotators=(*votes.annotators, *names),
        **probabilities,
    )


def _or_nan(votes: Votes, name: str) -> Array:
    given: Array | None = getattr(votes, name)
    return np.full((*votes.codes.shape, len(votes.labels)), np.nan, PER_LABEL[name]) if given is None else given


def _chosen(found: RecordedVotes, request: ExperimentRequest, source: ExperimentSource) -> RecordedVotes:
    """Return the votes of the named models; an unknown name is an error that lists the known ones."""
    if source.kind == "texts":
        return found
    try:
        votes = found.votes
        check_known(request.relations, votes.relations, "relation")
        bases = [elicitations.base_annotator(name) for name in votes.annotators]
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
        how=EvaluationOptions(**asdict(request.splitting), rewritten=rewritten),
        optimiser=request.optimiser,
        relations=tuple(request.relations) or None,
        baselines=all_baselines(),
    )


def _lighter(study: Replication) -> Replication:
    how = study.settings.how
    fewer = replace(how, resamples=min(how.resamples, MOST_RESAMPLES))
    return replace(study, settings=replace(study.settings, how=fewer))


def _drawn(one: Experiment, out: Path) -> tuple[list[Path], str]:
    """Return the plots of an experiment, or why there are none."""
    files: list[Path] = []
    try:
        if one.curves:
            files += plots.draw_curves(one.curves, out / one.name)
        if one.pairs:
            files += plots.draw_pairs(one.pairs, one.rival, out / one.name)
    except MissingPackage as error:
        return [], str(error)
    return files, ""


def _about(request: ExperimentRequest, sets: Mapping[str, RecordedVotes], settings: Settings) -> dict[str, Any]:
    """Return what is needed to reproduce the figures."""
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
            "baselines": [method_name(method) for method in settings.baselines],
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
