"""Options that several verbs share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from pcs_annotator.errors import PcsWarning
from pcs_annotator.pipeline.settling import Flags

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
JSON = click.option("--json", "to_json", is_flag=True, help="Print one JSON object and nothing else.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
LIMIT = click.option("--limit", type=click.IntRange(1), help="Take only the first so many rows.")
CONFIG = click.option(
    "-c", "--config", type=PATH, help="Settings; by default pcs.toml in the working folder, if there is one."
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
    CONFIG,
)


def settings_options(function: F) -> F:
    """Add the options that say what is asked of whom."""
    for option in reversed(_SETTINGS):
        function = option(function)
    return function


def flags_of(options: dict[str, Any]) -> Flags:
    """Return what the options say; those that are not settings are left in `options`."""
    for name in ("labels", "relations"):
        options[name] = _listed(options[name])
    return Flags(**{name: options.pop(name) for name in Flags.__dataclass_fields__ if name in options})


def _listed(value: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


@contextmanager
def gathered_warnings() -> Iterator[list[str]]:
    """Gather warnings as sentences, each once, instead of printing them where they arise."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PcsWarning)
        yield notes
    found = (str(one.message) for one in caught if issubclass(one.category, PcsWarning))
    notes.extend(dict.fromkeys(found))
