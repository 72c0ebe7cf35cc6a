"""`pcs relations value`: what each relation adds on recorded votes, as a table and in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.base.errors import GoldError
from pcs_annotator.core.result_table import Content, Figure, ResultTable
from pcs_annotator.core.votes import check_known
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.evaluation.methods import about_intervals
from pcs_annotator.judging.evaluation.relation_value import Advice, RelationValue, RelationValues, relation_values
from pcs_annotator.judging.metrics.significance import BootstrapTest, rows_to_tell
from pcs_annotator.runs.learn import one_thread
from pcs_annotator.tables.table_files import AS_FOUND, Reading
from pcs_annotator.verbs.evaluate import RecordedVotes, Splitting, test_json

TOLD = 0.02
"""The gain for which the number of gold rows that it takes is named."""
ADVICE: dict[Advice, str] = {"keep": "keep", "drop": "drop", "unknown": "cannot tell"}
POINTS = "points of class AUROC"
COLUMNS = ("Relation", "Applies to", "Calls per text", "Per question", "Over all texts", "Advice")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRequest:
    """Where to measure relations.

    Attributes:
        source: A table of votes with gold, or a run folder.
        optimiser: How to learn; empty for `naive-bayes`, or `scaling` for graded votes.
        hard: Whether to use labels only, without their log-probabilities.
        rewritten: Relations whose variants a model wrote; those of a run folder are known.
        splitting: Folds, seeds and resamples.
        reading: How to read the table.
    """

    source: Path
    optimiser: str = ""
    hard: bool = False
    rewritten: Sequence[str] = ()
    splitting: Splitting = field(default_factory=Splitting)
    reading: Reading = AS_FOUND


class ValuedRelations(NamedTuple):
    """What each relation adds, as values, as a table, and in plain sentences."""

    values: RelationValues
    table: ResultTable
    conclusions: Sequence[str]


def value_of_source(request: ValueRequest) -> ValuedRelations:
    """Return what each relation adds on the votes of a table or run folder; no model is called."""
    recorded = RecordedVotes.read(request.source, request.reading)
    check_known(request.rewritten, recorded.votes.relations, "relation")
    recorded = recorded._replace(rewritten=recorded.rewritten | frozenset(request.rewritten))
    if request.hard:
        recorded = recorded._replace(votes=recorded.votes.hard())
    return value_of_votes(recorded, request.splitting, request.optimiser, request.source.name)


def value_of_votes(
    recorded: RecordedVotes, splitting: Splitting, optimiser: str = "", name: str = "these votes"
) -> ValuedRelations:
    """Return what each relation adds; error messages call the votes `name`."""
    if (recorded.gold < 0).all():
        raise GoldError(f"{name} has no gold labels, and gains are measured on rows that have one: label some rows")
    with one_thread():
        found = relation_values(recorded.votes, recorded.gold, splitting.how(recorded.rewritten), optimiser)
    return ValuedRelations(found, _table(found), _conclusions(found))


def _conclusions(found: RelationValues) -> list[str]:
    """Return what to keep, what to drop and what cannot be told, and what all relations add together."""
    by_advice = {advice: [one for one in found.relations if one.advice == advice] for advice in ADVICE}
    said = []
    if keep := by_advice["keep"]:
        said.append(f"Keep {_named(keep)}: that is more than chance would add.")
    if drop := by_advice["drop"]:
        said.append(f"Drop {_named(drop)}: that is less than one point per question.")
    if unknown := by_advice["unknown"]:
        said.append(f"{found.n:,} gold rows cannot tell about {_named(unknown)}.{_needed(unknown, found.n)}")
    if found.absent:
        said.append(f"Nothing is known about {', '.join(found.absent)}: no gold row has an answer under it.")
    whole = f"All together add {points(found.together)} {POINTS} to the {found.auroc:.3f} of the original alone."
    return [*said, whole]


def _named(values: Sequence[RelationValue]) -> str:
    return ", ".join(f"{one.relation} ({points(one.per_question) or f'applies to {one.covered}'})" for one in values)


def _needed(values: Sequence[RelationValue], rows: int) -> str:
    """Return how many gold rows it takes to tell; nothing if there are as many, so that the gain is small if any."""
    # a relation that applies to one text in ten needs ten times as many gold rows as rows that it applies to
    needed = {
        one.relation: rows_to_tell(one.per_question, TOLD) * rows / one.covered for one in values if one.per_question
    }
    more = [f"{_two_digits(count):,} for {name}" for name, count in needed.items() if count > rows]
    return f" Gold rows to tell a gain of {100 * TOLD:.0f} points: about {', '.join(more)}." if more else ""


def _two_digits(rows: float) -> int:
    """Return a number of rows with two digits, because more would look surer than it is."""
    step = 10 ** max(len(str(int(rows))) - 2, 0)
    return int(-(-rows // step) * step)


def points(test: BootstrapTest | None) -> str:
    """Return a gain in points with its interval; nothing if there is none."""
    if test is None:
        return ""
    figures = (test.difference, *test.interval.rounded(3))
    value, low, high = (f"{round(100 * one, 1) + 0:+.1f}" for one in figures)  # + 0: there is no minus zero
    return f"{value} [{low.lstrip('+')}, {high.lstrip('+')}]".replace("-", "−")


def _table(found: RelationValues) -> ResultTable:
    """Return a line per relation, the largest gain first; gains are in points of class AUROC."""
    rows: list[list[Content]] = [
        [
            one.relation,
            f"{100 * one.covered / found.n:.0f} % ({one.covered:,})",
            one.calls,
            _cell(one.per_question),
            _cell(one.gain),
            ADVICE[one.advice],
        ]
        for one in found.relations
    ]
    return ResultTable(
        name="relation-value",
        title=f"What each relation adds beside {found.original!r} on {found.n:,} gold rows ({POINTS})",
        columns=COLUMNS,
        rows=rows,
        notes=_notes(found),
        digits={"Calls per text": 2, "Per question": 1, "Over all texts": 1},
    )


def _notes(found: RelationValues) -> list[str]:
    """Return how the gains were computed."""
    votes = "graded votes" if found.graded else "labels only"
    how = found.how
    return [
        f"Per question: gain on the texts that the relation applies to. Over all texts: gain on all. Both compare "
        f"{found.original!r} and the relation with {found.original!r} alone, by {found.optimiser} on {votes}; "
        f"{how.folds}-fold cross-validation, seeds {', '.join(map(str, how.seeds))}.",
        "Gains of several relations do not add up. Advice follows the gain per question: drop if its interval ends "
        "below one point, else keep if it is above 0 after adjustment for the number of relations (Holm).",
        about_intervals(how.resamples),
    ]


def _cell(test: BootstrapTest | None) -> Content:
    if test is None:
        return None
    low, high = test.interval
    return Figure(100 * test.difference, Interval(100 * low, 100 * high))


def values_json(valued: ValuedRelations) -> dict[str, Any]:
    """Return everything as plain values; gains are differences in class AUROC, not points."""
    found = valued.values
    how = found.how
    return {
        "n": found.n,
        "original": found.original,
        "optimiser": found.optimiser,
        "graded": found.graded,
        "folds": how.folds,
        "seeds": list(how.seeds),
        "resamples": how.resamples,
        "auroc": found.auroc,
        "together": test_json(found.together),
        "relations": [_value_json(one) for one in found.relations],
        "absent": list(found.absent),
        "conclusions": list(valued.conclusions),
    }


def _value_json(one: RelationValue) -> dict[str, Any]:
    return {
        "relation": one.relation,
        "covered": one.covered,
        "calls_per_text": one.calls,
        "per_question": None if one.per_question is None else {**test_json(one.per_question), "p_holm": one.p_holm},
        "over_all_texts": test_json(one.gain),
        "advice": one.advice,
    }
