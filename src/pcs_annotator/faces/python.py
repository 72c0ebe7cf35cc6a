"""`run`, `label` and `evaluate` for Python: what the commands of the same name do, with values instead of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pcs_annotator.core.gold import gold_codes
from pcs_annotator.core.ledger_address import LedgerAddress, absolute_address
from pcs_annotator.core.tabular import table_place
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import ConfigError
from pcs_annotator.pipeline import evaluate as evaluating
from pcs_annotator.pipeline import label as labelling
from pcs_annotator.pipeline import run as running
from pcs_annotator.pipeline.loaded_run import LoadedRun, LoadOptions
from pcs_annotator.pipeline.resolve_config import Flags, flags_only, read_settings
from pcs_annotator.pipeline.run_folder import RunResult
from pcs_annotator.pipeline.run_request import RunRequest, default_folder

PathLike = str | Path


def run(  # noqa: PLR0913  # what `pcs run` takes
    data: PathLike,
    out: PathLike | None = None,
    *,
    config: PathLike | None = None,
    limit: int | None = None,
    fresh: bool = False,
    replace: bool = False,
    gold_wins: bool = False,
    wait: bool = True,
    progress: bool = False,
    environment: Mapping[str, str] | None = None,
    **settings: Any,
) -> RunResult:
    """Rewrite, ask, learn and label the texts of a file; the run folder gets labels, model and report.

    A second run asks only what is missing.

    Args:
        data: The file with the texts; a folder, a pattern such as `parts/*.parquet` or an address such as
            `s3://bucket/news.csv` is one table, too.
        out: The run folder; by default `runs/` and the name of the file.
        config: A `pcs.toml`; by default none is read.
        limit: Take only the first N rows.
        replace: Keep results of other data, labels or instruction in the folder under a dated name, and start anew.
        gold_wins: Accept gold labels that contradict each other; those that people added win over those of the data.
        fresh: Ask again what was answered before, and pay again; the old ledger is kept under another name.
        wait: Wait while another process or thread asks with the same ledger; otherwise that is an error.
        progress: Show progress on stderr.
        environment: Keys and base URLs; by default those of the process and of `.env`.
        settings: Options of `pcs run`, which override those in `config`: `labels`, `models`, `relations`, `rewriter`,
            `instruction`, `text_column`, `id_column`, `gold_column`, `draws`, `concurrency`, `executor`, `workers`,
            `ray_address`, `max_per_second`, `ledger`, `budget_usd`, `budget_per_day_usd`, `max_calls`, `max_tokens`,
            `prices`, `optimiser`, `seed`, `calibration`, `max_error`, `certainty`, `promise`, `per_label`, `sets`.
    """
    flags = _flags(settings)
    folder = default_folder(table_place(data)) if out is None else Path(out)
    learn = running.learn_defaults(folder)
    request = RunRequest(
        data=table_place(data),
        folder=folder,
        config=flags_only(flags, learn) if config is None else read_settings(Path(config), Path.cwd(), flags, learn),
        limit=limit,
        fresh=fresh,
        replace=replace,
        gold_wins=gold_wins,
        wait=wait,
        progress=progress,
        environment=environment,
    )
    return running.run(request)


def label(  # noqa: PLR0913  # what `pcs label` takes
    data: PathLike,
    folder: PathLike,
    out: PathLike | None = None,
    *,
    limit: int | None = None,
    wait: bool = True,
    replace: bool = False,
    progress: bool = False,
    environment: Mapping[str, str] | None = None,
    text_column: str | None = None,
    id_column: str | None = None,
    ledger: LedgerAddress | None = None,
    **saving: Any,
) -> labelling.Labelled:
    """Label the texts of a file with the models, rewrites and weights of a fitted run.

    Args:
        data: The file with the texts; a folder, a pattern such as `parts/*.parquet` or an address such as
            `s3://bucket/news.csv` is one table, too.
        folder: The folder of the run.
        out: The file or address for the labels; by default a file next to `data`.
        limit: Take only the first N rows.
        wait: As for `run`.
        replace: Keep a file that is in the way of `out` under a dated name.
        progress: Show progress on stderr.
        environment: Keys and base URLs; by default those of the process and of `.env`.
        text_column: The column of texts.
        id_column: The ID column.
        ledger: Where the run's answers are now, if that has changed.
        saving: `ask_all`, `cascade`, `max_calls`, `max_tokens`, `budget_usd`, `budget_per_day_usd` or `prices`, as for
            `pcs label`.
    """
    request = RunRequest(
        data=table_place(data),
        folder=Path(folder),
        config=flags_only(Flags(text_column=text_column, id_column=id_column, ledger=ledger)),
        limit=limit,
        wait=wait,
        replace=replace,
        progress=progress,
        environment=environment,
    )
    _check_names(saving, labelling.Saving)
    place = labelling.default_out(table_place(data)) if out is None else table_place(out)
    return labelling.label(request, place, labelling.Saving(**saving))


def load_run(  # all by name
    folder: PathLike,
    *,
    text_column: str | None = None,
    concurrency: int | None = None,
    ledger: LedgerAddress | None = None,
    environment: Mapping[str, str] | None = None,
    **saving: Any,
) -> LoadedRun:
    """Load a fitted run, to label Arrow tables in this process or in those of a data engine.

    Args:
        folder: The folder of the run.
        text_column: The column of texts; by default one with a usual name such as `text`, or the only column.
        concurrency: Maximum number of simultaneous calls per model, in each process.
        ledger: Where paid calls are kept, a file or `postgresql://…`; by default where the run keeps them.
        environment: Keys and base URLs; by default those of each process and of `.env` in its working folder.
        saving: As for `label`; limits hold for each process.
    """
    _check_names(saving, labelling.Saving)
    place = Path(folder).absolute()
    options = LoadOptions(
        text_column=text_column,
        in_flight=concurrency,
        ledger=None if ledger is None else absolute_address(ledger),
        environment=environment,
        saving=labelling.Saving(**saving),
    )
    loaded = LoadedRun(place, options)
    loaded.check()
    return loaded


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
        splitting: `folds`, `repeats`, `seed` and `resamples`.
    """
    _check_names(splitting, evaluating.Splitting)
    recorded = evaluating.RecordedVotes(votes, gold_codes(votes, gold), frozenset(rewritten))
    return evaluating.evaluate_votes(recorded, evaluating.methods_named(methods), evaluating.Splitting(**splitting))


def _flags(settings: Mapping[str, Any]) -> Flags:
    _check_names(settings, Flags)
    for name in ("labels", "models", "relations"):
        if isinstance(settings.get(name), str):
            raise ConfigError(f"{name} is the single text {settings[name]!r}: give a list")
    return Flags(**settings)


def _check_names(given: Mapping[str, Any], kind: type[Any]) -> None:
    """Raise when a keyword argument is not a field of a dataclass."""
    known = [field.name for field in fields(kind)]
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise ConfigError(f"there is no setting {unknown!r}; the settings are {', '.join(known)}")
