"""`pcs compare`: two runs, or their parts, on the same rows."""

from collections.abc import Iterator
from pathlib import Path
from shlex import join

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.diff import clipped
from pcs_annotator.studies.compare import comparison_page as page
from pcs_annotator.studies.compare.comparison import Comparison
from pcs_annotator.studies.compare.comparison_page import verdict
from pcs_annotator.tables.write import PAGES, OutputPolicy
from pcs_annotator.verbs import evaluate

EXAMPLES_PRINTED = 5
LONGEST_TEXT = 160


@click.command("compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("-o", "--out", type=options.PATH, help="HTML file to write.")
@options.KEEP_EARLIER
@options.printing
def command(*, first: str, second: str, out: Path | None, replace: bool) -> None:
    """Which is better, A or B? Compare them on the rows that they have in common; no model is called.

    A and B are run folders, or parts of the votes in one: RUN:model=NAME, RUN:relations=original,order or
    RUN:optimiser=NAME, also several of these. B may leave out the folder if it is that of A, as in :model=NAME.

    It says where labels differ, whether one is more accurate (paired tests on rows that the fits did not see), what
    each costs, and which settings differ.
    """
    policy = OutputPolicy(replace=replace)
    if out is not None:
        policy.check(out, PAGES)
    with options.gathered_warnings("comparing both on the same rows") as notes:
        comparison = evaluate.compare(first, second)
    if out is not None:
        policy.write_page(out, page.render(comparison))
    next_step = join(["pcs", "compare", first, second, *(["--details"] if out else ["-o", "compare.html"])])
    options.show(
        lambda: {**comparison.to_dict(), "verdict": verdict(comparison), "warnings": notes, "page": out},
        lambda: [
            *(b.text(b.strong(f"{name}  "), side.name) for name, side in zip("AB", comparison.sides, strict=True)),
            b.Bullets(verdict(comparison), "spoken"),
            *b.warnings([*comparison.notes, *notes]),
            b.Answer([*([("report", str(out))] if out else []), ("next", b.strong(next_step))]),
        ],
        details=lambda: comparison_details(comparison),
    )


def comparison_details(comparison: Comparison) -> Iterator[b.Block]:
    """Yield the figures of both, and the first rows on which they differ."""
    yield from (show(comparison) for show in (page.quality, page.promises, page.cost, page.settings))
    if comparison.examples:
        yield b.Paragraph("rows on which they differ, those first on which both are sure:", "title")
    for example in comparison.examples[:EXAMPLES_PRINTED]:
        item = comparison.a.result.dataset.items[example.rows[0]]
        labels = []
        for name, outcome in zip("AB", example.outcomes, strict=True):
            sure = "" if outcome.confidence is None else f" {outcome.confidence:.2f}"
            labels.append(f"{name}: {outcome.label or 'no label'}{sure}")
        gold = "" if example.gold is None else f"; gold: {example.gold}"
        yield f"  {item.id}  {clipped(' '.join(item.text.split()), LONGEST_TEXT)}"
        yield b.note(f"    {', '.join(labels)}{gold}")
