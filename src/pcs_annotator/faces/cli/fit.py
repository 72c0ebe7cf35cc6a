"""`pcs fit`: learn from recorded votes, say how good it is and what can be promised, label every row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pcs_annotator.core.vote_columns import Unknown
from pcs_annotator.errors import ConfigError
from pcs_annotator.faces.cli.exit_codes import exit_code
from pcs_annotator.faces.cli.learned_view import as_json, print_fit
from pcs_annotator.faces.cli.options import JSON, PATH, QUIET, TO_LABEL, echo_json, gathered_warnings, promise_options
from pcs_annotator.faces.cli.run_view import print_run, run_json
from pcs_annotator.pipeline.fit_table import FitFiles, fit_table
from pcs_annotator.pipeline.run import FromPeople, fit_run


@click.command("fit")
@click.argument("table", type=PATH)
@click.option("--optimiser", help="How to learn: auto (default), lr, logit, naive-bayes, ga, …")
@click.option("--folds", type=click.IntRange(2, 100), help="Folds of the cross-validation; 5 by default.")
@promise_options
@click.option("--labels", help="The label set, separated by commas; by default the labels seen.")
@click.option(
    "--unknown",
    default="error",
    show_default=True,
    type=click.Choice(["error", "abstain"]),
    help="What to do with a vote outside the label set.",
)
@click.option("--gold", type=PATH, help="Take further gold labels from here: to_label.csv filled in, or id and gold.")
@click.option(
    "--audit", default=0, type=click.IntRange(0), metavar="N", help="Draw so many accepted rows for a person to check."
)
@click.option("--verdicts", type=PATH, help="Take what the person found: audit.csv with right or wrong filled in.")
@TO_LABEL
@click.option("-o", "--out", type=PATH, help="Write a label for every row here (CSV or Parquet).")
@click.option("--model-out", default="model.json", show_default=True, type=PATH, help="Write what was learned here.")
@click.option("--seed", type=int, help="Fixes whatever is random; 0 by default.")
@click.option(
    "--resamples",
    type=click.IntRange(20, 100_000),
    help="Bootstrap resamples behind every interval; 200 by default.",
)
@JSON
@QUIET
def command(
    *,
    table: Path,
    labels: str | None,
    unknown: Unknown,
    out: Path | None,
    model_out: Path,
    to_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Learn from recorded votes how much each annotator and each relation is worth, and what can be promised.

    TABLE is a CSV, JSONL or Parquet file with the columns id, gold (may be partly empty) and one column
    <annotator>|<relation> per cell; or id, annotator, relation, label and gold, one row per vote. It may also be the
    folder of a run, whose labels and report are then written anew; what no option says stays as it was there.
    """
    people = FromPeople(**{name: options.pop(name) for name in ("gold", "audit", "verdicts", "to_label")})
    given = {name: value for name, value in options.items() if value is not None}
    if table.is_dir():
        return _fit_folder(table, given, people, to_json=to_json, quiet=quiet)
    if people.audit or people.verdicts:
        raise ConfigError("--audit and --verdicts need texts: give the folder of a run instead of a table of votes")
    files = FitFiles(
        table=table,
        model=model_out,
        labels_out=out,
        labels=labels.split(",") if labels is not None else None,
        unknown=unknown,
        gold=people.gold,
    )
    with gathered_warnings() as notes:
        fitted = fit_table(files, given)
    if to_json:
        echo_json(as_json(fitted, files, notes))
    elif not quiet:
        print_fit(fitted, files, notes)
    return exit_code(fitted.unlabelled)


def _fit_folder(folder: Path, given: dict[str, Any], people: FromPeople, *, to_json: bool, quiet: bool) -> int:
    with gathered_warnings() as notes:
        result = fit_run(folder, given, people)
    if to_json:
        echo_json(run_json(result, notes))
    elif not quiet:
        print_run(result, notes)
    return exit_code(result.unlabelled)
