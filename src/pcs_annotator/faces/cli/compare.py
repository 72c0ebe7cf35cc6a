"""`pcs compare`: two runs, or parts of runs, on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from pcs_annotator.core.result_table import Content, Figure, ResultTable
from pcs_annotator.faces.cli import learned_view, options, result_view
from pcs_annotator.studies.compare.comparison import Comparison, comparison_json
from pcs_annotator.studies.compare.page import FIGURES, write_comparison
from pcs_annotator.studies.compare.verdict import promise_of, verdict
from pcs_annotator.verbs.evaluate import compare

EXAMPLES_PRINTED = 5
LONGEST_TEXT = 160


@click.command("compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "-o",
    "--out",
    type=options.PATH,
    default=Path("compare.html"),
    show_default=True,
    help="HTML file to write.",
)
@options.KEEP_EARLIER
@options.JSON
@options.QUIET
def command(*, first: str, second: str, out: Path, replace: bool, to_json: bool, quiet: bool) -> None:
    """Compare A and B on the rows that they have in common; no model is called.

    A and B are run folders, or parts of the votes in one: RUN:model=NAME, RUN:relations=original,order or
    RUN:optimiser=NAME, also several of these. B may leave out the folder if it is that of A, as in :model=NAME.

    It says where labels differ, whether one is more accurate (paired tests on rows that the fits did not see), what
    each costs, and which settings differ.
    """
    with options.gathered_warnings() as notes:
        found = compare(first, second)
        path = write_comparison(found, out, replace=replace)
    if to_json:
        options.echo_json({**comparison_json(found), "verdict": verdict(found), "warnings": notes, "page": str(path)})
    elif not quiet:
        print_comparison(found, [*found.notes, *notes])
        click.echo(f"wrote {path}")


def print_comparison(found: Comparison, notes: Sequence[str]) -> None:
    """Print the verdict, the figures of both, and the first rows on which they differ."""
    console = Console(highlight=False)
    for name, side in zip("AB", found.sides, strict=True):
        console.print(Text.assemble((f"{name}  ", "bold"), side.name))
    console.print()
    for at, said in enumerate(verdict(found)):
        console.print(Text(said, style="" if at else "bold"))
    console.print()
    result_view.print_tables([_table(found)], console)
    for name, side in zip("AB", found.sides, strict=True):
        console.print(Text(f"{name} accepts {found.accepted(side):,} of {found.rows:,} rows: {promise_of(side)}"))
    _print_settings(found, console)
    _print_examples(found, console)
    learned_view.print_notes(notes, console)


def _table(found: Comparison) -> ResultTable:
    rows: list[list[Content]] = []
    if found.figures is not None:
        tests = {"accuracy": found.figures.accuracy, "auroc": found.figures.auroc}
        for name, title in FIGURES:
            both = [one.get(name) for one in found.figures.figures]
            test = tests.get(name)
            figures = [None if one is None else Figure(one.value, one.interval) for one in both]
            rows.append([title, *figures, None if test is None else Figure(test.difference, test.interval)])
    costs = found.costs
    rows.append(["calls per 1,000 rows", *(one.calls for one in costs), None])
    rows.append(["dollars per 1,000 rows", *(one.usd for one in costs), None])
    columns = ("", "A", "B", "B − A")
    return ResultTable(
        name="compare", title="Side by side", columns=columns, rows=rows, digits=dict.fromkeys(columns[1:], 3)
    )


def _print_settings(found: Comparison, console: Console) -> None:
    if found.settings:
        console.print("\nsettings that differ:")
    for one in found.settings:
        console.print(Text(f"  {one.name}\n    A  {one.first}\n    B  {one.second}"))


def _print_examples(found: Comparison, console: Console) -> None:
    if found.examples:
        console.print("\nrows on which they differ, those first on which both are sure:")
    for one in found.examples[:EXAMPLES_PRINTED]:
        item = found.a.result.dataset.items[one.rows[0]]
        text = " ".join(item.text.split())
        said = ", ".join(
            f"{name}: {outcome.label or 'no label'}"
            + ("" if outcome.confidence is None else f" {outcome.confidence:.2f}")
            for name, outcome in zip("AB", one.outcomes, strict=True)
        )
        gold = "" if one.gold is None else f"; gold: {one.gold}"
        cut = f"{text[:LONGEST_TEXT]}…" if len(text) > LONGEST_TEXT else text
        console.print(Text(f"  {item.id}  {cut}"))
        console.print(Text(f"    {said}{gold}", style="dim"))
