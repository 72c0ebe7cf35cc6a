"""`pcs estimate`: shares, differences and regressions from labels, corrected by gold rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import Any

import click

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.faces.cli import options
from pcs_annotator.runs.opened import Run
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.answer import look_at
from pcs_annotator.studies.estimating import estimates_page as page
from pcs_annotator.studies.estimating import robust
from pcs_annotator.studies.estimating.answering import data_name, estimate_all, files_for
from pcs_annotator.studies.estimating.answers import Estimated, EstimateQuestion
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
    table = question.is_about_table
    if vary and table:
        raise ConfigError("--robust varies the choices of a run, and a table has none: name a run folder")
    if out is not None:
        policy.check(out, PAGES if vary else page.FORMATS)
    if vary:
        _estimate_under_all_choices(Path(source), out, policy, question, _asked(asked_for))
        return
    with options.gathered_warnings("estimating") as notes:
        estimates = estimate_all(source, question)
    files = files_for(estimates, out)
    for file in files:
        policy.check(file, page.FORMATS)
    for each, file in zip(estimates.values(), files, strict=False):
        write_estimates(each, file, policy)
    asked = ["pcs", "estimate", source, *_asked(asked_for), *(["--robust"] if out else ["-o", "estimates.html"])]
    may_vary = not table and "" in estimates  # a table has no choices to vary, and several variables have too many
    end = _end(files, asked if may_vary or not out else [])
    lines = page.answer_lines(next(iter(estimates.values())), everything=options.wanted("details"))
    shown = [block for each in estimates.values() for block in page.answer_shown(each)]
    options.show(
        lambda: {**_as_json(estimates), "warnings": notes},
        lambda: [*shown, b.Answer([*lines, *look_at(notes), *end])],
        details=lambda: [table for each in estimates.values() for table in page.tables(each)],
    )


def _as_json(estimates: Mapping[str, Estimated]) -> dict[str, Any]:
    values = {name: {**each.to_dict(), "sentences": page.sentences(each)} for name, each in estimates.items()}
    return values.get("", values)


def _estimate_under_all_choices(
    folder: Path, out: Path | None, policy: OutputPolicy, question: EstimateQuestion, asked: Iterable[str]
) -> None:
    with options.gathered_warnings("trying other models, questions and ways of learning") as notes:
        quantities = robust.robust(folder, question)
    if out is not None:
        recorded = Run.open(folder)
        title = question.in_words(recorded.votes.labels)
        policy.write_page(out, robust.robust_page(quantities, title, data_name(recorded)))
    again = ["estimate", str(folder), *asked, "--robust", "-o", "robust.html"]
    end = _end([out] if out else [], ["pcs", *(["paper", str(folder)] if out else again)])
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


def _end(files: Sequence[Path], following: Sequence[str]) -> Iterator[tuple[str, b.Words]]:
    if files:
        yield "files", ", ".join(map(str, files))
    if following:
        yield "next", b.strong(join(following))
