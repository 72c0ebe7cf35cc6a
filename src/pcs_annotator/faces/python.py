"""`run`, `label` and `evaluate` for Python: what the commands of the same name do, with values instead of text."""

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pcs_annotator.base.concurrency import run_in_thread
from pcs_annotator.base.display import in_notebook
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.fields import Setting, settings_in
from pcs_annotator.base.text import did_you_mean
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.core.ledger_address import absolute_address
from pcs_annotator.core.votes import Votes
from pcs_annotator.faces.loaded_run import LoadedRun
from pcs_annotator.runs import settings as kinds
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.book_result import BookResult
from pcs_annotator.runs.labeller import LoadOptions
from pcs_annotator.runs.own_objects import OwnObjects, names_in
from pcs_annotator.runs.resolve_config import read_settings, settings_of
from pcs_annotator.runs.run_request import RunRequest, default_folder
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing.report.charts import picture
from pcs_annotator.studies.compare.comparison import Comparison
from pcs_annotator.studies.estimating.answering import estimate_any
from pcs_annotator.studies.estimating.answers import Estimated, EstimateQuestion
from pcs_annotator.tables.find import place_or_table
from pcs_annotator.verbs import evaluate as evaluating
from pcs_annotator.verbs import label as labelling
from pcs_annotator.verbs import run as running
from pcs_annotator.verbs.label import LabelledBook

PathLike = str | Path
P = ParamSpec("P")
T = TypeVar("T")
OF_SAVING = [setting.name for setting in settings_in(kinds.Saving) if setting.option]
OF_LOADED_RUN = ("models", "relations", "text_column", "ledger", *kinds.SPENDING, *OF_SAVING)
SETTINGS = {name: setting for name, (_, setting) in kinds.all_settings().items()}
OF_RUN = [setting for name, setting in SETTINGS.items() if name not in OF_SAVING]
OF_LABEL = [SETTINGS[name] for name in (*OF_LOADED_RUN, "id_column", "encoding", "sheet", "limit", "replace", "wait")]


