"""`pcs finish`: people label some rows, the machine the others, and few errors are left in the whole table."""

from bisect import bisect_left
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers
from pcs_annotator.core.gold import UNLABELLED, gold_codes
from pcs_annotator.core.identity import text_hash
from pcs_annotator.core.review import Verdict
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.promising.acceptance import Judged, next_level
from pcs_annotator.judging.promising.whole_table import Expert, doubt_of, share_rows, small_enough
from pcs_annotator.judging.weighing.scoring import choose, score
from pcs_annotator.runs.drawing import write_to_label
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.learn import expected_labels
from pcs_annotator.runs.levels import LevelTest, key_of, read_levels, write_levels
from pcs_annotator.runs.review_state import read_review
from pcs_annotator.runs.run import Run
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.files import expecting, read_json, write_json
from pcs_annotator.tables.human_files import DrawnRow
from pcs_annotator.tables.output_policy import STRICT, OutputPolicy
from pcs_annotator.tables.table_writer import PLAIN
from pcs_annotator.tables.tables import write_table
from pcs_annotator.version import __version__

REMEDY = "remove it, and run pcs finish again"
NOT_ASKED = -2
SECONDS_PER_ROW, LONGEST_SECONDS = 10.0, 600.0
Error = Literal["wrong", "near", "distance"]
"""What counts as an error: another label, one that is several steps of a scale off, or each step, as a part of one."""
GOALS: dict[Error, str] = {
    "wrong": "at most {:g} % of all labels are wrong",
    "near": "at most {:g} % of all labels are off by more than one step",
    "distance": "labels are off by at most {:g} % of the scale on average",
}


class Terms(NamedTuple):
    """What is promised beside the share of errors."""

    certainty: float = 0.9
    error: Error = "wrong"  # what counts; `near` instead if the run's promise says so


class Expense(NamedTuple):
    """Who may answer doubtful rows before people do, and what answers cost."""

    expert: str = ""  # a model of the run, or the folder of a run of another model on the same texts; empty for nobody
    price: float = 0.0  # of an answer of the expert
    person_price: float = 0.0  # of a person's
    seconds_per_row: float | None = None  # how long people need; None for as long as in the review of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """How far a table is from a promise about all of its labels."""

    max_error: float
    certainty: float
    error: Error  # what counts as an error
    goal: str  # the promise in words
    rows: int  # of the table
    gold_rows: int  # drawn at random, that the promise rests on
    by_people: int  # rows that people label: those that have a person's label, and those that need one
    left: int  # those of them without a label
    by_expert: int  # rows that the expert answers
    to_ask: int  # those of them about which it was not asked yet
    errors: int  # at most so many errors are left in the end
    cost: float  # of the expert's answers, and of people's that are left
    seconds: float  # that people need for a row
    to_label: Path  # the table for people to fill in
    out: Path | None  # the finished table; None before the end
    certificate: Path | None  # what is promised about it, and from what that is known; None before the end

    @property
    def hours(self) -> float:
        """How long people need for the rows that are left."""
        return self.left * self.seconds / 3600


def finish(  # noqa: PLR0913  # what is promised, at what expense, and where it goes
    path: Path,
    max_error: float,
    terms: Terms = Terms(),  # noqa: B008  # frozen values
    expense: Expense = Expense(),  # noqa: B008
    *,
    again: bool = False,
    out: Path | None = None,
    policy: OutputPolicy = STRICT,
) -> Finish:
    """Share the rows of a run between people and the machine, or go on with that; when all are labelled, write them.

    What the machine labels is fixed at the first call, with its labels. `again` shares the rows anew, with the gold
    that has come since, as the next of all tests of the table.
    """
    (name, price, person_price, _), (certainty, error) = expense, terms
    if min(price, person_price) < 0 or (name and price >= person_price):
        raise ConfigError("prices cannot be negative, and an expert costs less: such as --price .02 --person-price .5")
    if not (0 < max_error < 1 and 0 < certainty < 1):
        raise ConfigError("--max-error and --certainty are shares between 0 and 1, such as .05 and .9")
    if out is not None:
        policy.check(out)
        policy.check(_certificate(out), [".json"])
    run = Run.open(path)
    if run.sampled:
        raise ConfigError(f"{path} keeps a sample of a large table: pcs finish needs a run of all rows")
    if error == "distance" and not run.shape.ordered:
        raise ConfigError("--error distance: these labels have no order; it is for a run with --kind scale or number")
    if error == "wrong" and run.settings.promise == "off-by-more-than-one":
        error = "near"
    place, machine = run.folder.finish, _machine(run, name)
    with expecting(place, REMEDY):
        plan = read_json(place, REMEDY) if place.exists() else None
        wanted: dict[str, Any] = {"max_error": max_error, "certainty": certainty, "error": error}
        wanted |= {"expense": [name, price, person_price], "goal": GOALS[error].format(100 * max_error)}
        if plan is None or again or plan != plan | wanted:
            plan = wanted | _shared(run, machine, wanted)
            write_json(place, plan)
        found = _progress(run, plan, machine[1], expense, out or run.folder.path / "finished.csv")
        if found.certificate:
            for file in () if out is None else (out, found.certificate):
                policy.make_way(file)
            _write(run, plan, machine[1], found)
        return found


