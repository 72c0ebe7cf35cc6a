"""`run`, `label` and `evaluate` for Python: what the commands of the same name do, with values instead of text."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, Unpack

from pcs_annotator.base.concurrency import run_in_thread
from pcs_annotator.base.display import in_notebook
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.gold import gold_codes
from pcs_annotator.core.ledger_address import LedgerAddress, absolute_address
from pcs_annotator.core.votes import Votes
from pcs_annotator.faces.settings import RunSettings, SavingSettings, SplittingSettings
from pcs_annotator.runs.loaded_run import LoadedRun
from pcs_annotator.runs.own_objects import OwnObjects, names_in
from pcs_annotator.runs.resolve_config import Flags, flags_only, read_settings
from pcs_annotator.runs.run_engine import LoadOptions
from pcs_annotator.runs.run_request import RunRequest, default_folder
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.studies.compare.comparison import Comparison
from pcs_annotator.studies.estimating.answers import Estimated, Question
from pcs_annotator.studies.estimating.estimate import estimate_run
from pcs_annotator.tables.tabular import place_or_table, table_place
from pcs_annotator.verbs import evaluate as evaluating
from pcs_annotator.verbs import label as labelling
from pcs_annotator.verbs import run as running

PathLike = str | Path
P = ParamSpec("P")
T = TypeVar("T")


def _async_twin(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the function to be awaited: it works in a thread, and cancelling it does what Ctrl-C does."""

    async def twin(*given: P.args, **named: P.kwargs) -> T:
        return await run_in_thread(partial(function, *given, **named))

    wraps(function)(twin)
    twin.__name__ = twin.__qualname__ = f"a{function.__name__}"
    twin.__doc__ = f"Async version of `{function.__name__}`.\n\nCancelling it keeps all answers; the next call resumes."
    return twin


def run(  # noqa: PLR0913  # what `pcs run` takes
    data: object,
    out: PathLike | None = None,
    *,
    config: PathLike | None = None,
    limit: int | None = None,
    fresh: bool = False,
    replace: bool = False,
    gold_wins: bool = False,
    wait: bool = True,
    progress: bool | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: Unpack[RunSettings],
) -> RunResult:
    """Rewrite, ask, learn and label texts; the run folder gets labels, model and report.

    A second run asks only what is missing.

    Args:
        data: The texts: a file, a folder, a pattern such as `parts/*.parquet` or an address such as
            `s3://bucket/news.csv`; a pandas, polars or Arrow table or a dict of columns; or a list of texts.
        out: The run folder; by default `runs/` and the name of the file, `runs/table` for a table in memory.
        config: A `pcs.toml`; by default none is read.
        limit: Take only the first N rows.
        replace: Keep results of other data, labels or instruction in the folder under a dated name, and start anew.
        gold_wins: Accept gold labels that contradict each other; those that people added win over those of the data.
        fresh: Ask again what was answered before, and pay again; the old ledger is kept under another name.
        wait: Wait while another process or thread asks with the same ledger; otherwise that is an error.
        progress: Show progress: a bar in a notebook, text on stderr elsewhere. By default only in a notebook.
        environment: Keys and base URLs; by default those of the process and of `.env`.
        settings: Options of `pcs run`, which override those in `config`: `labels`, `models`, `relations`, `rewriter`,
            `instruction`, `text_column`, `id_column`, `gold_column`, `encoding`, `sheet`, `answers`, `draws`,
            `concurrency`, `executor`, `workers`, `ray_address`, `max_per_second`, `ledger`, `budget_usd`,
            `budget_per_day_usd`, `max_calls`, `max_tokens`, `prices`, `optimiser`, `seed`, `calibration`, `max_error`,
            `certainty`, `promise`, `per_label`, `sets`. A model may be a name, a function or a chat model, and a
            relation a name or a function that takes a text and returns its rewrite or None. A run folder knows
            functions and objects by name alone.
    """
    own, flags = _named(settings)
    place = place_or_table(data)
    folder = default_folder(place) if out is None else Path(out)
    learn = running.learn_defaults(folder)
    request = RunRequest(
        data=place,
        folder=folder,
        config=flags_only(flags, learn) if config is None else read_settings(Path(config), Path.cwd(), flags, learn),
        limit=limit,
        fresh=fresh,
        replace=replace,
        gold_wins=gold_wins,
        wait=wait,
        progress=in_notebook() if progress is None else progress,
        environment=environment,
        own=own,
    )
    return running.run(request)


