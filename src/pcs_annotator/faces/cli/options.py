"""What several verbs share: options, collected warnings, and printing as JSON or text.

The options for settings are made from the table in `runs/settings.py`.
"""

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from shlex import join
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin

import click

from pcs_annotator.base.errors import ConfigError, PcsWarning
from pcs_annotator.base.fields import Setting, settings_in
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.faces.cli.ending import complain
from pcs_annotator.runs import settings
from pcs_annotator.runs.settings import EXECUTION, LIMITS, SPENDING, all_settings
from pcs_annotator.tables.find import table_place

F = TypeVar("F", bound=Callable[..., Any])
take, take_settings = settings.take, settings.take_settings


def listed(value: str | None) -> tuple[str, ...]:
    """Return the parts of a value separated by commas."""
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def list_option(name: str, help: str) -> Callable[[F], F]:
    """Return an option whose value is a list separated by commas."""
    return click.option(name, metavar="A,B", help=help, callback=lambda _context, _parameter, value: listed(value))


def _note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    context.meta[f"pcs_annotator.{parameter.name}"] = value


def labels_options(help: str) -> Callable[[F], F]:
    """Return `--labels`, a list separated by commas, and `--label`, repeated; together they are `labels`."""
    about = "One label, which may have commas; repeatable."
    how: dict[str, Any] = {"expose_value": False, "is_eager": True, "callback": _note}  # before --labels
    single = click.option("--label", multiple=True, metavar="NAME", help=about, **how)

    def both(context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
        return (*listed(value), *context.meta["pcs_annotator.label"])

    together = click.option("--labels", metavar="A,B", callback=both, help=help)
    return lambda function: together(single(function))


PATH = click.Path(path_type=Path)
TABLE = click.types.FuncParamType(table_place)


def ledger_address(_context: click.Context, _parameter: click.Parameter, address: str | None) -> LedgerAddress | None:
    """Return where a ledger is: the address of a server, or a file."""
    return address if address is None or on_server(address) else Path(address)


def setting_option(name: str) -> Callable[[F], F]:
    """Return the option of a setting; where `pcs.toml` has it too, it is None if it is not given."""
    section, setting = all_settings()[name]
    return _option(setting, None if section else setting.default)


def options_in(table: type, *names: str) -> Callable[[F], F]:
    """Return a decorator that adds the options of a dataclass, or of some of its fields; None if they are not given."""
    return with_options(*(_option(each, None) for each in settings_in(table) if each.name in (names or [each.name])))


def _option(setting: Setting, default: Any) -> Callable[[F], F]:
    if not setting.option:
        return lambda function: function
    words = setting.option.split(" ")  # such as -o --out FILE
    metavar = None if words[-1].startswith("-") else words.pop()
    option, kind = (
        partial(click.option, *words, setting.name, metavar=metavar),
        get_origin(setting.kind) or setting.kind,
    )
    if metavar == "A,B":
        help = f"{setting.help} Separated by commas."
        return labels_options(help) if setting.name == "labels" else list_option(words[0], help)
    if kind in (tuple, Sequence, Mapping):
        callback = partial(_numbers, setting) if kind is Mapping else None
        return option(multiple=True, callback=callback, help=f"{setting.help} Repeatable.")
    how: dict[str, Any] = {"help": setting.off or setting.help, "default": default}
    if kind is bool and "/" not in words[0]:
        return option(is_flag=True, flag_value=not setting.default, **how)
    return option(type=_click_type(setting), **how)


def _numbers(
    setting: Setting, _context: click.Context, _parameter: click.Parameter, values: Sequence[str]
) -> dict[str, Any] | None:
    """Return NAME=NUMBER or NAME=NUMBER,NUMBER as name → number or two numbers; None if there are none."""
    option, _, metavar = setting.option.partition(" ")
    numbers: dict[str, Any] = {}
    for value in values:
        name, _, listed = value.rpartition("=")
        try:
            first, *others = map(float, listed.split(","))
        except ValueError:
            others = [first := math.nan] * 2
        if math.isnan(first) or len(others) != metavar.count(","):
            raise ConfigError(f"{option} {value}: must be {metavar}; {setting.meaning}")
        numbers[name] = (first, *others) if others else first
    return numbers or None


def _click_type(setting: Setting) -> Any:
    if get_origin(setting.kind) is Literal:
        return click.Choice([*filter(None, get_args(setting.kind))])
    if setting.kind is Path:
        return PATH
    least, most = setting.least, setting.most
    low, high = setting.above if least is None else least, setting.below if most is None else most
    if low is None and high is None:
        return setting.kind
    bounded: Any = click.IntRange if setting.kind is int else click.FloatRange
    return bounded(low, high, min_open=setting.above is not None, max_open=setting.below is not None)


PURPOSES = {
    "Data": "[task] [data] limit gold gold_wins unknown label config folder confidence probability weight cluster",
    "Question": "of every values formula link p_adjust larger",
    "Models": "[ask]",
    "Rewrites": "[relations] rewritten",
    "Learning and promise": "[learn] folds repeats resamples methods order baselines spare_looks to_label alt_test "
    "epsilon on_drift audit keep_texts keep_days refit_every",
    "Cost and speed": f"{' '.join(SPENDING)} concurrency in_flight ledger ask fresh wait",
    "Service": "port host token names max_queue max_text seconds",
    "Output": "",
}
"""Purpose → [sections] of the table of settings, and options that are in none or belong elsewhere; output: the rest."""


class ManyOptions(click.Command):
    """A command whose help groups its options by purpose."""

    asks: ClassVar[Collection[str]] = ()  # options with another purpose elsewhere, which are part of a question here

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of their purposes."""
        groups: dict[str, list[tuple[str, str]]] = {purpose: [] for purpose in PURPOSES}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                groups["Question" if parameter.name in self.asks else _purpose(str(parameter.name))].append(record)
        longest = max(len(record[0]) for records in groups.values() for record in records)
        for purpose, records in groups.items():
            if records:
                with formatter.section(purpose):
                    formatter.write_dl([(option.ljust(min(longest, 30)), help) for option, help in records])


def _purpose(name: str) -> str:
    """Return what an option is for: as it says itself, or as its section in the table of settings does."""
    section = f"[{all_settings()[name][0]}]" if name in all_settings() else ""
    ways = (purpose for wanted in (name, section) for purpose, names in PURPOSES.items() if wanted in names.split())
    return next(ways, "Output")


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds options to a command, in this order."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


def options_for(*names: str) -> Callable[[F], F]:
    """Return a decorator that adds the options of some settings, in this order."""
    return with_options(*map(setting_option, names))


reading_options = options_for("encoding", "sheet")
execution_options = options_for(*EXECUTION)
saving_options = options_for("ask", *LIMITS)
_FROM = "Settings file, or a run folder to take them from; default: pcs.toml in this folder, if any."
CONFIG = click.option("-c", "--config", type=PATH, help=_FROM)
MOVED_LEDGER = click.option(
    "--ledger", default="", metavar="ADDRESS", help="Where the run's answers are now; default: as in the run."
)


def wanted(name: str) -> bool:
    """Tell whether the command was given an option that says how to print: `json`, `quiet` or `details`."""
    return bool(click.get_current_context().meta.get(f"pcs_annotator.{name}"))


def shown() -> bool:
    """Tell whether people read along: neither `--json` nor `--quiet` was given."""
    return not (wanted("json") or wanted("quiet"))


def _printing(*names: str, help: str) -> Callable[[F], F]:
    """Return a flag that `wanted` knows, so that no command has to hand it on."""
    return click.option(*names, is_flag=True, expose_value=False, callback=_note, help=help)


JSON = _printing("--json", help="Print one JSON object and nothing else.")
DETAILS = _printing("--details", help="Print the evidence too: weights, figures, tests, costs.")
QUIET = _printing("-q", "--quiet", help="Print only errors.")
printing = with_options(DETAILS, JSON, QUIET)  # adds the options that say how to print


SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
KEEP_EARLIER = click.option(
    "--replace", is_flag=True, help="Write the file, and keep one that was there under a dated name."
)


def settings_options(function: F) -> F:
    """Add the options for task, models, columns, learning and promise, and the file that has them."""
    table = all_settings().items()
    names = [name for name, (section, setting) in table if section and setting.option and name not in EXECUTION]
    return with_options(*map(setting_option, names), CONFIG)(function)


def _token(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str:
    token = os.environ.get(name, "").strip() if name else ""
    if name and not token:
        raise ConfigError(f"the environment variable {name} has no token: set it, or leave --token-env out")
    return token


def listening_options(port: int) -> Callable[[F], F]:
    """Add the options for where to listen, at this port by default, and whom to let in."""
    ports, host = click.IntRange(0, 65535), "Address to listen at; a public one needs a token."
    token = "Environment variable with the token that clients must send."
    names = "Name of this server behind a proxy, with the proxy's port if that is unusual; repeatable."
    return with_options(
        click.option("--port", default=port, show_default=True, type=ports, help="Port; 0 picks a free one."),
        click.option("--host", default="127.0.0.1", show_default=True, help=host),
        click.option("--token-env", "token", metavar="NAME", callback=_token, help=token),
        click.option("--allow-host", "names", multiple=True, metavar="NAME", help=names),
    )


def instead(command: str) -> str:
    """Return the command line that was given, with another command in the place of this one."""
    context = click.get_current_context()
    words = list(context.obj or (context.info_name, *context.args))
    words[words.index(str(context.info_name))] = command
    return join(["pcs", *words])


def say(text: str, *, shown: bool = True) -> None:
    """Print a sentence to stderr at once; if nothing is to be shown, warn, so that it is among the JSON's warnings."""
    if shown:
        complain(text)
    else:
        warnings.warn(text, PcsWarning, stacklevel=2)


def announced(sentences: Sequence[str]) -> None:
    """Print to stderr what is asked about, before it is."""
    for sentence in sentences:
        say(sentence)


def saying() -> Callable[[str], None]:
    """Return `say` as this command was asked to print; threads, which know of no command, may call it."""
    return partial(say, shown=shown())


def show(
    as_json: Callable[..., object],
    as_blocks: Callable[..., Iterable[object]],
    *results: Any,
    details: Callable[..., Iterable[object]] | None = None,
    stderr: bool = False,
) -> None:
    """Print results as JSON or, by their blocks, as text, if need be to stderr; nothing with `--quiet`.

    With `--details`, the evidence comes first, so that the answer is what a terminal shows last.
    """
    if wanted("json"):
        echo_json(as_json(*results))
    elif not wanted("quiet"):
        from rich.console import Console

        from pcs_annotator.showing import to_terminal

        evidence = details(*results) if details is not None and wanted("details") else ()
        to_terminal.show(*evidence, *as_blocks(*results), console=Console(highlight=False, stderr=stderr))


def tell(values: object, *lines: str) -> None:
    """Print values as JSON, or lines as they are: paths and commands, to be copied, are not broken."""
    if wanted("json"):
        echo_json(values)
    else:
        click.echo("\n".join(lines), nl=bool(lines))


def echo_json(values: object) -> None:
    """Print values as JSON; those that JSON lacks, such as paths, as strings."""
    click.echo(json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False, default=str))


@contextmanager
def working(doing: str) -> Iterator[None]:
    """Show what a command does while it takes its time, if a person watches."""
    if not (doing and shown() and sys.stderr.isatty()):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{doing} …"):
        yield


@contextmanager
def gathered_warnings(doing: str = "") -> Iterator[list[str]]:
    """Collect warnings as a list of messages, without duplicates, instead of printing them; show what is done."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught, working(doing):
        warnings.simplefilter("always", PcsWarning)
        yield notes
    messages = (str(warning.message) for warning in caught if issubclass(warning.category, PcsWarning))
    notes.extend(dict.fromkeys(messages))