def _shared(run: Run, machine: tuple[Votes, Integers], wanted: dict[str, Any]) -> dict[str, Any]:
    """Return which rows the machine labels, and how, and which ones the expert; the ledger of levels notes the test."""
    (votes, said), (name, price, person_price) = machine, wanted["expense"]
    gold, max_error = gold_codes(votes, run.gold.labels), wanted["max_error"]
    sample = run.gold.random_sample & (gold != UNLABELLED)
    known = expected_labels(votes, gold, run.settings, run.texts, run.shape)
    # all tests together use 1 − certainty, and one half at most: confidences were learned from the same gold rows
    key = key_of(votes, run.gold.labels, run.settings, run.config.task.kind, wanted)
    levels = read_levels(run.folder, run.gold_ids, key)
    if levels.refused:
        raise GoldError(levels.refused)
    delta = next_level(1 - wanted["certainty"], levels.spent_before(key, "table"))
    need = bisect_left(range(len(votes)), True, key=lambda drawn: _tells(len(votes), drawn, wanted, delta))
    if known is None or sample.sum() < need:
        raise GoldError(
            f"{int(sample.sum())} gold rows were drawn at random, and such a promise needs {need} at least: "
            f"pcs review {run.folder.path}, queue Random"
        )
    expert, error = None, wanted["error"]
    sure, best, right = judged_rows(run, votes, known.held_out, gold, near=error == "near")
    apart = run.shape.apart(votes.labels) / (len(votes.labels) - 1) if error == "distance" else None
    wrong = ~right if apart is None else apart[best, gold]
    if apart is not None:
        sure = np.where(votes.silent, -1.0, 1 - (known.held_out * apart[best]).sum(axis=1))
    if name:
        if len(unknown := np.flatnonzero(sample & (said == NOT_ASKED))):
            count = f"{len(unknown)} of {int(sample.sum())} random gold rows"
            raise GoldError(f"{count} have no answer of {name}: ask it about {_to_ask(run, unknown)} first")
        heard = said >= 0  # people label what it cannot
        theirs = heard & ~run.shape.right(said, gold, votes.labels, near=error == "near")
        doubt, off = doubt_of(sure, sample, theirs), theirs if apart is None else apart[said, gold] * heard
        expert = Expert(
            doubt * off[sample & theirs].mean() if theirs[sample].any() else doubt, off, price / person_price
        )
    write_levels(run.folder, levels.with_test(LevelTest("table", key, int(sample.sum()), delta, True), run.gold_ids))
    shared = share_rows(sure, sample, wrong, max_error, delta, expert)
    return {
        "tested": key,
        "gold_rows": int(sample.sum()),
        "errors": shared.errors,
        "by_people": [votes.ids[row] for row in shared.by_people.tolist()],
        "by_expert": [votes.ids[row] for row in shared.by_expert.tolist()],
        "by_machine": {votes.ids[row]: votes.labels[best[row]] for row in shared.by_machine.tolist()},
    }


def judged_rows(run: Run, votes: Votes, probabilities: Floats, gold: Codes, *, near: bool = False) -> Judged:
    """Return for every row how sure its label is, the label, and whether it is right; that counts for gold rows."""
    best = run.shape.choose(probabilities, votes.labels)
    sure = np.where(votes.silent, -1.0, run.shape.confidence(probabilities, best, votes.labels, near=near))
    return Judged(sure, best, run.shape.right(best, gold, votes.labels, near=near))


def _machine(run: Run, expert: str) -> tuple[Votes, Integers]:
    """Return the votes of the machine, and the answers of the expert, `NOT_ASKED` where it was not asked."""
    votes = run.votes
    if not expert:
        return votes, np.full(len(votes), NOT_ASKED)
    if expert in votes.annotators and len(votes.annotators) > 1:
        return votes.without(annotator=expert), _said(votes.select(annotators=[expert]))
    if not RunFolder(Path(expert)).settings.exists():
        known = ", ".join(votes.annotators)
        raise ConfigError(f"--expert {expert}: name one of several models of this run ({known}), or another run folder")
    other = Run.open(Path(expert))
    codes = np.array([*positions_of(other.votes.labels, votes.labels, "label"), UNLABELLED])[_said(other.votes)]
    found = dict(zip(map(text_hash, other.texts), codes.tolist(), strict=True))
    return votes, np.array([found.get(text_hash(text), NOT_ASKED) for text in run.texts])


