"""What several verbs share: options, collected warnings, and printing as JSON or text."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import click

from pcs_annotator.base.errors import ConfigError, PcsWarning
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.tables.tabular import table_place

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def listed(value: str | None) -> tuple[str, ...]:
    """Return the parts of a value separated by commas."""
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def list_option(name: str, help: str) -> Callable[[F], F]:
    """Return an option whose value is a list separated by commas."""
    return click.option(name, metavar="A,B", help=help, callback=lambda _context, _parameter, value: listed(value))


_SINGLE_LABELS = "pcs_annotator.single_labels"


def _note_labels(context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> None:
    context.meta[_SINGLE_LABELS] = given


def _all_labels(context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    return (*listed(value), *context.meta[_SINGLE_LABELS])


def labels_options(help: str) -> Callable[[F], F]:
    """Return `--labels`, a list separated by commas, and `--label`, repeated; together they are `labels`."""
    single = click.option(
        "--label",
        multiple=True,
        metavar="NAME",
        expose_value=False,
        is_eager=True,  # before --labels
        callback=_note_labels,
        help="One label, which may have commas; repeatable.",
    )
    together = click.option("--labels", metavar="A,B", help=help, callback=_all_labels)
    return lambda function: together(single(function))


PATH = click.Path(path_type=Path)
TABLE = click.types.FuncParamType(table_place)


def ledger_address(_context: click.Context, _parameter: click.Parameter, given: str | None) -> LedgerAddress | None:
    """Return where a ledger is: the address of a server, or a file."""
    return given if given is None or on_server(given) else Path(given)


LEDGER = click.option(
    "--ledger",
    metavar="ADDRESS",
    help="Where answers are kept: a file that runs share, or postgresql://…; default: ledger.db in the run folder.",
)
MOVED_LEDGER = click.option(
    "--ledger", default="", metavar="ADDRESS", help="Where the run's answers are now; default: as in the run."
)
JSON = click.option("--json", "to_json", is_flag=True, help="Print one JSON object and nothing else.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
SPREADSHEET_SAFE = click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="Put an apostrophe before cells that a spreadsheet would run as a formula.",
)
EXCEL = click.option(
    "--excel",
    is_flag=True,
    help="For Excel: a .csv file that you name has the delimiter and decimal sign of this computer.",
)
SHARD = click.option(
    "--shard",
    metavar="I/N",
    default="",
    help="Use only the Ith of N equal parts of the rows, with a run folder for each; pcs merge puts them together.",
)
LIMIT = click.option("--limit", type=click.IntRange(1), metavar="N", help="Use only the first N rows.")
REPLACE = click.option("--replace", is_flag=True, help="Keep what is in the way under a dated name, and start anew.")
KEEP_EARLIER = click.option(
    "--replace", is_flag=True, help="Write the file even if there is one, which is kept under a dated name."
)
GOLD_WINS = click.option(
    "--gold-wins", is_flag=True, help="Accept gold labels that contradict each other; yours win over those of the data."
)
CONFIG = click.option(
    "-c",
    "--config",
    type=PATH,
    help="Settings file, or a run folder to take them from; default: pcs.toml in this folder, if any.",
)
TEXT_COLUMN = click.option(
    "--text-column", metavar="NAME", help="Text column; default: `text` or similar, or the only column."
)
_READING = (
    click.option(
        "--encoding",
        default="",
        metavar="NAME",
        help="Encoding of a text file, such as windows-1252; default: UTF-8 if it fits, else a guess.",
    ),
    click.option(
        "--sheet",
        default="",
        metavar="NAME",
        help="Sheet of a workbook, by name or number; default: the first with a header and rows.",
    ),
)
ID_COLUMN = click.option(
    "--id-column", metavar="NAME", help="ID column, or `row` to number the rows; default: `id`, or row numbers."
)
_COLUMNS = (
    *_READING,
    TEXT_COLUMN,
    ID_COLUMN,
    click.option(
        "--gold-column", metavar="NAME", help="Column of gold labels, may be partly empty; default: `gold` or `label`."
    ),
)


def _prices(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Return NAME=A or NAME=A,B as name → numbers."""
    found = {}
    for text in given:
        name, _, numbers = text.rpartition("=")
        try:
            found[name] = tuple(float(number) for number in numbers.split(","))
        except ValueError:
            how = "write MODEL=IN,OUT, such as openai:gpt-4o-mini=0.15,0.6"
            raise ConfigError(f"--price {text!r}: {how}") from None
    return found


