"""`pcs evaluate`: compare PCS with other methods on the same recorded votes and the same splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.faces.cli import learned_view, options, result_view
from pcs_annotator.tables.table_files import Reading
from pcs_annotator.verbs import evaluate

_SPLITTING = (
    click.option(
        "--folds", default=5, show_default=True, type=click.IntRange(2, 100), metavar="N", help="Folds per split."
    ),
    click.option(
        "--repeats",
        default=3,
        show_default=True,
        type=click.IntRange(1, 100),
        metavar="N",
        help="Random splits to average over.",
    ),
    click.option(
        "--resamples",
        default=2000,
        show_default=True,
        type=click.IntRange(20, 100_000),
        metavar="N",
        help="Bootstrap resamples for each interval and test.",
    ),
    click.option(
        "--rewritten",
        multiple=True,
        metavar="RELATION",
        help="Relation rewritten by a model, at one call per text; not needed for run folders; repeatable.",
    ),
)


def splitting_options(function: options.F) -> options.F:
    """Add the options for splits and for counting calls."""
    return options.with_options(_SPLITTING, function)


@click.command("evaluate")
@click.argument("source", type=options.PATH)
@click.option(
    "--optimiser",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="How PCS learns; the other methods are tested against it.",
)
@options.list_option("--methods", "Methods, the first tested against the others; default: all.")
@splitting_options
@options.list_option("--order", "Labels from the lowest to the highest, for weighted κ and ordinal α.")
@options.reading_options
@click.option("--seed", default=0, show_default=True, metavar="N", help="Random seed for splits and resamples.")
@click.option("-o", "--out", type=options.PATH, help="Folder for the tables as Markdown, CSV and LaTeX.")
@click.option("--alt-test", is_flag=True, help="Test instead whether the model may replace the human coders.")
@click.option(
    "--epsilon",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="For --alt-test: how much worse than a coder the model may be: .2 for experts, .1 for crowds.",
)
@options.JSON
@options.QUIET
def command(*, source: Path, alt_test: bool, epsilon: float, to_json: bool, quiet: bool, **given: Any) -> None:
    """Compare PCS with other methods on the same votes and the same splits; no model is called.

    SOURCE is a table of votes with gold (see pcs fit), or a run folder, which then also gets evaluation-methods.json.
    For methods that these votes do not support, a note says what they would need.
    """
    if alt_test:
        tested = evaluate.may_replace(source, epsilon)
        options.show(replacing_json, print_replacing, tested, to_json=to_json, quiet=quiet)
        return
    splitting = options.take(evaluate.Splitting, given)
    given["reading"] = options.take(Reading, given)
    request = evaluate.EvaluateRequest(source=source, splitting=splitting, **given)
    with options.gathered_warnings() as notes:
        found = evaluate.evaluate_source(request)
    options.show(evaluated_json, print_evaluation, found, notes, to_json=to_json, quiet=quiet)


def replacing_json(found: evaluate.Replacing) -> dict[str, Any]:
    """Return the alternative annotator test as plain values."""
    values = found.test.to_dict()
    named = [{"name": name, **one} for name, one in zip(found.names, values["coders"], strict=True)]
    return {**values, "coders": named}


def print_replacing(found: evaluate.Replacing) -> None:
    """Print the alternative annotator test."""
    rows = [
        [name, one.model, one.coder, one.rows, one.p_value, "yes" if one.may_replace else "no"]
        for name, one in zip(found.names, found.test.coders, strict=True)
    ]
    table = ResultTable(
        name="replacing",
        title="May the model replace a coder? Share of rows on which each agrees at least as well with the others",
        columns=["coder left out", "model", "coder", "rows", "p", "may replace"],
        rows=rows,
        notes=[found.test.sentence(found.names)],
        digits={"p": 3},
    )
    result_view.print_tables([table], Console(highlight=False))


def evaluated_json(found: evaluate.Evaluated, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_evaluation` shows as plain values."""
    return {
        **found.evaluation.to_dict(),
        "annotators": list(found.votes.annotators),
        "relations": list(found.votes.relations),
        "labels": list(found.votes.labels),
        "warnings": list(notes),
        "files": [str(path) for path in found.files],
    }


def print_evaluation(found: evaluate.Evaluated, notes: Sequence[str]) -> None:
    """Print methods side by side, and the tests of the first against the others."""
    console = Console(highlight=False)
    *compared, against_gold, _by_label, _confusion = found.tables
    known = len(found.evaluation.methods)  # the others are dashes, explained in the notes
    title = f"{found.evaluation.methods[0].method}: {against_gold.title}"
    short = replace(against_gold, title=title, notes=against_gold.notes[2:])
    result_view.print_tables([*(replace(table, rows=table.rows[:known]) for table in compared), short], console)
    learned_view.print_notes(notes, console)
    print_files(found.files, console)


def print_files(files: Sequence[object], console: Console) -> None:
    """Print the files that were written."""
    if files:
        console.print("wrote " + ", ".join(map(str, files)), style="bold", markup=False, soft_wrap=True)
