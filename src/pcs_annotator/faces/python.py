"""`run`, `label` and `evaluate` for Python: what the commands of the same name do, with values instead of text."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from inspect import cleandoc
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, Unpack, get_type_hints

from pcs_annotator.base.concurrency import run_in_thread
from pcs_annotator.base.display import in_notebook
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.core.ledger_address import absolute_address
from pcs_annotator.core.votes import Votes
from pcs_annotator.faces.loaded_codebook import LoadedCodebook
from pcs_annotator.faces.loaded_run import LoadedRun
from pcs_annotator.runs import settings as kinds
from pcs_annotator.runs.codebook import CodebookFolder
from pcs_annotator.runs.labeller import LoadOptions
from pcs_annotator.runs.own_objects import OwnObjects, names_in
from pcs_annotator.runs.resolve_config import read_settings, settings_of
from pcs_annotator.runs.run_request import RunRequest, default_folder
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing.pictures import picture
from pcs_annotator.studies.compare.comparison import Comparison
from pcs_annotator.studies.estimating.answering import estimate_any
from pcs_annotator.studies.estimating.answers import Estimated, EstimateQuestion
from pcs_annotator.tables.find import place_or_table
from pcs_annotator.verbs import codebook as running_codebooks
from pcs_annotator.verbs import evaluate as evaluating
from pcs_annotator.verbs import label as labelling
from pcs_annotator.verbs import run as running
from pcs_annotator.verbs.codebook import CodebookResult

PathLike = str | Path
P = ParamSpec("P")
T = TypeVar("T")


def _async_twin(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the function to be awaited: it works in a thread, and cancelling it does what Ctrl-C does."""

    async def twin(*arguments: P.args, **named: P.kwargs) -> T:
        return await run_in_thread(partial(function, *arguments, **named))

    wraps(function)(twin)
    twin.__name__ = twin.__qualname__ = f"a{function.__name__}"
    twin.__doc__ = f"Async version of `{function.__name__}`.\n\nCancelling it keeps all answers; the next call resumes."
    return twin


