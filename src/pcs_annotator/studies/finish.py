"""`pcs finish`: people label some rows, the machine the others, and few errors are left in the whole table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.gold import UNLABELLED, gold_codes, text_hash
from pcs_annotator.judging.promising.whole_table import most_errors, share_rows
from pcs_annotator.runs.drawing import write_to_label
from pcs_annotator.runs.learn import expected_labels
from pcs_annotator.runs.run import Run
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.files import expecting, read_json, write_json
from pcs_annotator.tables.human_files import DrawnRow
from pcs_annotator.tables.table_writer import PLAIN
from pcs_annotator.tables.tables import write_table

REMEDY = "remove it, and run pcs finish again"
SECONDS_PER_ROW = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """How far a table is from a promise about all of its labels."""

    max_error: float
    certainty: float
    rows: int  # of the table
    gold_rows: int  # drawn at random, that the promise rests on
    by_people: int  # rows that people label, those that have a label among them
    left: int  # those of them without a label
    errors: int  # at most so many errors are left in the end
    to_label: Path  # the table for people to fill in
    out: Path | None  # the finished table; None before the end

    @property
    def hours(self) -> float:
        """How long people need for the rows that are left, at ten seconds each."""
        return self.left * SECONDS_PER_ROW / 3600


def finish(
    path: Path, max_error: float, certainty: float = 0.9, *, again: bool = False, out: Path | None = None
) -> Finish:
    """Share the rows of a run between people and the machine, or go on with that; when all are labelled, write them.

    What the machine labels is fixed at the first call, with its labels. `again` shares the rows anew, with the gold
    that has come since, and with a quarter of the errors to spend that were left before.
    """
    if not (0 < max_error < 1 and 0 < certainty < 1):
        raise ConfigError("--max-error and --certainty are shares between 0 and 1, such as .05 and .9")
    run = Run.open(path)
    if run.sampled:
        raise ConfigError(f"{path} keeps a sample of a large table: pcs finish needs a run of all rows")
    place = run.folder.finish
    with expecting(place, REMEDY):
        plan = read_json(place, REMEDY) if place.exists() else None
        if plan is None or again or (plan["max_error"], plan["certainty"]) != (max_error, certainty):
            turn = 0 if plan is None else plan["turn"] + 1
            plan = _shared(run, max_error, certainty, turn)
            write_json(place, plan)
        return _progress(run, plan, out or run.folder.path / "finished.csv")


def _shared(run: Run, max_error: float, certainty: float, turn: int) -> dict[str, Any]:
    """Return which rows the machine labels, and how."""
    votes, gold = run.votes, gold_codes(run.votes, run.gold.labels)
    sample = run.gold.random_sample & (gold != UNLABELLED)
    known = expected_labels(votes, gold, run.settings, run.texts)
    delta = (1 - certainty) * 0.75 * 0.25**turn  # all turns together use 1 − certainty
    need = _least_rows(len(votes), max_error, delta)
    if known is None or sample.sum() < need:
        raise GoldError(
            f"{int(sample.sum())} gold rows were drawn at random, and such a promise needs {need} at least: "
            f"pcs review {run.folder.path}, queue Random"
        )
    best = known.held_out.argmax(axis=1)
    confidence = np.where(votes.silent, -1.0, known.held_out.max(axis=1))
    shared = share_rows(confidence, sample, best != gold, max_error, delta)
    return {
        "max_error": max_error,
        "certainty": certainty,
        "turn": turn,
        "gold_rows": int(sample.sum()),
        "errors": shared.errors,
        "by_people": [votes.ids[row] for row in shared.by_people.tolist()],
        "by_machine": {votes.ids[row]: votes.labels[best[row]] for row in shared.by_machine.tolist()},
    }


def _least_rows(rows: int, max_error: float, delta: float) -> int:
    """Return how many random gold rows without an error are needed before the machine may label any row."""
    low, high = 0, rows
    while high - low > 1:
        middle = (low + high) // 2
        enough = most_errors(rows, middle, np.zeros(1, dtype=np.intp), delta)[0] <= max_error * rows
        low, high = (low, middle) if enough else (middle, high)
    return high


def _progress(run: Run, plan: dict[str, Any], out: Path) -> Finish:
    """Return how far the work is; when it is done, write the finished table."""
    places = {name: row for row, name in enumerate(run.votes.ids)}
    labels, people = run.gold.labels, [places[name] for name in plan["by_people"]]
    left = [row for row in people if labels[row] is None]
    folder, items = run.folder, run.dataset.items
    if left:
        rows = [DrawnRow(items[row].id, "for review", text_hash(items[row].text)) for row in left]
        write_to_label(folder, items, run.gold, rows)
    else:
        _write(run, {places[name]: label for name, label in plan["by_machine"].items()}, out)
    return Finish(
        max_error=plan["max_error"],
        certainty=plan["certainty"],
        rows=len(labels),
        gold_rows=plan["gold_rows"],
        by_people=len(people),
        left=len(left),
        errors=plan["errors"],
        to_label=folder.to_label,
        out=None if left else out,
    )


def _write(run: Run, by_machine: dict[int, str], out: Path) -> None:
    """Write the user's rows with a label each, and who gave it."""
    gold = run.gold.labels
    final = [label or by_machine[row] for row, label in enumerate(gold)]
    who = ["machine" if label is None else "person" for label in gold]
    table = run.dataset.table.append_column("final_label", pa.array(final)).append_column("labelled_by", pa.array(who))
    write_table(out, table, PLAIN)
