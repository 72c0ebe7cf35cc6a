"""`pcs evaluate`: PCS and every other method on the same recorded votes and the same splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from pcs_annotator.faces.cli.learned_view import print_notes
from pcs_annotator.faces.cli.options import JSON, PATH, QUIET, F, echo_json, gathered_warnings
from pcs_annotator.faces.cli.result_view import print_table
from pcs_annotator.pipeline.evaluate import Evaluated, EvaluateRequest, Splitting, evaluate_source, evaluation_json

_SPLITTING = (
    click.option("--folds", default=5, show_default=True, type=click.IntRange(2, 100), help="Folds of every split."),
    click.option(
        "--repeats", default=3, show_default=True, type=click.IntRange(1, 100), help="Random splits to average over."
    ),
    click.option(
        "--resamples",
        default=2000,
        show_default=True,
        type=click.IntRange(20, 100_000),
        help="Bootstrap resamples behind every interval and test.",
    ),
    click.option(
        "--rewritten",
        multiple=True,
        metavar="RELATION",
        help="A relation whose texts a model wrote, so that each cost a call; known for run folders. Repeatable.",
    ),
)


def splitting_options(function: F) -> F:
    """Add the options that say how rows are split and calls are counted."""
    for option in reversed(_SPLITTING):
        function = option(function)
    return function


def splitting_of(options: dict[str, Any], seed: int) -> Splitting:
    """Return what the options say about splits; the others are left in `options`."""
    return Splitting(seed=seed, **{name: options.pop(name) for name in ("folds", "repeats", "resamples")})


@click.command("evaluate")
@click.argument("source", type=PATH)
@click.option(
    "--optimiser", default="auto", show_default=True, help="How PCS learns; all others are tested against it."
)
@click.option("--methods", help="Methods separated by commas, the first against the others; by default all there are.")
@splitting_options
@click.option("--seed", default=0, show_default=True, help="Fixes splits and resamples.")
@click.option("-o", "--out", type=PATH, help="A folder for the tables as Markdown, CSV and LaTeX.")
@JSON
@QUIET
def command(*, source: Path, methods: str | None, to_json: bool, quiet: bool, **options: Any) -> None:
    """Compare PCS with every other method on the same votes and the same splits; asks nobody.

    SOURCE is a table of votes with gold (see pcs fit) or the folder of a run, which then also gets
    evaluation-methods.json. A method that the votes cannot give says what it would need.
    """
    names = [name.strip() for name in (methods or "").split(",") if name.strip()]
    splitting = splitting_of(options, options.pop("seed"))
    request = EvaluateRequest(source=source, methods=names, splitting=splitting, **options)
    with gathered_warnings() as notes:
        found = evaluate_source(request)
    if to_json:
        echo_json(evaluated_json(found, notes))
    elif not quiet:
        print_evaluation(found, notes)


def evaluated_json(found: Evaluated, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_evaluation` shows as plain values."""
    return {
        **evaluation_json(found.evaluation),
        "annotators": list(found.votes.annotators),
        "relations": list(found.votes.relations),
        "labels": list(found.votes.labels),
        "warnings": list(notes),
        "files": [str(path) for path in found.files],
    }


def print_evaluation(found: Evaluated, notes: Sequence[str], console: Console | None = None) -> None:
    """Print methods side by side, and the tests of the first against the others."""
    console = console or Console(highlight=False)
    for table in found.tables:
        known = table.rows[: len(found.evaluation.methods)]  # the others are dashes, and the notes say why
        print_table(replace(table, rows=known), console)
    print_notes(notes, 0, console)
    print_files(found.files, console)


def print_files(files: Sequence[object], console: Console) -> None:
    """Print what was written."""
    if files:
        console.print(Text("wrote " + ", ".join(map(str, files)), style="bold"), soft_wrap=True)
