"""`pcs gold`, `pcs finish` and `pcs estimate`: from labels to conclusions."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import join
from typing import Any

import click

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import counted
from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.faces.cli import options
from pcs_annotator.runs.codebook import CodebookFolder
from pcs_annotator.runs.run import Run
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.answer import look_at
from pcs_annotator.showing.formats import label_name, percent
from pcs_annotator.studies import finish as finishing
from pcs_annotator.studies.estimating import gold, page, robust
from pcs_annotator.studies.estimating.answers import ADJUSTED, EstimateQuestion
from pcs_annotator.studies.estimating.codebook import estimate_codebook, files_for
from pcs_annotator.studies.estimating.estimate import data_name, estimate_any
from pcs_annotator.studies.estimating.groups import PERIODS
from pcs_annotator.studies.estimating.page import write_estimates
from pcs_annotator.tables.write import PAGES, OutputPolicy

SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command("gold")
@click.argument("folder", type=options.PATH)
@click.option("--n", "rows", type=click.IntRange(1), metavar="N", help="Draw N texts and write them to to_label.csv.")
@click.option(
    "--draw",
    type=click.Choice(gold.DRAWINGS),
    default="simple",
    show_default=True,
    help="All rows alike; equally many per machine label or group; or doubtful rows more often.",
)
@click.option("--by", default="", metavar="COLUMN", help="Column of groups, to draw from or to compare.")
@click.option("--of", default="", metavar="LABEL", help="Label, or several joined by +; default: the first.")
@click.option("--goal", type=click.Choice(gold.GOALS), help="What the rows are for; default: all goals, in a table.")
@click.option("--width", type=SHARE, metavar="X", help="Share: an interval of ± X, such as .03; default .05.")
@click.option("--difference", type=SHARE, metavar="X", help="Difference between groups of --by, or slope; default .1.")
@click.option("--power", type=SHARE, metavar="X", help="How probable it is to find that difference; default .8.")
@click.option("--max-error", type=SHARE, metavar="X", help="Promise and finish: labels that may be wrong; default .05.")
@click.option("--certainty", type=SHARE, metavar="X", help="How sure that must be; default .9.")
@click.option("--accuracy", type=SHARE, metavar="X", help="Right labels, assumed without 20 gold rows; default .8.")
@options.JSON
def gold_command(*, folder: Path, rows: int | None, draw: Any, by: str, **wish: Any) -> None:
    """Show how many gold rows the run in FOLDER needs, before anybody labels them; with --n, draw them.

    The design is kept in the run folder, and pcs estimate uses it. Fill in to_label.csv, and pass it to pcs fit --gold.
    """
    if rows is not None:
        written, place = gold.draw_gold(folder, rows, draw, by)
        known = f"the texts of {rows - written} of {rows} rows have gold, or were drawn twice: they count, too"
        wrote = f"wrote {written} rows to {place}: fill in the column gold, then pcs fit {folder} --gold {place}"
        lines = [*([known] if written < rows else []), *([wrote] if written else [])]
        options.tell({"rows": written, "drawn": rows, "file": str(place)}, *lines)
        return
    found = gold.plan_gold(folder, options.take(gold.GoldGoal, {"by": by, **wish}))
    following = _next_draw(folder, found)
    options.show(
        lambda: asdict(found),
        lambda: [gold_plan_shown(found), *([b.Answer([*_end(None, following)])] if following else [])],
    )


def _next_draw(folder: Path, found: gold.GoldPlan) -> list[str]:
    """Return the command that draws what the nearest goal needs of a simple sample; empty if nothing is needed."""
    ways = [each.get("simple") or each.get("gold only") for each in found.needed.values()]
    count = min(100, found.left, min((n - found.gold_rows for n in ways if n and n > found.gold_rows), default=0))
    if not count:
        return []
    return ["pcs", "gold", str(folder), "--n", str(count)]


@click.command("finish")
@click.argument("folder", type=options.PATH)
@click.option("--max-error", type=SHARE, required=True, metavar="X", help="Share of all labels that may be wrong.")
@click.option("--certainty", type=SHARE, default=0.9, show_default=True, metavar="X", help="How sure that must be.")
@click.option(
    "--error",
    type=click.Choice(["wrong", "distance"]),
    default="wrong",
    show_default=True,
    help="What X is: a share of labels, or of a scale how far labels are off on average (1: its whole length).",
)
@click.option(
    "--seconds-per-row", type=click.FloatRange(0, min_open=True), metavar="X", help="Default: as in pcs review."
)
@click.option("--again", is_flag=True, help="Share the rows anew, with the gold rows that have come since.")
@click.option("-o", "--out", type=options.PATH, help="The finished table; default: finished.csv in FOLDER.")
@options.KEEP_EARLIER
@options.JSON
def finish_command(*, folder: Path, max_error: float, replace: bool, **given: Any) -> None:
    """Say which rows of the run in FOLDER people must label so that its whole table has few errors.

    The machine labels the others. A text that stands in several rows is labelled once. It may be asked again at any
    time, and reads what people filled in to to_label.csv; once all rows have a label, the finished table is written. No
    model is called.
    """
    terms = options.take(finishing.Terms, given)
    found = finishing.finish(folder, max_error, terms, policy=OutputPolicy(replace=replace), **given)
    labelled = f"{counted(found.labelled, 'row')} of {found.rows:,} ({percent(found.labelled, found.rows)})"
    lines: list[tuple[str, b.Words]] = [
        ("promise", f"{found.goal}, in {found.rows:,} rows, with {percent(found.certainty, 1)} certainty"),
        ("people", f"{counted(found.left, 'more row')} to label; {labelled} have a person's label already"),
    ]
    if found.left:
        lines.append(("time", f"about {max(found.hours, 0.1):.1f} hours, at {found.seconds:.0f} seconds a row"))
        lines.append(("rows", f"{found.to_label}, the least certain first, or pcs review, queue Finish"))
        lines.append(("next", b.strong(join(["pcs", "review", str(folder)]))))
    if found.out is not None:
        lines.append(("labels", f"{found.out} (columns final_label, labelled_by)"))
        lines.append(("certificate", str(found.certificate)))
    options.show(lambda: {**asdict(found), "hours": found.hours}, lambda: [b.Answer(lines)])


def gold_plan_shown(found: gold.GoldPlan) -> ResultTable:
    """Return how many gold rows each goal needs."""
    ways = [*dict.fromkeys(way for ways in found.needed.values() for way in ways)]
    has = counted(found.gold_rows, "row has", "rows have")
    notes = [f"The share of {label_name(found.of)} is about {100 * found.share:.1f} %; {has} gold."]
    if found.assumed is not None:
        notes.append(f"That is too little: {percent(found.assumed, 1)} of labels are assumed to be right (--accuracy).")
    notes.append(f"Numbers are totals, with the gold rows at hand; {counted(found.left, 'more row')} can be drawn.")
    if any(n is None for ways in found.needed.values() for n in ways.values()):
        notes.append("too many: more rows than there are, or thousands.")
    if found.more is not None:
        notes.append(f"finish: people label about {counted(found.more, 'more row')}, random gold rows among them.")
    if found.now is not None and found.now != found.more:
        notes.append(f"pcs finish at once, without more random gold rows: {counted(found.now, 'more row')}.")
    return ResultTable(
        name="goals",
        title="Gold rows for each goal, by the way of drawing; in four cases out of five they are enough",
        columns=["goal", *ways],
        rows=[
            [goal, *("too many" if n.get(way, "") is None else n.get(way, "") for way in ways)]
            for goal, n in found.needed.items()
        ],
        notes=notes,
    )


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
def estimate_command(*, source: str, out: Path | None, replace: bool, vary: bool, **given: Any) -> None:
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
