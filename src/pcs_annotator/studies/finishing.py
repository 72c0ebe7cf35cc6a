"""`pcs finish`: people label some rows, the machine the others, and few errors are left in the whole table."""

from bisect import bisect_left
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from pcs_annotator.asking.ledger.lock import lock_ledger
from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.base.fields import setting
from pcs_annotator.core.arrays import Floats, Integers
from pcs_annotator.core.events import Picked, Verdict
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.core.identity import same_texts, text_hash
from pcs_annotator.judging.promise.promise import next_level
from pcs_annotator.judging.promise.whole_table import small_enough
from pcs_annotator.runs.draw_registry import events_of, label_copies
from pcs_annotator.runs.drawing import unread, write_to_label
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.runs.levels import LevelTest, key_of, read_levels, write_levels
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.passage_run import refuse_passages
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.sharing import Error, Goal, TableGold, expected_labels, share_table
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.files import expecting, read_json, write_json
from pcs_annotator.tables.write import STRICT, OutputPolicy, write_table
from pcs_annotator.version import __version__

REMEDY = "remove it, and run pcs finish again"
SECONDS_PER_ROW, LONGEST_SECONDS = 10.0, 600.0
GOALS: dict[Error, str] = {
    "wrong": "at most {:g} % of all labels are wrong",
    "near": "at most {:g} % of all labels are off by more than one step",
    "distance": "labels are off by at most {:g} % of the scale on average",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is promised beside the share of errors, and at what expense.

    Attributes:
        certainty: How sure that must be.
        error: What X is: a share of labels, or of a scale how far labels are off on average (1: its whole length).
        seconds_per_row: How long people need for a row; default: as in pcs review.
        again: Share the rows anew, with the gold rows that have come since.
    """

    certainty: float = setting(0.9, "--certainty X", above=0, below=1)
    error: Literal["wrong", "distance"] = setting("wrong", "--error")
    seconds_per_row: float | None = setting(None, "--seconds-per-row X", above=0)
    again: bool = setting(False, "--again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """How far a table is from a promise about all of its labels."""

    max_error: float
    certainty: float
    error: Error  # what counts as an error
    goal: str  # the promise in words
    rows: int  # of the table
    gold_rows: int  # drawn at random, that the promise rests on
    labelled: int  # rows that have the label of a person, copies of labelled texts among them
    left: int  # texts that people must still label, each once
    errors: int  # at most so many rows are wrong in the end
    seconds: float  # that people need for a row
    to_label: Path  # the table for people to fill in
    out: Path | None  # the finished table; None before the end
    certificate: Path | None  # what is promised about it, and from what that is known; None before the end

    @property
    def hours(self) -> float:
        """How long people need for the rows that are left."""
        return self.left * self.seconds / 3600


def finish(
    path: Path,
    max_error: float,
    terms: Terms = Terms(),  # frozen values
    out: Path | None = None,
    policy: OutputPolicy = STRICT,
) -> Finish:
    """Share the rows of a run between people and the machine, or go on with that; when all are labelled, write them.

    What the machine labels is fixed at the first call, with its labels; sharing again is the next of all tests of the
    table. Labels that people filled in to `to_label.csv` are read first.
    """
    certainty, error = terms.certainty, cast(Error, terms.error)
    if not (0 < max_error < 1 and 0 < certainty < 1):
        raise ConfigError("--max-error and --certainty are shares between 0 and 1, such as .05 and .9")
    if out is not None:
        policy.check(out)
        policy.check(_certificate(out), [".json"])
    run = Run.open(path)
    refuse_passages(run, "a table of labels is what pcs finish finishes: review texts with pcs review")
    if run.sampled:
        raise ConfigError(f"{path} keeps a sample of a large table: pcs finish needs a run of all rows")
    if error == "distance" and not run.shape.ordered:
        raise ConfigError("--error distance: these labels have no order; it is for a run with --kind scale or number")
    if error == "wrong" and run.settings.promise == "off-by-more-than-one":
        error = "near"
    plan_file = run.folder.finish
    with lock_ledger(run.folder.ledger):
        if unread(run.folder.to_label, run.dataset.items, run.gold):
            run = run.with_gold(FromPeople(gold=run.folder.to_label))
    with expecting(plan_file, REMEDY):
        plan = read_json(plan_file, REMEDY) if plan_file.exists() else None
        wanted: dict[str, Any] = {"max_error": max_error, "certainty": certainty, "error": error}
        wanted |= {"goal": GOALS[error].format(100 * max_error)}
        if plan is None or terms.again or plan != plan | wanted:
            plan = wanted | _shared(run, wanted)
            write_json(plan_file, plan)
        finished = _progress(run, plan, terms.seconds_per_row, out or run.folder.home / "finished.csv")
        if finished.certificate:
            for file in () if out is None else (out, finished.certificate):
                policy.make_way(file)
            _write(run, plan, finished)
        return finished


def _shared(run: Run, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return which rows the machine labels, and how; the ledger of levels notes the test."""
    votes, codes = run.votes, gold_codes(run.votes, run.gold.labels)
    gold = TableGold(codes, run.gold.random_sample & (codes != UNLABELLED) | run.gold.undecided, same_texts(run.texts))
    expected = expected_labels(votes, codes, run.settings, run.texts, run.shape)
    # all tests together use 1 − certainty, and one half at most: confidences were learned from the same gold rows
    key = key_of(votes, run.gold.labels, run.settings, run.config.task.kind, wanted)
    levels = read_levels(run.folder, run.gold_ids, key)
    if levels.refused:
        raise GoldError(levels.refused)
    delta = next_level(1 - wanted["certainty"], levels.spent_before(key, "table"))
    need = bisect_left(range(len(votes)), True, key=lambda drawn: _tells(len(votes), drawn, wanted, delta))
    if expected is None or gold.sample.sum() < need:
        raise GoldError(
            f"{int(gold.sample.sum())} gold rows were drawn at random, and this promise needs at least {need}: "
            f"pcs review {run.folder.home}, queue Random"
        )
    test = LevelTest("table", key, int(gold.sample.sum()), delta, True)
    write_levels(run.folder, levels.with_test(test, run.gold_ids))
    goal = Goal(wanted["max_error"], delta, wanted["error"])
    shared, best, _ = share_table(run.shape, votes, expected.held_out, gold, goal)
    return {
        "tested": key,
        "gold_rows": int(gold.sample.sum()),
        "undecided": int(run.gold.undecided.sum()),
        "errors": shared.errors,
        "by_people": [votes.ids[row] for row in shared.by_people.tolist()],
        "by_machine": {votes.ids[row]: votes.labels[best[row]] for row in shared.by_machine.tolist()},
    }


def _pace(folder: RunFolder) -> float:
    """Return how many seconds people needed for each of the last rows."""
    seconds = (verdict.seconds or 0.0 for verdict in events_of(folder, Verdict))
    taken = [duration for duration in seconds if 0 < duration < LONGEST_SECONDS]
    return float(np.mean(taken[-50:])) if taken else SECONDS_PER_ROW


def _tells(rows: int, drawn: int, wanted: dict[str, Any], delta: float) -> bool:
    """Return whether so many random gold rows without an error let the machine label any row."""
    losses: Floats | Integers = np.zeros(drawn, dtype=np.intp)
    if wanted["error"] == "distance":
        losses = losses.astype(np.float64)
    return small_enough(rows, losses, wanted["max_error"] * rows, delta)


def _progress(run: Run, plan: dict[str, Any], seconds: float | None, out: Path) -> Finish:
    places = {name: row for row, name in enumerate(run.votes.ids)}
    labels, same, folder, items = _by_people(run), same_texts(run.texts), run.folder, run.dataset.items
    waiting = [places[name] for name in plan["by_people"] if labels[places[name]] is None]
    left = list({int(same[row]): row for row in reversed(waiting)}.values())[::-1]  # each text once
    if left:
        rows = [Picked(id=items[row].id, text_hash=text_hash(items[row].text), chosen="for review") for row in left]
        write_to_label(folder, items, run.gold, rows)
    return Finish(
        **{name: plan[name] for name in ("max_error", "certainty", "error", "goal", "gold_rows", "errors")},
        rows=len(labels),
        labelled=sum(label is not None for label in labels),
        left=len(left),
        seconds=seconds or _pace(folder),
        to_label=folder.to_label,
        out=None if left else out,
        certificate=None if left else _certificate(out),
    )


def _certificate(out: Path) -> Path:
    return out.with_name(f"{out.stem}.certificate.json")


def _by_people(run: Run) -> list[str | None]:
    """Return the label that a person gave to each row's text, if one did."""
    labels = list(run.gold.labels)
    for row, reviewed in run.gold.verdicts.by_row.items():  # those of audits are not gold
        labels[row] = reviewed.label
    label_copies(labels, run.texts, range(len(labels)))
    return labels


def _write(run: Run, plan: dict[str, Any], finished: Finish) -> None:
    """Write the user's rows with a label each, and who gave it; beside them the certificate."""
    assert finished.out is not None
    assert finished.certificate is not None
    machine = {name: (label, "machine") for name, label in plan["by_machine"].items()}
    people = zip(run.votes.ids, _by_people(run), strict=True)
    named = [(label, "person") if label else machine[name] for name, label in people]
    table = run.dataset.table
    for column, cells in zip(("final_label", "labelled_by"), zip(*named, strict=True), strict=True):
        table = table.append_column(column, pa.array(cells))
    write_table(finished.out, table)
    proof = {
        "blake2b": blake2b(finished.out.read_bytes()).hexdigest(),
        "version": __version__,
        "tested": plan["tested"],
    }
    write_json(finished.certificate, {n: v for n, v in asdict(finished).items() if not isinstance(v, Path)} | proof)