def _said(votes: Votes) -> Codes:
    """Return the label that most votes are for; a run's own weights have seen its gold."""
    return np.where(votes.silent, UNLABELLED, choose(score(votes, Weights.uniform(votes)), votes.labels)).astype(CODE)


def _to_ask(run: Run, rows: Any) -> Path:
    """Write the rows about which the expert is to be asked."""
    write_table(run.folder.path / "to_ask.csv", run.dataset.table.take(rows), PLAIN)
    return run.folder.path / "to_ask.csv"


def _pace(folder: RunFolder) -> float:
    """Return how many seconds people needed for each of the last rows."""
    events = read_review(folder.review) if folder.review.exists() else ()
    taken = [
        one.seconds or 0.0 for one in events if isinstance(one, Verdict) and 0 < (one.seconds or 0) < LONGEST_SECONDS
    ]
    return float(np.mean(taken[-50:])) if taken else SECONDS_PER_ROW


def _tells(rows: int, drawn: int, wanted: dict[str, Any], delta: float) -> bool:
    """Return whether so many random gold rows without an error let the machine label any row."""
    losses: Floats | Integers = np.zeros(drawn, dtype=np.intp)
    if wanted["error"] == "distance":
        losses = losses.astype(np.float64)
    return small_enough(rows, losses, wanted["max_error"] * rows, delta)


def _progress(run: Run, plan: dict[str, Any], said: Integers, expense: Expense, out: Path) -> Finish:
    """Return how far the work is."""
    places = {name: row for row, name in enumerate(run.votes.ids)}
    labels, expert = _by_people(run), [places[name] for name in plan["by_expert"]]
    silent = [row for row in expert if said[row] == UNLABELLED and run.votes.ids[row] not in plan["by_people"]]
    if silent:  # people label what the expert could not
        plan["by_people"] += [run.votes.ids[row] for row in silent]
        write_json(run.folder.finish, plan)
    people = [places[name] for name in plan["by_people"]]
    left = [row for row in people if labels[row] is None]
    to_ask = [row for row in expert if said[row] == NOT_ASKED and labels[row] is None]
    folder, items, done = run.folder, run.dataset.items, not left
    if left:
        rows = [DrawnRow(items[row].id, "for review", text_hash(items[row].text)) for row in left]
        write_to_label(folder, items, run.gold, rows)
    if to_ask:
        _to_ask(run, to_ask)
        done = False
    return Finish(
        **{name: plan[name] for name in ("max_error", "certainty", "error", "goal", "gold_rows", "errors")},
        rows=len(labels),
        by_people=len(left) + sum(label is not None for label in labels),
        left=len(left),
        by_expert=sum(labels[row] is None for row in expert),
        to_ask=len(to_ask),
        cost=len(expert) * expense.price + len(left) * expense.person_price,
        seconds=expense.seconds_per_row or _pace(folder),
        to_label=folder.to_label,
        out=out if done else None,
        certificate=_certificate(out) if done else None,
    )


def _certificate(out: Path) -> Path:
    return out.with_name(f"{out.stem}.certificate.json")


def _by_people(run: Run) -> list[str | None]:
    """Return the label that a person gave to each row, if one did; what is accepted in bulk is the machine's still."""
    labels = list(run.gold.labels)
    for row, one in run.gold.verdicts.by_row.items():  # those of audits are not gold
        labels[row] = one.label if one.looked_at else None
    return labels


def _write(run: Run, plan: dict[str, Any], said: Integers, found: Finish) -> None:
    """Write the user's rows with a label each, and who gave it; beside them the certificate."""
    assert found.out is not None
    assert found.certificate is not None
    places = {name: row for row, name in enumerate(run.votes.ids)}
    given = {places[name]: (label, "machine") for name, label in plan["by_machine"].items()}
    expert = [places[name] for name in plan["by_expert"]]
    given |= {row: (run.votes.labels[said[row]], plan["expense"][0]) for row in expert}
    named = [(label, "person") if label else given[row] for row, label in enumerate(_by_people(run))]
    table = run.dataset.table
    for column, cells in zip(("final_label", "labelled_by"), zip(*named, strict=True), strict=True):
        table = table.append_column(column, pa.array(cells))
    write_table(found.out, table, PLAIN)
    proof = {"blake2b": blake2b(found.out.read_bytes()).hexdigest(), "version": __version__, "tested": plan["tested"]}
    write_json(found.certificate, {n: v for n, v in asdict(found).items() if not isinstance(v, Path)} | proof)
