"""`pcs fit`: learn from recorded votes, show how good the weights are and what can be promised, label every row."""

from pathlib import Path
from typing import Any

import click

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.faces.cli import options, run_view
from pcs_annotator.runs.book_result import BookResult
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.runs.run_request import default_folder
from pcs_annotator.tables.source_files import Reading
from pcs_annotator.verbs.fit import fit
from pcs_annotator.verbs.import_votes import VoteSource, import_votes


@click.command("fit", cls=options.ManyOptions)
@click.argument("source", metavar="RUN|TABLE", type=options.PATH)
@options.options_for("optimiser")
@click.option("--folds", type=click.IntRange(2, 100), metavar="N", help="Folds of the cross-validation; default: 5.")
@options.options_for("max_error", "certainty", "promise", "per_label", "by", "calibration", "sets", "text")
@options.options_in(VoteSource)
@click.option(
    "--gold", type=options.PATH, help="More gold labels: the filled-in to_label.csv, or a table with id and gold."
)
@options.reading_options
@options.options_for("gold_wins", "to_label", "spreadsheet_safe", "replace", "seed")
@click.option(
    "--spare-looks",
    is_flag=True,
    help="Test for a promise only once there are half as many more gold rows; a model that promises more stays in use.",
)
@options.MOVED_LEDGER
@click.option(
    "--resamples",
    type=click.IntRange(20, 100_000),
    metavar="N",
    help="Bootstrap resamples for each interval; default: 200.",
)
@options.printing
def command(*, source: Path, folder: Path | None, spare_looks: bool, ledger: str, **choices: Any) -> int:
    """Learn the weight of each model and relation from the votes of RUN again, and what can be promised.

    Its labels and report are then rewritten; settings without an option here stay as they were.

    Instead of a run, give a TABLE of votes that you have: a CSV, Excel, JSONL or Parquet file with the columns id, gold
    (may be partly empty), perhaps text, and one column <model>|<relation> per pair; or with one row per vote and the
    columns id, annotator, relation, label, gold and perhaps text. It becomes a run, which other commands take.

    --encoding and --sheet are about the file of --gold; without one, about TABLE.
    """
    choices["reading"] = options.take(Reading, choices)
    people = options.take(FromPeople, choices)
    imported = {name: choices.pop(name) for name in ("labels", "unknown", "replace")}
    how = {"spreadsheet_safe": choices.pop("spreadsheet_safe"), "spare_looks": spare_looks, "ledger": ledger}
    changes = {name: value for name, value in choices.items() if value is not None}
    if source.is_dir() and (folder or imported["labels"]):
        raise ConfigError("-o and --labels are for a table of votes: a run has its folder and labels")

    def fitted() -> BookResult:
        run = source
        if not source.is_dir():
            imported.update(table=source, folder=folder or default_folder(source), people=people)
            votes = options.take(VoteSource, imported)
            import_votes(votes, changes, options.saying())
            run = votes.folder
        with options.working("learning from gold"):
            return fit(run, changes, people, say=options.saying(), **how)

    return run_view.show_result(fitted, known=True)