arun = _async_twin(run)


def label(  # noqa: PLR0913  # what `pcs label` takes
    data: object,
    folder: PathLike,
    out: PathLike | None = None,
    *,
    limit: int | None = None,
    wait: bool = True,
    replace: bool = False,
    progress: bool | None = None,
    environment: Mapping[str, str] | None = None,
    text_column: str | None = None,
    id_column: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    ledger: LedgerAddress | None = None,
    models: Sequence[object] = (),
    relations: Sequence[object] = (),
    **saving: Unpack[SavingSettings],
) -> labelling.Labelled:
    """Label texts with the models, rewrites and weights of a fitted run.

    Args:
        data: The texts, as for `run`.
        folder: The folder of the run.
        out: The file or address for the labels; by default a file next to `data`, and none for a table in memory.
        limit: Take only the first N rows.
        wait: As for `run`.
        replace: Keep a file that is in the way of `out` under a dated name.
        progress: As for `run`.
        environment: Keys and base URLs; by default those of the process and of `.env`.
        text_column: The column of texts.
        id_column: The ID column.
        encoding: The encoding of a text file, such as `windows-1252`; by default UTF-8 if it fits, else a guess.
        sheet: The sheet of a workbook, by name or number; by default the first with a header and rows.
        ledger: Where the run's answers are now, if that has changed.
        models: The functions and objects that the run was given as models, if any: its folder knows only their names.
        relations: Likewise for relations.
        saving: `ask_all`, `cascade`, `max_calls`, `max_tokens`, `budget_usd`, `budget_per_day_usd`, `prices`,
            `executor`, `workers`, `ray_address`, `max_per_second` or `on_drift`, as for `pcs label`.
    """
    place = place_or_table(data)
    flags = Flags(text_column=text_column, id_column=id_column, encoding=encoding, sheet=sheet, ledger=ledger)
    request = RunRequest(
        data=place,
        folder=Path(folder),
        config=flags_only(flags),
        limit=limit,
        wait=wait,
        replace=replace,
        progress=in_notebook() if progress is None else progress,
        environment=environment,
        own=OwnObjects.of(models, relations),
    )
    _check_names(saving, labelling.Saving)
    file = None if out is None else table_place(out)
    if out is None and isinstance(place, Path | str):
        file = labelling.default_out(place)
    return labelling.label(request, file, labelling.Saving(**saving))


alabel = _async_twin(label)


def load_run(  # noqa: PLR0913  # all but one by name
    folder: PathLike | RunResult,
    *,
    text_column: str | None = None,
    concurrency: int | None = None,
    ledger: LedgerAddress | None = None,
    environment: Mapping[str, str] | None = None,
    models: Sequence[object] = (),
    relations: Sequence[object] = (),
    **saving: Unpack[SavingSettings],
) -> LoadedRun:
    """Load a fitted run: its results, and what labels further texts in this process or in those of a data engine.

    Args:
        folder: The folder of the run, or what `run` returned.
        text_column: The column of texts; by default one with a usual name such as `text`, or the only column.
        concurrency: Maximum number of simultaneous calls per model, in each process.
        ledger: Where paid calls are kept, a file or `postgresql://…`; by default where the run keeps them.
        environment: Keys and base URLs; by default those of each process and of `.env` in its working folder.
        models: The functions and objects that the run was given as models, if any: its folder knows only their names.
        relations: Likewise for relations.
        saving: As for `label`; limits hold for each process.
    """
    _check_names(saving, labelling.Saving)
    own = OwnObjects.of(models, relations)
    if isinstance(folder, RunResult):
        own = folder.own.with_others(own)
        folder = folder.folder.path
    options = LoadOptions(
        text_column=text_column,
        in_flight=concurrency,
        ledger=None if ledger is None else absolute_address(ledger),
        environment=environment,
        saving=labelling.Saving(**saving),
        own=own,
    )
    loaded = LoadedRun(Path(folder).absolute(), options)
    loaded.check()
    return loaded


