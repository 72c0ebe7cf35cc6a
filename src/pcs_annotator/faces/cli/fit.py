"""`pcs fit`: learn from a table of votes, say how good it is, label every row."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pcs_annotator.core.vote_columns import Unknown
from pcs_annotator.faces.cli.fit_view import as_json, print_fit
from pcs_annotator.faces.cli.options import gathered_warnings
from pcs_annotator.faces.cli.run_view import print_run, run_json
from pcs_annotator.faces.report.page import write_report
from pcs_annotator.pipeline.project import FitFiles, fit_table
from pcs_annotator.pipeline.run import fit_run
from pcs_annotator.pipeline.steps import LearnSettings

EXIT_UNLABELLED = 1


@click.command("fit")
@click.argument("table", type=click.Path(path_type=Path))
@click.option(
    "--optimiser", default="auto", show_default=True, help="How to learn: auto, lr, logit, naive-bayes, ga, …"
)
@click.option(
    "--folds", default=5, show_default=True, type=click.IntRange(2, 100), help="Folds of the cross-validation."
)
@click.option("--labels", help="The label set, separated by commas; by default the labels seen.")
@click.option(
    "--unknown",
    default="error",
    show_default=True,
    type=click.Choice(["error", "abstain"]),
    help="What to do with a vote outside the label set.",
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write a label for every row here (CSV or Parquet).")
@click.option(
    "--model-out",
    default="model.json",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Write what was learned here.",
)
@click.option("--seed", default=0, show_default=True, help="Fixes whatever is random.")
@click.option(
    "--resamples",
    default=200,
    show_default=True,
    type=click.IntRange(20, 100_000),
    help="Bootstrap resamples behind every interval.",
)
@click.option("--json", "to_json", is_flag=True, help="Print one JSON object and nothing else.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    *,
    table: Path,
    labels: str | None,
    unknown: Unknown,
    out: Path | None,
    model_out: Path,
    to_json: bool,
    quiet: bool,
    **learning: str | int,
) -> int:
    """Learn from recorded votes how much each annotator and each relation is worth.

    TABLE is a CSV, JSONL or Parquet file with the columns id, gold (may be partly empty) and one column
    <annotator>|<relation> per cell; or id, annotator, relation, label and gold, one row per vote. It may also be the
    folder of a run, whose labels and report are then written anew.
    """
    settings = LearnSettings(**learning)  # type: ignore[arg-type]  # click checked the types
    if table.is_dir():
        return _fit_folder(table, settings, to_json=to_json, quiet=quiet)
    files = FitFiles(
        table=table,
        model=model_out,
        labels_out=out,
        labels=labels.split(",") if labels is not None else None,
        unknown=unknown,
    )
    with gathered_warnings() as notes:
        fitted = fit_table(files, settings)
    if to_json:
        click.echo(json.dumps(as_json(fitted, files, notes), ensure_ascii=False, indent=2, allow_nan=False))
    elif not quiet:
        print_fit(fitted, files, notes)
    return EXIT_UNLABELLED if fitted.unlabelled else 0


def _fit_folder(folder: Path, settings: LearnSettings, *, to_json: bool, quiet: bool) -> int:
    with gathered_warnings() as notes:
        result = fit_run(folder, settings)
    write_report(result, result.folder.report)
    if to_json:
        click.echo(json.dumps(run_json(result, notes), ensure_ascii=False, indent=2, allow_nan=False))
    elif not quiet:
        print_run(result, notes)
    return EXIT_UNLABELLED if result.unlabelled else 0
