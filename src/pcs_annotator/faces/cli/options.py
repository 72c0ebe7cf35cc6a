"""What several verbs share: options, gathered warnings, and one way to print JSON."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from pcs_annotator.errors import ConfigError, PcsWarning
from pcs_annotator.pipeline.label import Saving
from pcs_annotator.pipeline.resolve_config import Flags

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
JSON = click.option("--json", "to_json", is_flag=True, help="Print one JSON object and nothing else.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
LIMIT = click.option("--limit", type=click.IntRange(1), help="Take only the first so many rows.")
CONFIG = click.option(
    "-c", "--config", type=PATH, help="Settings; by default pcs.toml in the working folder, if there is one."
)

_PROMISE = (
    click.option(
        "--max-error",
        type=float,
        metavar="SHARE",
        help="The share of accepted labels that may be wrong; 0.05 by default.",
    ),
    click.option("--certainty", type=float, metavar="SHARE", help="How sure that promise is; 0.9 by default."),
    click.option(
        "--promise",
        type=click.Choice(["error-among-accepted", "accepted-and-wrong"]),
        help="What --max-error is a share of: of the accepted labels (default), or of all rows, on average.",
    ),
    click.option("--per-label", is_flag=True, default=None, help="Keep the promise for every label by itself."),
    click.option(
        "--calibration",
        type=click.Choice(["softmax", "temperature", "isotonic", "none"]),
        help="How scores become probabilities; softmax by default.",
    ),
    click.option("--sets", is_flag=True, default=None, help="Also give the labels that cannot be ruled out."),
)


def _removed(option: str, instead: str, **kind: Any) -> Callable[[F], F]:
    """Return an option that earlier versions had; using it is an error that names what to use instead."""

    def refuse(context: click.Context, parameter: click.Parameter, value: object) -> None:
        if context.get_parameter_source(parameter.name or "") is not ParameterSource.DEFAULT:
            raise ConfigError(f"{option} was removed: {instead}")

    return click.option(option, hidden=True, expose_value=False, callback=refuse, **kind)


_STOPPING = (
    click.option(
        "--cascade", is_flag=True, help="Ask cheap models first, expensive ones only where they can change the label."
    ),
    _removed("--stop", "asking always stops when no answer can change the label, so leave it out"),
    _removed("--level", "asking stops when no answer can change the label, however probable it is, so leave it out"),
    _removed("--prune", "pcs plan VOTES --design shows which questions are worth asking", is_flag=True),
)
_SAVING = (
    click.option("--ask-all", is_flag=True, help="Ask everything, also when a label can no longer change."),
    *_STOPPING,
    click.option("--max-calls", type=click.IntRange(1), help="Calls to make at the most, where they matter most."),
    click.option(
        "--budget", "budget_usd", type=click.FloatRange(0), metavar="USD", help="What may be spent at the most."
    ),
)
TO_LABEL = click.option(
    "--to-label",
    default=30,
    show_default=True,
    type=click.IntRange(0),
    help="Rows to write into to_label.csv for a person, while nothing is promised.",
)

_SETTINGS = (
    click.option("--labels", help="The label set, separated by commas; by default the labels in the gold column."),
    click.option("--instruction", help="What to decide, in a sentence."),
    click.option(
        "--model", "models", multiple=True, help="Who is asked, as provider:model; repeat it for more models."
    ),
    click.option("--relations", help="How texts are shown, separated by commas; by default original,voice,…"),
    click.option("--rewriter", metavar="MODEL", help="The model that rewrites; without one, rules do."),
    click.option("--text-column", help="Where the texts are."),
    click.option("--id-column", help="Where their names are; by default `id`, or row numbers."),
    click.option("--gold-column", help="Where gold labels are; may be partly empty. By default `gold` or `label`."),
    click.option("--draws", type=click.IntRange(1), help="How often the same question is repeated."),
    click.option("--concurrency", type=click.IntRange(1), help="Calls in flight per model at the most."),
    click.option(
        "--budget", "budget_usd", type=click.FloatRange(0), metavar="USD", help="What may be spent at the most."
    ),
    click.option("--optimiser", help="How to learn: auto, lr, logit, naive-bayes, ga, …"),
    click.option("--seed", type=int, help="Fixes whatever is random."),
    *_PROMISE,
    CONFIG,
)


def settings_options(function: F) -> F:
    """Add the options that say what is asked of whom."""
    return _with(_SETTINGS, function)


def promise_options(function: F) -> F:
    """Add the options that say what accepted labels must keep."""
    return _with(_PROMISE, function)


def stopping_options(function: F) -> F:
    """Add the options that say when to stop asking about a text."""
    return _with(_STOPPING, function)


def saving_options(function: F) -> F:
    """Add the options that say how to spend less on new texts."""
    return _with(_SAVING, function)


def _with(options: Sequence[Callable[[F], F]], function: F) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def saving_of(options: dict[str, Any]) -> Saving:
    """Return what the options say about spending less; those that are not about it are left in `options`."""
    return Saving(**{name: options.pop(name) for name in Saving.__dataclass_fields__ if name in options})


def flags_of(options: dict[str, Any]) -> Flags:
    """Return what the options say; those that are not settings are left in `options`."""
    for name in ("labels", "relations"):
        options[name] = _listed(options[name])
    return Flags(**{name: options.pop(name) for name in Flags.__dataclass_fields__ if name in options})


def _listed(value: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def echo_json(values: object) -> None:
    """Print values as JSON; what is neither number nor text, such as a path, as it prints."""
    click.echo(json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False, default=str))


@contextmanager
def gathered_warnings() -> Iterator[list[str]]:
    """Gather warnings as sentences, each once, instead of printing them where they arise."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PcsWarning)
        yield notes
    found = (str(one.message) for one in caught if issubclass(one.category, PcsWarning))
    notes.extend(dict.fromkeys(found))