def evaluate(
    votes: Votes,
    gold: Iterable[object] | Mapping[str, object],
    methods: Sequence[str] = (),
    *,
    rewritten: Sequence[str] = (),
    **splitting: Unpack[SplittingSettings],
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
    _check_names(splitting, evaluating.Splitting)
    recorded = evaluating.RecordedVotes(votes, gold_codes(votes, gold), frozenset(rewritten))
    return evaluating.evaluate_votes(recorded, evaluating.methods_named(methods), evaluating.Splitting(**splitting))


aevaluate = _async_twin(evaluate)


def relation_values(
    votes: Votes,
    gold: Iterable[object] | Mapping[str, object],
    *,
    optimiser: str = "",
    rewritten: Sequence[str] = (),
    **splitting: Unpack[SplittingSettings],
) -> evaluating.RelationValues:
    """Return what each relation adds beside the original question, with intervals, and what to keep.

    Args:
        votes: Recorded votes; `votes.hard()` for labels without log-probabilities.
        gold: As for `evaluate`.
        optimiser: How to learn; by default `naive-bayes`, or `scaling` for graded votes.
        rewritten: Relations whose variants a model wrote, so that their calls are counted.
        splitting: `folds`, `repeats`, `seed` and `resamples`.
    """
    _check_names(splitting, evaluating.Splitting)
    recorded = evaluating.RecordedVotes(votes, gold_codes(votes, gold), frozenset(rewritten))
    return evaluating.value_of_votes(recorded, evaluating.Splitting(**splitting), optimiser)


def compare(first: PathLike, second: PathLike, **splitting: Unpack[SplittingSettings]) -> Comparison:
    """Compare two runs, or parts of runs, on the rows that they have in common; no model is called.

    Args:
        first: A run folder, or a part of the votes in one, such as `runs/news:model=openai:gpt-4o` or
            `runs/news:relations=original,order`.
        second: The same; without a folder, as in `:model=NAME`, a part of the first one.
        splitting: `folds`, `repeats`, `seed` and `resamples`.
    """
    _check_names(splitting, evaluating.Splitting)
    return evaluating.compare(str(first), str(second), evaluating.Splitting(**splitting))


def estimate(folder: PathLike, **question: Any) -> Estimated:
    """Return shares, means, differences or a regression, corrected for the errors of machine labels.

    Args:
        folder: The folder of the run.
        question: Options of `pcs estimate`: `of`, `values`, `by`, `every`, `formula`, `link`, `cluster`, `probability`
            and `larger`.
    """
    _check_names(question, Question)
    return estimate_run(Path(folder), Question(**question))


def _named(settings: RunSettings) -> tuple[OwnObjects, Flags]:
    """Return the settings with names instead of functions and objects, and these by name."""
    _check_names(settings, Flags)
    for name in ("labels", "models", "relations"):
        if isinstance(settings.get(name), str):
            raise ConfigError(f"{name} is the single text {settings.get(name)!r}: give a list")
    models, relations, rewriter = settings.get("models", ()), settings.get("relations", ()), settings.get("rewriter")
    own = OwnObjects.of(models, relations)
    names = {"models": names_in(models, own.models), "relations": names_in(relations, own.relations)}
    flags: dict[str, Any] = {**settings, **names}
    if rewriter is not None and not isinstance(rewriter, str):
        rewriting = OwnObjects.of([rewriter], ())
        flags["rewriter"], own = next(iter(rewriting.models)), own.with_others(rewriting)
    return own, Flags(**flags)


def _check_names(given: Mapping[str, Any], kind: type[Any]) -> None:
    """Raise when a keyword argument is not a field of a dataclass."""
    known = [field.name for field in fields(kind)]
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise ConfigError(f"there is no setting {unknown!r}; the settings are {', '.join(known)}")
