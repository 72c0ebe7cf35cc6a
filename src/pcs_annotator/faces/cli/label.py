"""`pcs label`: label new texts with a fitted run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.result_names import LABEL
from pcs_annotator.faces.cli import exit_codes, learned_view, options, run_view
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.labelling.fitted import Saving
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.showing.findings.answers import texts_cut
from pcs_annotator.tables.table_files import STDIO
from pcs_annotator.verbs import label


@click.command("label")
@click.argument("data", type=options.TABLE)
@click.option("--run", "folder", type=options.PATH, required=True, help="Folder of the fitted run.")
@click.option(
    "-o",
    "--out",
    type=options.TABLE,
    metavar="PATH",
    help="File or address to write (.xlsx, .csv, .tsv, .jsonl, .parquet, .feather), or - for standard output; default: "
    "DATA-labels.csv beside DATA.",
)
@click.option(
    "--format",
    default="csv",
    show_default=True,
    type=click.Choice(["csv", "tsv", "jsonl"]),
    help="Format on standard output.",
)
@options.reading_options
@options.TEXT_COLUMN
@options.ID_COLUMN
@options.MOVED_LEDGER
@options.saving_options
@options.ON_DRIFT
@options.execution_options
@options.LIMIT
@options.SHARD
@options.REPLACE
@options.SPREADSHEET_SAFE
@options.EXCEL
@options.NO_WAIT
@options.JSON
@options.QUIET
def command(*, data: Path | str, folder: Path, out: Path | str | None, to_json: bool, quiet: bool, **given: Any) -> int:
    """Label the texts of DATA with the models, rewrites and weights of a fitted run.

    Asks the questions with the most weight first, and stops asking about a text when no further answer can change its
    label.
    """
    if to_json and out == STDIO:
        raise ConfigError("-o - and --json both write to standard output: leave one of them out")
    saving = options.take(Saving, given)
    flags = options.take(resolve_config.Flags, given)
    shown = not (to_json or quiet)
    request = RunRequest(
        data=data,
        folder=folder,
        config=resolve_config.flags_only(flags),
        progress=shown,
        say=partial(options.say, shown=shown),
        **given,
    )
    path = out or label.default_out(data)
    with options.gathered_warnings() as notes:
        labelled = label.label(request, path, saving)
    options.show(labelled_json, print_labelled, labelled, notes, to_json=to_json, quiet=quiet)
    return exit_codes.exit_code(labelled.counts.unanswered, labelled.tally.failed)


def labelled_json(labelled: label.Labelled, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_labelled` shows as plain values."""
    tally = labelled.tally
    return {
        "rows": labelled.counts.rows,
        "rows_without_label": labelled.unlabelled,
        "label_counts": dict(labelled.counts.labels),
        "decisions": dict(labelled.counts.decisions),
        "calls": tally.calls,
        "known_already": tally.from_ledger,
        "questions": tally.questions,
        "questions_spared": tally.spared,
        **learned_view.promise_json(labelled),
        "look_at": [flag._asdict() for flag in texts_cut(tally.cut, labelled.counts.rows)],
        "warnings": list(notes),
        "out": str(labelled.out),
        "label_column": LABEL,
    }


def print_labelled(labelled: label.Labelled, notes: Sequence[str]) -> None:
    """Print how many rows got each label, what was asked, and what is promised."""
    to_stdout = labelled.out == STDIO
    console = Console(highlight=False, stderr=to_stdout)
    found = labelled.drift
    differ = [note for note in notes if found is not None and found.found and found.sentence in note]
    for note in differ:
        console.print(Text(f"{note}\n", style="bold yellow"))
    for name, count in Counter(labelled.counts.labels).most_common():
        console.print(f"{count:>8,}  {name}", markup=False)
    tally = labelled.tally
    console.print(f"{tally.calls:,} calls, {tally.from_ledger:,} answers from the ledger")
    if labelled.frugal is not None and tally.spared:
        share = tally.spared / (tally.spared + tally.questions)
        console.print(
            f"{tally.spared:,} questions ({100 * share:.0f} %) were not asked, because the label was settled; "
            "[dim]--ask-all asks them too[/]"
        )
    learned_view.print_promise(labelled, labelled.counts, console)
    cut = [flag.detail for flag in texts_cut(tally.cut, labelled.counts.rows)]
    learned_view.print_notes([*(note for note in notes if note not in differ), *cut], console, labelled.counts)
    if not to_stdout:
        console.print(f"\nlabels  {labelled.out} (column {LABEL})", style="bold", markup=False)


def label_plan_json(plan: label.LabelPlan) -> dict[str, Any]:
    """Return a plan with and without stopping early as plain values."""
    return {
        **run_view.calls_json(plan.everything),
        "adaptive": None if plan.frugal is None else run_view.calls_json(plan.frugal),
        "share_asked": None if plan.spending is None else plan.spending._asdict(),
        "ways": [way._asdict() for way in plan.ways],
    }


def print_label_plan(plan: label.LabelPlan) -> None:
    """Print the cost of labelling with and without stopping early."""
    console = Console(highlight=False)
    console.print("[bold]asking all questions[/]")
    run_view.print_calls(plan.everything, console, explain=plan.frugal is None)
    if plan.frugal is None or plan.spending is None:
        console.print("\nThe run has no confidence, so it cannot tell when a label is settled: everything is asked.")
    else:
        share = f"{100 * plan.spending.questions:.0f} %"
        console.print(f"\n[bold]stopping when the label is settled[/], after about {share} of the questions")
        run_view.print_calls(plan.frugal, console)
    run_view.print_ways(plan.ways, console)
    run_view.print_not_called(plan.everything, console)