def _token(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str:
    """Return the token in an environment variable; empty if none is named."""
    token = os.environ.get(name, "").strip() if name else ""
    if name and not token:
        raise ConfigError(f"the environment variable {name} has no token: set it, or leave --token-env out")
    return token


_LISTENING = (
    click.option(
        "--host", default="127.0.0.1", show_default=True, help="Address to listen at; a public one needs a token."
    ),
    click.option(
        "--token-env",
        "token",
        metavar="NAME",
        callback=_token,
        help="Environment variable with the token that clients must send.",
    ),
    click.option(
        "--allow-host", "names", multiple=True, metavar="NAME", help="Name of this server behind a proxy; repeatable."
    ),
)

_LIMITS = (
    click.option(
        "--budget",
        "budget_usd",
        type=click.FloatRange(0),
        metavar="USD",
        help="Spend at most this many US dollars in this folder, earlier commands included.",
    ),
    click.option(
        "--budget-per-day",
        "budget_per_day_usd",
        type=click.FloatRange(0),
        metavar="USD",
        help="Spend at most this many US dollars a day (UTC) in this folder.",
    ),
    click.option("--max-calls", type=click.IntRange(1), metavar="N", help="Make at most N calls in this command."),
    click.option(
        "--max-tokens", type=click.IntRange(1), metavar="N", help="Use at most N tokens, in and out, in this command."
    ),
    click.option(
        "--price",
        "prices",
        multiple=True,
        callback=_prices,
        metavar="MODEL=IN,OUT",
        help="Price of a model in US dollars per million tokens in and out; repeatable.",
    ),
)

_EXECUTION = (
    click.option(
        "--executor",
        type=click.Choice(["local", "batch", "ray"]),
        help="Ask live from here (local, the default), in batches at half the price, up to a day per wave, or from the "
        "machines of a Ray cluster.",
    ),
    click.option(
        "--workers", type=click.IntRange(1), metavar="N", help="Workers on the Ray cluster; default: one per CPU."
    ),
    click.option(
        "--ray-address",
        metavar="ADDRESS",
        help="Ray cluster, such as auto or HOST:6379; default: $RAY_ADDRESS, else one is started on this machine.",
    ),
    click.option(
        "--max-per-second",
        type=click.FloatRange(0, min_open=True),
        metavar="N",
        help="Make at most N calls per second, to all models and from all workers together.",
    ),
)
NO_WAIT = click.option(
    "--no-wait", "wait", flag_value=False, default=True, help="Stop if another process uses the ledger; default: wait."
)


def say(text: str, *, shown: bool = True) -> None:
    """Print a sentence to stderr at once; if nothing is to be shown, warn, so that it is among the JSON's warnings."""
    if shown:
        click.echo(text, err=True)
    else:
        warnings.warn(text, PcsWarning, stacklevel=2)


_PROMISE = (
    click.option(
        "--max-error",
        type=float,
        metavar="SHARE",
        help="Share of accepted labels that may be wrong; default: 0.05.",
    ),
    click.option(
        "--certainty",
        type=float,
        metavar="SHARE",
        help="Share of fits, over draws of gold rows, in which that must hold; default: 0.9.",
    ),
    click.option(
        "--promise",
        type=click.Choice(["error-among-accepted", "accepted-and-wrong"]),
        help="What --max-error is a share of: the accepted labels (default), or all rows, on average.",
    ),
    click.option("--per-label", is_flag=True, default=None, help="Make the promise per label."),
    click.option(
        "--calibration",
        type=click.Choice(["softmax", "temperature", "none"]),
        help="How scores become probabilities; default: softmax.",
    ),
    click.option("--sets", is_flag=True, default=None, help="Also list the labels that cannot be ruled out."),
)


_STOPPING = (
    click.option(
        "--cascade", is_flag=True, help="Ask cheap models first, expensive ones only where they can change the label."
    ),
)
_SAVING = (
    click.option("--ask-all", is_flag=True, help="Ask all questions, even when the label can no longer change."),
    *_STOPPING,
    *_LIMITS,
)
ON_DRIFT = click.option(
    "--on-drift",
    default="review",
    show_default=True,
    type=click.Choice(["review", "accept"]),
    help="If the texts differ from the gold rows: leave all for review, or decide as if they did not.",
)
TO_LABEL = click.option(
    "--to-label",
    default=30,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Write N rows to to_label.csv for a person to label, if nothing can be promised yet.",
)

SEED = click.option("--seed", type=int, metavar="N", help="Random seed; default: 0.")

_SETTINGS = (
    labels_options("The labels, separated by commas; default: those in the gold column."),
    click.option("--instruction", help="What to decide, in one sentence."),
    click.option(
        "--model", "models", multiple=True, metavar="MODEL", help="A model to ask, as provider:model; repeatable."
    ),
    list_option("--relations", "Relations, separated by commas; default: those that suit the models (see pcs plan)."),
    click.option(
        "--answers",
        type=click.Choice(["auto", "graded", "hard"]),
        help="Keep the probability of every label (graded) or the label only (hard); default: graded where possible.",
    ),
    click.option("--rewriter", metavar="MODEL", help="Model that rewrites the texts; without it, rules do."),
    *_COLUMNS,
    click.option("--draws", type=click.IntRange(1), metavar="N", help="Ask each question N times."),
    click.option("--concurrency", type=click.IntRange(1), metavar="N", help="At most N calls in flight per model."),
    LEDGER,
    *_LIMITS,
    click.option(
        "--optimiser", metavar="NAME", help="How weights are learned: auto, lr, logit, scaling, naive-bayes, …"
    ),
    SEED,
    *_PROMISE,
    CONFIG,
)


def reading_options(function: F) -> F:
    """Add the options for how a file is read."""
    return with_options(_READING, function)


def listening_options(function: F) -> F:
    """Add the options for where to listen, and whom to let in."""
    return with_options(_LISTENING, function)


def settings_options(function: F) -> F:
    """Add the options for task, models, columns, learning and promise."""
    return with_options(_SETTINGS, function)


def column_options(function: F) -> F:
    """Add the options for the columns of a table, and for how it is read."""
    return with_options(_COLUMNS, function)


def promise_options(function: F) -> F:
    """Add the options for calibration and promise."""
    return with_options(_PROMISE, function)


def execution_options(function: F) -> F:
    """Add the options for where calls are made, and how fast."""
    return with_options(_EXECUTION, function)


def stopping_options(function: F) -> F:
    """Add the options for when to stop asking about a text."""
    return with_options(_STOPPING, function)


def saving_options(function: F) -> F:
    """Add the options for spending less on new texts."""
    return with_options(_SAVING, function)


def with_options(options: Sequence[Callable[[F], F]], function: F) -> F:
    """Add options to a command, in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def take(make: Callable[..., T], given: dict[str, Any]) -> T:
    """Return `make` called with the options that are its parameters; they are taken out of `given`."""
    return make(**{name: given.pop(name) for name in signature(make).parameters if name in given})


def show(
    as_json: Callable[..., object],
    as_blocks: Callable[..., Iterable[object]],
    *found: Any,
    to_json: bool,
    quiet: bool = False,
) -> None:
    """Print results as JSON or, by their blocks, as text; nothing if `quiet`."""
    if to_json:
        echo_json(as_json(*found))
    elif not quiet:
        from pcs_annotator.showing import to_terminal

        to_terminal.show(*as_blocks(*found))


def echo_json(values: object) -> None:
    """Print values as JSON; those that JSON lacks, such as paths, as strings."""
    click.echo(json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False, default=str))


@contextmanager
def gathered_warnings() -> Iterator[list[str]]:
    """Collect warnings as a list of messages, without duplicates, instead of printing them."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PcsWarning)
        yield notes
    found = (str(one.message) for one in caught if issubclass(one.category, PcsWarning))
    notes.extend(dict.fromkeys(found))
