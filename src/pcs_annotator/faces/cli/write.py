"""`pcs report`, `pcs paper` and `pcs exchange`: what a run hands on; `pcs versions`: its fits."""

from pathlib import Path
from typing import get_args

import click

from pcs_annotator.base.text import counted
from pcs_annotator.core.review import Queue
from pcs_annotator.faces.cli import options, run_view
from pcs_annotator.runs.certificate_text import promised
from pcs_annotator.runs.codebook import CodebookFolder
from pcs_annotator.runs.run import Run
from pcs_annotator.runs.versions import list_versions
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import percent
from pcs_annotator.showing.report.page import write_figures, write_report
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs import exchange, paper
from pcs_annotator.verbs.codebook import report_codebook
from pcs_annotator.verbs.fit import open_run, use_version
from pcs_annotator.verbs.forget import forget


@click.command("report")
@click.argument("folder", type=options.PATH)
@click.option("-o", "--out", type=options.PATH, help="File to write; default: report.html in the run folder.")
@click.option("--md", "summary", is_flag=True, help="A summary in Markdown instead; without -o, it is printed.")
@click.option(
    "--figures/--no-figures",
    default=True,
    show_default=True,
    help="Also write each chart as an SVG file, to the folder figures beside the page.",
)
@options.KEEP_EARLIER
@options.JSON
def report_command(*, folder: Path, out: Path | None, summary: bool, figures: bool, replace: bool) -> None:
    """Write the report of the run in FOLDER: one HTML file that works offline."""
    policy = OutputPolicy(replace=replace)
    if summary:
        text = paper.summary_of(open_run(folder))
        if out is not None:
            policy.write_page(out, text)
        options.tell({"markdown": text, "file": out}, f"wrote {out}" if out else text)
        return
    if book := CodebookFolder.find(folder):
        run_view.show_codebook(lambda: report_codebook(book, out, policy))
        return
    result = open_run(folder)
    path = write_report(result, out, policy)
    charts = write_figures(result, path.parent / "figures", policy) if figures else []
    values = {"report": path, "bytes": path.stat().st_size, "figures": charts}
    more = [f"wrote {', '.join(chart.name for chart in charts)} in {charts[0].parent}"] if charts else []
    options.tell(values, f"wrote {path}", *more)


@click.command("paper")
@click.argument("folder", type=options.PATH)
@click.option(
    "--format",
    "name",
    type=click.Choice(get_args(paper.Format)),
    help="Format; default: what the ending of --out says (.md, .tex, .csv), else markdown.",
)
@click.option("-o", "--out", type=options.PATH, help="File to write; default: print it.")
@options.list_option("--order", "Labels from the lowest to the highest, for weighted κ and ordinal α.")
@options.KEEP_EARLIER
def paper_command(
    *, folder: Path, name: paper.Format | None, out: Path | None, order: tuple[str, ...], replace: bool
) -> None:
    """Write results, confusion matrix and a methods paragraph of the run in FOLDER, to paste into a paper.

    CSV has one row per figure. LaTeX needs the packages booktabs and graphicx.
    """
    kind = paper.format_of(name, out)
    found = paper.paper_of(open_run(folder), order)
    if out is None:
        click.echo(paper.paper_text(found, kind), nl=False)
    else:
        click.echo(f"wrote {paper.write_paper(found, kind, out, OutputPolicy(replace=replace))}")


RUN = click.argument("run", type=options.PATH)
TOOL = click.argument("tool", type=click.Choice(["label-studio"]), expose_value=False)


@click.group("exchange")
def exchange_command() -> None:
    """Hand rows of a run to people in Label Studio, and read their answers back."""


