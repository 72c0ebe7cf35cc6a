"""`pcs estimate`: shares, differences and regressions from labels, corrected by gold rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import join
from typing import Any

import click

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.faces.cli import options
from pcs_annotator.runs.codebook import CodebookFolder
from pcs_annotator.runs.opened import Run
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.answer import look_at
from pcs_annotator.studies.estimating import page, robust
from pcs_annotator.studies.estimating.answers import ADJUSTED, EstimateQuestion
from pcs_annotator.studies.estimating.codebook import estimate_codebook, files_for
from pcs_annotator.studies.estimating.estimate import data_name, estimate_any
from pcs_annotator.studies.estimating.groups import PERIODS
from pcs_annotator.studies.estimating.page import write_estimates
from pcs_annotator.tables.write import PAGES, OutputPolicy

question_options = options.with_options(
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
    click.option("--weight", default="", metavar="COLUMN", help="Survey weights: how much each row counts."),
    click.option("--p-adjust", type=click.Choice([*ADJUSTED]), help="For all tests of a table; default: holm."),
    click.option("--larger", is_flag=True, help="The rows are a random sample of something larger, which counts."),
)
"""Adds the options that say what to estimate."""


def question_of(given: dict[str, Any]) -> EstimateQuestion:
    """Return what the options say."""
    values: dict[str, float] = {}
    for one in given["values"]:
        label, _, number = one.rpartition("=")
        try:
            values[label] = float(number)
        except ValueError:
            raise ConfigError(f"--values {one}: must be LABEL=NUMBER, such as positive=1") from None
    usual = {"every": given["every"] or "", "p_adjust": given["p_adjust"] or "holm"}
    return EstimateQuestion(**{**given, **usual, "values": values or None})


class EstimateCommand(options.ManyOptions):
    """A command whose groups are part of its question."""

    asks = ("by",)


@click.command("estimate", cls=EstimateCommand)
@click.argument("source", metavar="RUN|TABLE")
@click.option("--label", default="", metavar="COLUMN", help="Of a table: machine labels, from anywhere.")
@click.option("--gold", default="", metavar="COLUMN", help="Of a table: true labels, in some of its rows.")
@click.option("--confidence", default="", metavar="COLUMN", help="Of a table: higher where the machine is surer.")
@question_options
@click.option(
    "--robust",
    "vary",
    is_flag=True,
    help="Of a run: the same for every model, set of relations and way of learning; would one change the conclusion?",
)
@click.option("-o", "--out", type=options.PATH, help="File to write: .html, .md, .tex, .csv or .json.")
@options.KEEP_EARLIER
@options.DETAILS
@options.JSON
def command(*, source: str, out: Path | None, replace: bool, vary: bool, **given: Any) -> None:
    """Estimate shares, means, differences or a regression from the labels of a run, or from those in a table.

    Machine labels have errors, and errors bias such figures. Gold rows that were drawn at random, or by pcs gold,
    correct that. Beside each corrected figure are those from gold rows alone and from machine labels as if true.
    """
    table, policy = bool(given["label"] or given["gold"] or given["confidence"]), OutputPolicy(replace=replace)
    if vary and table:
        raise ConfigError("--robust varies the choices of a run, and a table has none: name a run folder")
    if out is not None:
        policy.check(out, PAGES if vary else page.FORMATS)
    if vary:
        for column in ("label", "gold", "confidence"):
            del given[column]
        _estimate_under_all_choices(Path(source), out, policy, given)
        return
    if not table and (book := CodebookFolder.find(Path(source))):
        _estimate_variables(book, out, policy, question_of(given))
        return
    with options.gathered_warnings() as notes:
        found = estimate_any(source, question_of(given))
    if out is not None:
        write_estimates(found, out, policy)
    # a table has no choices to vary
    asked = ["pcs", "estimate", source, *_asked(given), *(["--robust"] if out else ["-o", "estimates.html"])]
    lines = [
        *page.answer_lines(found, everything=options.wanted("details")),
        *look_at(notes),
        *_end(out, [] if table and out else asked),
    ]
    options.show(
        lambda: {**found.to_dict(), "sentences": page.sentences(found), "warnings": notes},
        lambda: [*page.answer_shown(found), b.Answer(lines)],
        details=lambda: page.tables(found),
    )


def _estimate_variables(
    book: CodebookFolder, out: Path | None, policy: OutputPolicy, question: EstimateQuestion
) -> None:
    with options.gathered_warnings() as notes:
        found = estimate_codebook(book, question)
    files = files_for(found, out) if out is not None else []
    for file in files:
        policy.check(file, page.FORMATS)
    for one, file in zip(found, files, strict=False):
        write_estimates(one, file, policy)
    lines = [
        *page.answer_lines(found[0], everything=options.wanted("details")),
        *look_at(notes),
        *(("files", str(file)) for file in files),
    ]
    options.show(
        lambda: {**{f"{one.kind}s": one.to_dict() for one in found}, "warnings": notes},
        lambda: [*(block for one in found for block in page.answer_shown(one)), b.Answer(lines)],
        details=lambda: [table for one in found for table in page.tables(one)],
    )


def _estimate_under_all_choices(folder: Path, out: Path | None, policy: OutputPolicy, given: dict[str, Any]) -> None:
    question = question_of(given)
    with options.gathered_warnings() as notes:
        found = robust.robust(folder, question)
    if out is not None:
        recorded = Run.open(folder)
        title = question.in_words(recorded.votes.labels)
        policy.write_page(out, robust.robust_page(found, title, data_name(recorded)))
    again = ["estimate", str(folder), *_asked(given), "--robust", "-o", "robust.html"]
    following = ["paper", str(folder)] if out else again
    lines = [*robust.robust_lines(found), *look_at(notes), *_end(out, ["pcs", *following])]
    options.show(
        lambda: {"quantities": [quantity.to_dict() for quantity in found], "warnings": notes},
        lambda: [*robust.robust_shown(found), b.Answer(lines)],
        details=lambda: map(robust.robust_table, found),
    )


def _asked(given: dict[str, Any]) -> Iterator[str]:
    """Yield the options of a question again."""
    for name, value in given.items():
        for one in value if isinstance(value, tuple) else (value,):
            if one:
                option = f"--{name.replace('_', '-')}"
                yield from [option] if one is True else [option, str(one)]


def _end(out: Path | None, following: Sequence[str]) -> Iterator[tuple[str, b.Words]]:
    """Yield the last lines of an answer: the file, if one was written, and the next command."""
    if out is not None:
        yield "files", str(out)
    if following:
        yield "next", b.strong(join(following))