def _documented(settings: type) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that adds what each setting means to a docstring."""

    def documented(function: Callable[P, T]) -> Callable[P, T]:
        table = kinds.all_settings()
        lines = (f"    `{name}`: {table[name][1].help}" for name in get_type_hints(settings))
        function.__doc__ = "\n".join([cleandoc(function.__doc__ or ""), "", "Settings:", *lines])
        return function

    return documented


@_documented(kinds.RunSettings)
def run(
    data: object,
    out: PathLike | None = None,
    *,
    config: PathLike | None = None,
    progress: bool | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: Unpack[kinds.RunSettings],
) -> RunResult:
    """Rewrite, ask, learn and label texts; the run folder gets labels, model and report.

    A second run asks only what is missing.

    Args:
        data: The texts: a file, a folder, a pattern such as `parts/*.parquet` or an address such as
            `s3://bucket/news.csv`; a pandas, polars or Arrow table or a dict of columns; or a list of texts.
        out: The run folder; by default `runs/` and the name of the file, `runs/table` for a table in memory.
        config: A `pcs.toml`; by default none is read.
        progress: Show progress: a bar in a notebook, text on stderr elsewhere. By default only in a notebook.
        environment: Keys and base URLs; by default those of the process and of `.env`.
        settings: Options of `pcs run`, which override those in `config`; see `RunSettings`. A model may be a name, a
            function or a chat model, and a relation a name or a function that takes a text and returns its rewrite or
            None. A run folder knows functions and objects by name alone.
    """
    return replace(running.run(_request(data, config, out, progress, environment, settings)), plotter=picture)


def _request(  # what `run` and `run_codebook` are given, one argument each
    data: object,
    config: PathLike | None,
    out: PathLike | None,
    progress: bool | None,
    environment: Mapping[str, str] | None,
    settings: kinds.RunSettings,
) -> RunRequest:
    objects, values = _named(settings)
    source = place_or_table(data)
    folder = default_folder(source) if out is None else Path(out)
    learn, named = running.learn_defaults(folder), kinds.take_settings(values)
    asked = settings_of(named, learn) if config is None else read_settings(Path(config), Path.cwd(), named, learn)
    if named.get("max_error", 0) is None:  # a promise is not wanted; other settings are not given if they are None
        asked = replace(asked, learn=replace(asked.learn, max_error=None))
    return RunRequest(
        data=source,
        folder=folder,
        config=replace(asked, ask=replace(asked.ask, objects=tuple(objects.models))),
        progress=in_notebook() if progress is None else progress,
        environment=environment,
        own=objects,
        **values,
    )


arun = _async_twin(run)


def run_codebook(
    data: object,
    config: PathLike,
    out: PathLike | None = None,
    *,
    progress: bool | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: Unpack[kinds.RunSettings],
) -> CodebookResult:
    """Label texts with the variables of a codebook, which `config` has in tables `[variables.NAME]`.

    Models answer all variables in one call. Each variable is a run in a folder of its own, and `results` of the result
    has it by name. Everything else is as in `run`.
    """
    request = _request(data, config, out, progress, environment, settings)
    if not request.config.variables:
        raise ConfigError(f"{config} has no [variables.NAME]: use run")
    return running_codebooks.run_codebook(request)


@_documented(kinds.LabelSettings)
def label(
    data: object,
    folder: PathLike,
    out: PathLike | None = None,
    *,
    progress: bool | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: Unpack[kinds.LabelSettings],
) -> labelling.Labelled:
    """Label texts with the models, rewrites and weights of a fitted run.

    Args:
        data: The texts, as for `run`.
        folder: The folder of the run.
        out: The file or address for the labels; by default a file next to `data`, and none for a table in memory.
        progress: As for `run`.
        environment: As for `run`.
        settings: Options of `pcs label`; see `LabelSettings`. `models` and `relations` are the functions and objects
            that the run was given as such, if any, because its folder knows only their names.
    """
    source = place_or_table(data)
    values = _checked(settings, kinds.LabelSettings)
    objects, saving = (
        OwnObjects.of(values.pop("models", ()), values.pop("relations", ())),
        kinds.take(kinds.Saving, values),
    )
    request = RunRequest(
        data=source,
        folder=Path(folder),
        config=settings_of(kinds.take_settings(values)),
        progress=in_notebook() if progress is None else progress,
        environment=environment,
        own=objects,
        **values,
    )
    file = None if out is None else Path(out)
    if out is None and isinstance(source, Path | str):
        file = labelling.default_out(source)
    return labelling.label(request, file, saving)


alabel = _async_twin(label)


@_documented(kinds.SavingSettings)
def load_run(
    folder: PathLike | RunResult | CodebookResult,
    *,
    concurrency: int | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: Unpack[kinds.SavingSettings],
) -> LoadedRun:
    """Load a fitted run: its results, and what labels further texts in this process or in those of a data engine.

    Args:
        folder: The folder of the run, or what `run` returned. Of a codebook, all variables are loaded as one, and what
            is returned is a `LoadedCodebook`.
        concurrency: Maximum number of simultaneous calls per model, in each process.
        environment: Keys and base URLs; by default those of each process and of `.env` in its working folder.
        settings: As for `label`; limits hold for each process.
    """
    values = _checked(settings, kinds.SavingSettings)
    objects, saving = (
        OwnObjects.of(values.pop("models", ()), values.pop("relations", ())),
        kinds.take(kinds.Saving, values),
    )
    if isinstance(folder, RunResult):
        objects = folder.own.with_others(objects)
        folder = folder.folder.path
    ledger = values.pop("ledger", None)
    options = LoadOptions(
        in_flight=concurrency,
        ledger=None if ledger is None else absolute_address(ledger),
        environment=environment,
        saving=saving,
        own=objects,
        **values,
    )
    path = Path(folder.folder if isinstance(folder, CodebookResult) else folder).absolute()
    if book := CodebookFolder.find(path):
        return LoadedCodebook(book, options)  # type: ignore[return-value]  # most folders have one variable
    loaded = LoadedRun(path, options)
    loaded.check()
    return loaded


def evaluate(
    votes: Votes,
    gold: Iterable[object] | Mapping[str, object],
    methods: Sequence[str] = (),
    *,
    rewritten: Sequence[str] = (),
    **splitting: Unpack[kinds.SplittingSettings],
) -> evaluating.Evaluated:
    """Return figures of every method on the same votes and splits, with intervals and paired tests.

    Args:
        votes: Recorded votes.
        gold: Label names in the order of `votes.ids`, None where unknown; or item id → label name.
        methods: Names of optimisers and baselines; by default `auto`, the other usual ones and every baseline that
            these votes support. The first is tested against the others.
        rewritten: Relations whose variants a model wrote, so that their calls are counted.
        splitting: `folds`, `repeats`, `seed` and `resamples`.
    """
    recorded = evaluating.RecordedVotes(votes, gold_codes(votes, gold), frozenset(rewritten))
    return evaluating.evaluate_votes(recorded, evaluating.methods_named(methods), _splitting(splitting))


aevaluate = _async_twin(evaluate)


def relation_values(
    votes: Votes,
    gold: Iterable[object] | Mapping[str, object],
    *,
    optimiser: str = "",
    rewritten: Sequence[str] = (),
    **splitting: Unpack[kinds.SplittingSettings],
) -> evaluating.RelationValues:
    """Return what each relation adds beside the original question, with intervals, and what to keep.

    Args:
        votes: Recorded votes; `votes.hard()` for labels without log-probabilities.
        gold: As for `evaluate`.
        optimiser: How to learn; by default `naive-bayes`, or `scaling` for graded votes.
        rewritten: Relations whose variants a model wrote, so that their calls are counted.
        splitting: `folds`, `repeats`, `seed` and `resamples`.
    """
    recorded = evaluating.RecordedVotes(votes, gold_codes(votes, gold), frozenset(rewritten))
    return evaluating.value_of_votes(recorded, _splitting(splitting), optimiser)


def compare(first: PathLike, second: PathLike, **splitting: Unpack[kinds.SplittingSettings]) -> Comparison:
    """Compare two runs, or parts of runs, on the rows that they have in common; no model is called.

    Args:
        first: A run folder, or a part of the votes in one, such as `runs/news:model=openai:gpt-4o` or
            `runs/news:relations=original,order`.
        second: The same; without a folder, as in `:model=NAME`, a part of the first one.
        splitting: `folds`, `repeats`, `seed` and `resamples`.
    """
    return evaluating.compare(str(first), str(second), _splitting(splitting))


def estimate(data: object, **question: Any) -> Estimated:
    """Return shares, means, differences or a regression, corrected for the errors of machine labels.

    Args:
        data: The folder of a run; or, with `label` and `gold`, a table: a file, an address or a data frame.
        question: Options of `pcs estimate`: `of`, `values`, `by`, `every`, `formula`, `link`, `cluster`, `probability`,
            `weight`, `larger` and `p_adjust`; of a table also `label`, `gold` and `confidence`.
    """
    return estimate_any(data, EstimateQuestion(**_checked(question, EstimateQuestion)))


def _splitting(values: kinds.SplittingSettings) -> evaluating.Splitting:
    return evaluating.Splitting(**_checked(values, kinds.SplittingSettings))


def _named(settings: kinds.RunSettings) -> tuple[OwnObjects, dict[str, Any]]:
    """Return the settings with names instead of functions and objects, and these by name."""
    values = _checked(settings, kinds.RunSettings)
    for name in ("labels", "models", "relations"):
        if isinstance(values.get(name), str):
            raise ConfigError(f"{name} is the single text {values[name]!r}: give a list")
    models, relations, rewriter = values.get("models", ()), values.get("relations", ()), values.get("rewriter")
    objects = OwnObjects.of(models, relations)
    values |= {"models": names_in(models, objects.models), "relations": names_in(relations, objects.relations)}
    if rewriter is not None and not isinstance(rewriter, str):
        rewriting = OwnObjects.of([rewriter], ())
        values["rewriter"], objects = next(iter(rewriting.models)), objects.with_others(rewriting)
    return objects, values


def _checked(values: Mapping[str, Any], table: type[Any]) -> dict[str, Any]:
    """Return keyword arguments; one that is not known is an error that lists those that are."""
    names = list(table.__annotations__)
    unknown = next((name for name in values if name not in names), None)
    if unknown is not None:
        raise ConfigError(f"there is no setting {unknown!r}; the settings are {', '.join(names)}")
    return dict(values)
