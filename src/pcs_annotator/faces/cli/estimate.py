"""`pcs estimate`: shares, means, differences and regressions, corrected for the errors of machine labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.faces.cli import options, result_view
from pcs_annotator.studies.estimating import estimate, shown
from pcs_annotator.studies.estimating.answers import Question
from pcs_annotator.studies.estimating.groups import PERIODS
from pcs_annotator.studies.estimating.write import write_estimates

_QUESTION = (
    click.option(
        "--of", multiple=True, metavar="LABEL", help="Label, or several joined by +, such as a+b; repeatable."
    ),
    click.option(
        "--by", multiple=True, metavar="COLUMN", help="Each group of this column, and differences; twice: combinations."
    ),
    click.option("--every", type=click.Choice([*PERIODS]), help="With --by and a column of dates: the period."),
    click.option("--values", multiple=True, metavar="LABEL=NUMBER", help="Mean of these numbers; one per label."),
    click.option("--formula", default="", metavar="TEXT", help='Regression: "hateful ~ party + log(followers)".'),
    click.option("--link", default="", metavar="NAME", help="linear, logistic or multinomial; default: by outcome."),
    click.option("--cluster", default="", metavar="COLUMN", help="Rows with the same value have errors in common."),
    click.option("--probability", default="", metavar="COLUMN", help="How probable it was that a row got gold."),
    click.option("--larger", is_flag=True, help="The rows are a random sample of something larger, which counts."),
)


def question_options(function: options.F) -> options.F:
    """Add the options that say what to estimate."""
    return options.with_options(_QUESTION, function)


def question_of(given: dict[str, Any]) -> Question:
    """Return what the options say."""
    return Question(**{**given, "values": _numbers(given["values"]), "every": given["every"] or ""})


@click.command("estimate")
@click.argument("folder", type=options.PATH)
@question_options
@click.option("-o", "--out", type=options.PATH, help="File to write: .html, .md, .tex, .csv or .json.")
@options.JSON
def command(*, folder: Path, out: Path | None, to_json: bool, **given: Any) -> None:
    """Estimate shares, means, differences or a regression from the labels of the run in FOLDER.

    Machine labels have errors, and errors bias such figures. Gold rows that were drawn at random, or by pcs gold,
    correct that. Beside each corrected figure are those from gold rows alone and from machine labels as if true.
    """
    with options.gathered_warnings() as notes:
        found = estimate.estimate_run(folder, question_of(given))
    if out is not None:
        write_estimates(found, out)
    if to_json:
        options.echo_json({**found.to_dict(), "sentences": shown.sentences(found), "warnings": notes})
        return
    console = Console(highlight=False)
    result_view.print_tables(shown.tables(found), console)
    for sentence in shown.sentences(found):
        console.print(Text(sentence))
    if out is not None:
        click.echo(f"wrote {out}")


def _numbers(given: tuple[str, ...]) -> dict[str, float] | None:
    found = {}
    for one in given:
        label, _, number = one.rpartition("=")
        try:
            found[label] = float(number)
        except ValueError:
            raise ConfigError(f"--values {one}: must be LABEL=NUMBER, such as positive=1") from None
    return found or None