@exchange_command.command()
@RUN
@TOOL
@click.option("-o", "--out", type=options.PATH, required=True, help="JSON file to write.")
@click.option(
    "--decision",
    type=click.Choice(["review", "accept", "agree", "all"]),
    help="Rows with this decision, without those that have a gold label or a verdict; or all rows. Default: review.",
)
@click.option(
    "--queue",
    type=click.Choice(["random", "learn", "audit", "doubtful"]),
    help="Instead, draw rows as `pcs review` does: at random, which can support a promise; where most is learned; "
    "accepted ones, to audit them; or the least certain first, from which nothing may be estimated.",
)
@click.option(
    "--rows",
    type=click.IntRange(1),
    metavar="N",
    help=f"Write at most N rows; default: all, or {exchange.ROWS_DRAWN} with --queue.",
)
@options.KEEP_EARLIER
@options.JSON
def export(*, run: Path, out: Path, decision: str | None, queue: Queue | None, rows: int | None, replace: bool) -> None:
    """Write rows of RUN for people to label.

    They are tasks for Label Studio, with the label that the models give and its confidence. Beside tasks.json,
    tasks.xml gets the labelling interface.
    """
    if queue and decision:
        raise click.UsageError("--queue draws rows whatever their decision: leave out one of --queue and --decision")
    policy = OutputPolicy(replace=replace)
    written = exchange.export_rows(run, out, decision=decision or "review", queue=queue, count=rows, policy=policy)
    paste = f"paste {written.settings} under Settings > Labeling Interface > Code"
    options.tell(
        written._asdict(),
        f"{counted(written.rows, 'row')} written to {written.file}",
        f"in Label Studio, {paste}, then import {written.file}",
    )


@exchange_command.command("import")
@RUN
@TOOL
@click.argument("file", type=options.PATH)
@options.JSON
def import_(*, run: Path, file: Path) -> None:
    """Read what people answered from FILE.

    The answers become verdicts of RUN, like those of `pcs review`. FILE is what Label Studio exports as JSON or
    JSON-MIN. If one answer does not fit the run, none is added. Importing a file again adds only what is new.
    """
    found = exchange.import_answers(run, file)
    lines = [f"{counted(found.known, 'answer')} in {file} had been read before"] if found.known else []
    people = ", ".join(f"{name} ({count:,})" for name, count in found.reviewers.items())
    new = f"{found.verdicts:,} new verdicts by {people}; rows skipped: {found.skipped:,}"
    lines += [new, f"pcs fit {run} learns from them"] if found.verdicts else [f"no new answers in {file}"]
    options.tell(found._asdict(), *lines)


@click.command("versions")
@RUN
@click.option("--use", "number", type=click.IntRange(1), metavar="N", help="Go back, or forward, to version N.")
@options.JSON
def versions_command(*, run: Path, number: int | None) -> None:
    """List the fits of RUN, oldest first: when each was made, from how much gold, and how good it is.

    With --use, labels, report, `pcs label` and `pcs serve` use the model of that version from now on.
    """
    if number is not None:
        model = use_version(run, number, options.say).learned.model
        promise = "nothing was promised" if model.certificate is None else promised(model.certificate).headline
        options.tell({"version": number, "promise": promise}, f"{run} uses version {number} now; {promise}")
        return
    found = list_versions(Run.open(run).folder)
    numbers = b.numbers("gold rows", "accuracy", "accepted")
    columns = [b.Column("version"), b.Column("made (UTC)"), *numbers, b.Column("")]
    rows: list[b.Row] = [
        [
            str(one.number),
            one.made[:16].replace("T", " "),
            f"{one.gold_rows:,}",
            "–" if one.accuracy is None else percent(one.accuracy, 1),
            "–" if one.accepted is None else percent(one.accepted, 1),
            "in use" if one.in_use else "",
        ]
        for one in found
    ]
    options.show(
        lambda: {"versions": [one._asdict() for one in found]},
        lambda: [b.Table(columns=columns, rows=rows) if found else f"{run} has no fit yet: pcs fit {run}"],
    )


@click.command("forget")
@RUN
@click.argument("id", default="")
@click.option("--text", default="", metavar="TEXT", help="The text itself, whatever its ID; needed if it was accepted.")
@options.JSON
def forget_command(*, run: Path, id: str, text: str) -> None:
    """Delete a text that came to RUN with pcs serve or pcs label, by its ID or by the text itself.

    Answers about it, its rewrites, and verdicts on it go too; the labels of others stay as they are. Rows of the data
    that the run was made from are not deleted.
    """
    if not (id or text):
        raise click.UsageError("name the text: by its ID, or with --text")
    found = forget(run, id, text)
    kept = f"{counted(len(found.ids), 'text')} of the stream" if found.ids else "no text of the stream, which had none"
    lines = [f"deleted {kept}, and {counted(found.answers, 'answer')} of models; nothing of it is left there"]
    if found.rows:
        rows = counted(len(found.rows), "row")
        lines.append(f"{rows} of the run's data still have this text, such as {found.rows[0]}: delete them in the data")
    options.tell(found._asdict(), *lines)
