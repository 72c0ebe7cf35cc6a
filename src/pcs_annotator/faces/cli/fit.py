"""`pcs fit`: learn from recorded votes, show how good the weights are and what can be promised, label every row."""

from pathlib import Path
from typing import Any

import click

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.faces.cli import exit_codes, learned_view, options
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.tables.source_files import Reading
from pcs_annotator.verbs import fit_table


@click.command("fit", cls=options.ManyOptions)
@click.argument("source", metavar="TABLE", type=options.PATH)
@options.options_for("optimiser")
@click.option("--folds", type=click.IntRange(2, 100), metavar="N", help="Folds of the cross-validation; default: 5.")
@options.options_for("max_error", "certainty", "promise", "per_label", "by", "calibration", "sets", "text")
@options.options_in(fit_table.FitFiles)
@click.option(
    "--gold", type=options.PATH, help="More gold labels: the filled-in to_label.csv, or a table with id and gold."
)
@options.reading_options
@options.options_for("gold_wins", "to_label", "spreadsheet_safe", "replace", "seed")
@click.option(
    "--spare-looks",
    is_flag=True,
    help="Test for a promise only when half as many gold rows again came; a model that promises more stays in use.",
)
@options.MOVED_LEDGER
@click.option(
    "--resamples",
    type=click.IntRange(20, 100_000),
    metavar="N",
    help="Bootstrap resamples for each interval; default: 200.",
)
@options.printing
def command(*, source: Path, spare_looks: bool, ledger: str, **choices: Any) -> int:
    """Learn the weight of each model and relation from recorded votes, and what can be promised.

    TABLE is a CSV, Excel, JSONL or Parquet file with the columns id, gold (may be partly empty) and one column
    <model>|<relation> per pair; or with one row per vote and the columns id, annotator, relation, label and gold.

    TABLE can also be a run folder. Its labels and report are then rewritten; settings without an option here stay as
    they were in the run.

    --encoding and --sheet are about the file of --gold; without one, about TABLE.
    """
    of_tables = choices["labels_out"] or choices["model"] or choices["labels"]
    choices["reading"] = options.take(Reading, choices)
    people = options.take(FromPeople, choices)
    files = options.take(fit_table.FitFiles, choices := {**choices, "people": people, "table": source})
    changes = {name: value for name, value in choices.items() if value is not None}
    if source.is_dir():
        if of_tables:
            options_of_tables = "-o, --model-out and --labels"
            raise ConfigError(f"{options_of_tables} are for a table of votes: a run folder has files and labels")
        # these import the code that asks; a table of votes does not need it
        from pcs_annotator.faces.cli import run_view
        from pcs_annotator.runs.codebook import CodebookFolder
        from pcs_annotator.verbs import fit as fitting

        how: dict[str, Any] = {"spreadsheet_safe": files.spreadsheet_safe, "spare_looks": spare_looks, "ledger": ledger}
        if book := CodebookFolder.find(source):
            return run_view.fit_and_show(book, changes, people, say=options.saying(), **how)
        with options.gathered_warnings() as notes:
            result = fitting.fit_run(source, changes, people, say=options.saying(), **how)
        run_view.show_run(result, notes)
        return exit_codes.exit_code(result.counts.unanswered)
    if spare_looks or ledger:
        raise ConfigError("--spare-looks and --ledger are for a run folder: give one instead of a table")
    with options.gathered_warnings() as notes:
        fitted = fit_table.fit_table(files, changes)
    view = learned_view
    options.show(view.fit_json, view.fit_shown, fitted, files, notes, details=view.fit_details)
    return exit_codes.exit_code(fitted.unlabelled)
