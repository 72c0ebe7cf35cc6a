"""`pcs estimate`: shares, differences and regressions from labels, corrected by gold rows."""

from collections.abc import Iterable, Iterator, Sequence
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
from pcs_annotator.studies.estimating import estimates_page as page
from pcs_annotator.studies.estimating import robust
from pcs_annotator.studies.estimating.answering import data_name, estimate_any
from pcs_annotator.studies.estimating.answers import Estimated, EstimateQuestion
from pcs_annotator.studies.estimating.codebook import estimate_codebook, files_for
from pcs_annotator.studies.estimating.estimates_page import write_estimates
from pcs_annotator.tables.write import PAGES, OutputPolicy


class EstimateCommand(options.ManyOptions):
    """A command whose groups are part of its question."""

    asks = ("by",)


@click.command("estimate", cls=EstimateCommand)
@click.argument("source", metavar="RUN|TABLE")
@options.options_in(EstimateQuestion)
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
def command(*, source: str, out: Path | None, replace: bool, vary: bool, **asked_for: Any) -> None:
    """Estimate shares, means, differences or a regression from the labels of a run, or from those in a table.

    Machine labels have errors, and errors bias such figures. Gold rows that were drawn at random, or by pcs gold,
    correct that. Beside each corrected figure are those from gold rows alone and from machine labels as if true.
    """
    question, policy = options.take(EstimateQuestion, dict(asked_for)), OutputPolicy(replace=replace)
    table = bool(question.label or question.gold or question.confidence)
    if vary and table:
        raise ConfigError("--robust varies the choices of a run, and a table has none: name a run folder")
    if out is not None:
        policy.check(out, PAGES if vary else page.FORMATS)
    if vary:
        _estimate_under_all_choices(Path(source), out, policy, question, _asked(asked_for))
        return
    if not table and (book := CodebookFolder.find(Path(source))):
        _estimate_variables(book, out, policy, question)
        return
    with options.gathered_warnings() as notes:
        estimated = estimate_any(source, question)
    if out is not None:
        write_estimates(estimated, out, policy)
    # a table has no choices to vary
    asked = ["pcs", "estimate", source, *_asked(asked_for), *(["--robust"] if out else ["-o", "estimates.html"])]
    options.show(
        lambda: {**estimated.to_dict(), "sentences": page.sentences(estimated), "warnings": notes},
        lambda: [*page.answer_shown(estimated), _answer([estimated], notes, _end(out, [] if table and out else asked))],
        details=lambda: page.tables(estimated),
    )


def _answer(estimates: Sequence[Estimated], notes: Sequence[str], end: Iterable[tuple[str, b.Words]]) -> b.Answer:
    return b.Answer([*page.answer_lines(estimates[0], everything=options.wanted("details")), *look_at(notes), *end])


def _estimate_variables(
    book: CodebookFolder, out: Path | None, policy: OutputPolicy, question: EstimateQuestion
) -> None:
    with options.gathered_warnings() as notes:
        estimates = estimate_codebook(book, question)
    files = files_for(estimates, out) if out is not None else []
    for file in files:
        policy.check(file, page.FORMATS)
    for each, file in zip(estimates, files, strict=False):
        write_estimates(each, file, policy)
    end = [("files", str(file)) for file in files]
    options.show(
        lambda: {**{f"{each.kind}s": each.to_dict() for each in estimates}, "warnings": notes},
        lambda: [*(block for each in estimates for block in page.answer_shown(each)), _answer(estimates, notes, end)],
        details=lambda: [table for each in estimates for table in page.tables(each)],
    )


def _estimate_under_all_choices(
    folder: Path, out: Path | None, policy: OutputPolicy, question: EstimateQuestion, asked: Iterable[str]
) -> None:
    with options.gathered_warnings() as notes:
        quantities = robust.robust(folder, question)
    if out is not None:
        recorded = Run.open(folder)
        title = question.in_words(recorded.votes.labels)
        policy.write_page(out, robust.robust_page(quantities, title, data_name(recorded)))
    again = ["estimate", str(folder), *asked, "--robust", "-o", "robust.html"]
    end = _end(out, ["pcs", *(["paper", str(folder)] if out else again)])
    lines = [*robust.robust_lines(quantities), *look_at(notes), *end]
    options.show(
        lambda: {"quantities": [quantity.to_dict() for quantity in quantities], "warnings": notes},
        lambda: [*robust.robust_shown(quantities), b.Answer(lines)],
        details=lambda: map(robust.robust_table, quantities),
    )


def _asked(asked_for: dict[str, Any]) -> Iterator[str]:
    """Yield the options of a question again."""
    values = asked_for["values"] and [f"{label}={number:g}" for label, number in asked_for["values"].items()]
    for name, value in {**asked_for, "values": values}.items():
        option = f"--{name.replace('_', '-')}"
        for each in value if isinstance(value, tuple | list) else [value] if value else []:
            yield from [option] if each is True else [option, str(each)]


def _end(out: Path | None, following: Sequence[str]) -> Iterator[tuple[str, b.Words]]:
    if out is not None:
        yield "files", str(out)
    if following:
        yield "next", b.strong(join(following))
