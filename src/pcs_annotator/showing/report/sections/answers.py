"""What the models answered: labels changed by rewrites or by the question, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pcs_annotator.base.text import counted
from pcs_annotator.judging.evaluation.flips import FlipMatrix, flip_matrices
from pcs_annotator.runs.run_result import SILENCES
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import count, percent
from pcs_annotator.showing.report.view import View

MOST_FLIPS = 12
HEAT = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
"""Shares above which a cell is one shade darker."""
MOST_REASONS = 8
ABOUT_FLIPS = (
    "A rewrite keeps the meaning, and another question asks the same, so a label that changes was uncertain or depends "
    "on how the model was asked."
)


def flips(view: View) -> b.Folded | None:
    """Return how often each relation made each model change its label, and from which to which; None if unknown."""
    votes = view.result.votes
    found = [one for one in flip_matrices(votes) if one.flips.pairs]
    if not found:
        return None
    changes = top_changes(np.sum([one.counts for one in found], axis=0), votes.labels, "Original → asked otherwise")
    graded = "A graded answer counts as the label that was answered." if votes.grades is not None else ""
    shown = [b.text(ABOUT_FLIPS), _rates(found, votes.annotators), changes, b.note(graded) if graded else None]
    return b.Folded("Which labels changed", shown)


def _rates(matrices: Sequence[FlipMatrix], annotators: Sequence[str]) -> b.Table:
    """Return the share of answers that changed, per relation (rows) and model (columns)."""
    found = {(one.relation, one.annotator): one.flips for one in matrices}
    rows: list[b.Row] = []
    for relation in dict.fromkeys(one.relation for one in matrices):
        flips = [found.get((relation, annotator)) for annotator in annotators]
        rows.append([b.name(relation), *(None if one is None else _rate(one.changed, one.pairs) for one in flips)])
    columns = [b.Column("Relation"), *b.numbers(*map(b.name, annotators))]
    return b.Table(columns=columns, rows=rows, kind="heat", label="Share of answers that changed")


def matrix(counts: np.ndarray, names: Sequence[str], heading: str, label: str) -> b.Table:
    """Return counts by one label (rows) and another (columns), with the share of the row in colour."""
    rows: list[b.Row] = [
        [b.name(one), *(_heat_cell(int(times), int(line.sum()), same=at == place) for place, times in enumerate(line))]
        for at, (one, line) in enumerate(zip(names, counts, strict=True))
    ]
    return b.Table(columns=[b.Column(heading), *b.numbers(*map(b.name, names))], rows=rows, kind="heat", label=label)


def top_changes(counts: np.ndarray, names: Sequence[str], heading: str, unit: str = "answers") -> b.Table | None:
    """Return the most frequent pairs of different labels; None if there are none."""
    changes = counts.copy()
    np.fill_diagonal(changes, 0)
    places = [divmod(int(place), len(names)) for place in np.argsort(-changes, axis=None, kind="stable")[:MOST_FLIPS]]
    rows: list[b.Row] = [
        [(b.name(names[row]), " → ", b.name(names[column])), int(times), percent(int(times), int(counts[row].sum()))]
        for row, column in places
        if (times := changes[row, column])
    ]
    return b.Table(columns=[b.Column(heading), *b.numbers(unit, "share")], rows=rows) if rows else None


def _rate(changed: int, pairs: int) -> b.Shaded:
    counts = b.Styled(f"{count(changed)} of {count(pairs)}", "small")
    return b.Shaded((percent(changed, pairs), " ", counts), f"number heat-{_heat(changed, pairs)}")


def _heat(part: int, whole: int) -> int:
    return sum(part / whole > step for step in HEAT)


def _heat_cell(part: int, whole: int, *, same: bool) -> b.Cell:
    """Return a count and its share, in a colour that tells how large it is; grey on the diagonal."""
    if not whole:
        return None
    if not part and not same:
        return b.Shaded("0", "number quiet")
    kind = "number same" if same else f"number heat-{_heat(part, whole)}"
    return b.Shaded((count(part), " ", b.Styled(percent(part, whole), "small")), kind)


def silences(view: View) -> b.Folded | None:
    """Return why rewrites and answers are missing; None if none is."""
    result = view.result
    unlisted = "a label that the server did not list may have more than 1 %; it was given the most that it can have"
    found = [
        *(reasons(f"Why {what}", result.silences[kind]) for kind, what in SILENCES.items()),
        reasons("Why answers are labels without probabilities", result.hard),
        b.note(f"In {counted(result.bounded, 'answer')}, {unlisted}.") if result.bounded else None,
        reasons("Failed calls, repeated by the next run", result.tally.failed),
    ]
    return b.Folded("Missing rewrites and answers, and why", found) if any(found) else None


def reasons(title: str, found: Mapping[str, int], most: int = MOST_REASONS) -> b.Group | None:
    """Return why something happened, the most frequent reasons first; None if it did not."""
    if not found:
        return None
    top = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    items: list[b.Words] = [
        (b.Styled(count(times), "count"), " ", b.Styled(reason, "plain", own=True)) for reason, times in top[:most]
    ]
    if rest := sum(times for _, times in top[most:]):
        items.append((b.Styled(count(rest), "count"), " for other reasons"))
    return b.titled(title, b.Bullets(items, "reasons"))