def _taking(settings: Collection[Setting]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator for functions that take settings by name: it adds them to signature and documentation.

    A name that is no setting is an error that lists those that are.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        given = signature(function)
        parameters = [each for each in given.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        names = [setting.name for setting in settings]

        @wraps(function)
        def checked(*arguments: P.args, **named: P.kwargs) -> T:
            unknown = next((name for name in named if name not in (*names, *given.parameters)), None)
            if unknown is not None:
                alike = did_you_mean(unknown, names)
                raise ConfigError(f"there is no setting {unknown!r}; {alike}the settings are {', '.join(names)}")
            return function(*arguments, **named)

        lines = (f"    `{setting.name}`: {setting.help}" for setting in settings)
        checked.__doc__ = "\n".join([cleandoc(function.__doc__ or ""), "", "Settings:", *lines])
        parameters += [
            Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.kind)
            for each in settings
        ]
        setattr(checked, "__signature__", given.replace(parameters=parameters))  # noqa: B010  # unknown to mypy
        return checked

    return decorate


def _async_twin(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the function to be awaited: it works in a thread, and cancelling it does what Ctrl-C does."""

    async def twin(*arguments: P.args, **named: P.kwargs) -> T:
        return await run_in_thread(partial(function, *arguments, **named))

    wraps(function)(twin)
    twin.__name__ = twin.__qualname__ = f"a{function.__name__}"
    twin.__doc__ = f"Async version of `{function.__name__}`.\n\nCancelling it keeps all answers; the next call resumes."
    return twin


@_taking(OF_RUN)
def run(
    data: object,
    out: PathLike | None = None,
    *,
    config: PathLike | None = None,
    progress: bool | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: Any,
) -> RunResult:
    """Rewrite, ask, learn and label texts; the run folder gets labels, model and report.

    A second run asks only what is missing. Of several variables, which `config` has in tables `[variables.NAME]`, what
    is returned is a `BookResult`, whose `results` has each by name; models answer all of them in one call.

    Args:
        data: The texts: a file, a folder, a pattern such as `parts/*.parquet` or an address such as
            `s3://bucket/news.csv`; a pandas, polars or Arrow table or a dict of columns; or a list of texts.
        out: The run folder; by default `runs/` and the name of the file, `runs/table` for a table in memory.
        config: A `pcs.toml`; by default none is read.
        progress: Show progress: a bar in a notebook, text on stderr elsewhere. By default only in a notebook.
        environment: Keys and base URLs; by default those of the process and of `.env`.
        settings: Options of `pcs run`, such as `max_error` for `--max-error`, which override those in `config`. A model
            may be a name, a function or a chat model, and a relation a name or a function that takes a text and returns
            its rewrite or None. A run folder knows functions and objects by name alone.
    """
    objects, source = _objects_named(settings), place_or_table(data)
    folder = default_folder(source) if out is None else Path(out)
    learn, named = running.learn_defaults(folder), kinds.take_settings(settings)
    asked = settings_of(named, learn) if config is None else read_settings(Path(config), Path.cwd(), named, learn)
    if named.get("max_error", 0) is None:  # a promise is not wanted; other settings are not given if they are None
        asked = replace(asked, learn=replace(asked.learn, max_error=None))
    request = RunRequest(
        data=source,
        folder=folder,
        config=replace(asked, ask=replace(asked.ask, objects=tuple(objects.models))),
        progress=in_notebook() if progress is None else progress,
        environment=environment,
        own=objects,
        **settings,
    )
    result = running.run(request)
    plotting = {part: replace(each, plotter=picture) for part, each in result.results.items()}
    return _alone(replace(result, results=plotting))


def _alone(result: BookResult | LabelledBook) -> Any:
    """Return what is about all variables of a run or, if it has one, what is about that one."""
    return result if result.book.named else result.only


arun = _async_twin(run)


@_taking(OF_LABEL)
def label(
    data: object,
    folder: PathLike,
    out: PathLike | None = None,
    *,
    progress: bool | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: Any,
) -> labelling.Labelled:
    """Label texts with the models, rewrites and weights of a fitted run.

    Of several variables, what is returned is a `LabelledBook`, whose `results` has each by name.

    Args:
        data: The texts, as for `run`.
        folder: The folder of the run.
        out: The file or address for the labels; by default a file next to `data`, and none for a table in memory.
        progress: As for `run`.
        environment: As for `run`.
        settings: Options of `pcs label`. `models` and `relations` are the functions and objects that the run was given
            as such, if any, because its folder knows only their names.
    """
    source = place_or_table(data)
    objects, saving = _of_new_texts(settings)
    request = RunRequest(
        data=source,
        folder=Path(folder),
        config=settings_of(kinds.take_settings(settings)),
        progress=in_notebook() if progress is None else progress,
        environment=environment,
        own=objects,
        **settings,
    )
    file = None if out is None else Path(out)
    if out is None and isinstance(source, Path | str):
        file = labelling.default_out(source)
    return _alone(labelling.label(request, file, saving))


alabel = _async_twin(label)


@_taking([SETTINGS[name] for name in OF_LOADED_RUN])
def load_run(
    folder: PathLike | RunResult | BookResult,
    *,
    concurrency: int | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: Any,
) -> LoadedRun:
    """Load a fitted run: its results, and what labels further texts in this process or in those of a data engine.

    Args:
        folder: The folder of the run, or what `run` returned.
        concurrency: Maximum number of simultaneous calls per model, in each process.
        environment: Keys and base URLs; by default those of each process and of `.env` in its working folder.
        settings: As for `label`; limits hold for each process.
    """
    objects, saving = _of_new_texts(settings)
    if isinstance(folder, RunResult):
        objects = folder.own.with_others(objects)
        folder = folder.folder.home
    ledger = settings.pop("ledger", None)
    options = LoadOptions(
        in_flight=concurrency,
        ledger=None if ledger is None else absolute_address(ledger),
        environment=environment,
        saving=saving,
        own=objects,
        **settings,
    )
    path = Path(folder.folder if isinstance(folder, BookResult) else folder).absolute()
    Book.open(path)  # raises if this is not a run folder
    return LoadedRun(path, options)


@_taking(settings_in(evaluating.Splitting))
def evaluate(
    votes: Votes,
    gold: Iterable[object] | Mapping[str, object],
    methods: Sequence[str] = (),
    *,
    rewritten: Sequence[str] = (),
    **splitting: Any,
) -> evaluating.Evaluated:
    """Return figures of every method on the same votes and splits, with intervals and paired tests.

    Args:
        votes: Recorded votes.
        gold: Label names in the order of `votes.ids`, None where unknown; or item id → label name.
        methods: Names of optimisers and baselines; by default `auto`, the other usual ones and every baseline that
            these votes support. The first is tested against the others.
        rewritten: Relations whose variants a model wrote, so that their calls are counted.
        splitting: How rows are split and resampled.
    """
    recorded = evaluating.RecordedVotes(votes, gold_codes(votes, gold), frozenset(rewritten))
    how = evaluating.Splitting(**splitting)
    return evaluating.evaluate_votes(recorded, evaluating.methods_named(methods), how)


aevaluate = _async_twin(evaluate)


@_taking(settings_in(evaluating.Splitting))
def relation_values(
    votes: Votes,
    gold: Iterable[object] | Mapping[str, object],
    *,
    optimiser: str = "auto",
    rewritten: Sequence[str] = (),
    **splitting: Any,
) -> evaluating.RelationValues:
    """Return what each relation adds beside the original question, with intervals, and what to keep.

    Everything is as in `evaluate`. `votes.hard()` are labels without log-probabilities.
    """
    recorded = evaluating.RecordedVotes(votes, gold_codes(votes, gold), frozenset(rewritten))
    return evaluating.value_of_votes(recorded, evaluating.Splitting(**splitting), optimiser)


@_taking(settings_in(evaluating.Splitting))
def compare(first: PathLike, second: PathLike, **splitting: Any) -> Comparison:
    """Compare two runs, or parts of runs, on the rows that they have in common; no model is called.

    Args:
        first: A run folder, or a part of the votes in one, such as `runs/news:model=openai:gpt-4o` or
            `runs/news:relations=original,order`.
        second: The same; without a folder, as in `:model=NAME`, a part of the first one.
        splitting: How rows are split and resampled.
    """
    return evaluating.compare(str(first), str(second), evaluating.Splitting(**splitting))


@_taking(settings_in(EstimateQuestion))
def estimate(data: object, **question: Any) -> Estimated:
    """Return shares, means, differences or a regression, corrected for the errors of machine labels.

    Args:
        data: The folder of a run; or, with `label` and `gold`, a table: a file, an address or a data frame.
        question: Options of `pcs estimate`.
    """
    return estimate_any(data, EstimateQuestion(**question))


def _of_new_texts(values: dict[str, Any]) -> tuple[OwnObjects, kinds.Saving]:
    """Take from the values the functions and objects among models and relations, and how to spend less."""
    objects = OwnObjects.of(values.pop("models", ()), values.pop("relations", ()))
    return objects, kinds.take(kinds.Saving, values)


def _objects_named(values: dict[str, Any]) -> OwnObjects:
    """Replace functions and objects among the values by their names, and return them by name."""
    for name in ("labels", "models", "relations"):
        if isinstance(values.get(name), str):
            raise ConfigError(f"{name} is the single text {values[name]!r}: give a list")
    models, relations, rewriter = values.get("models", ()), values.get("relations", ()), values.get("rewriter")
    objects = OwnObjects.of(models, relations)
    values |= {"models": names_in(models, objects.models), "relations": names_in(relations, objects.relations)}
    if rewriter is not None and not isinstance(rewriter, str):
        rewriting = OwnObjects.of([rewriter], ())
        values["rewriter"], objects = next(iter(rewriting.models)), objects.with_others(rewriting)
    return objects
