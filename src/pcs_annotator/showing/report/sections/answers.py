"""What the models answered: labels given, labels flipped by rewrites or by the question, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from pcs_annotator.base.text import counted
from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED
from pcs_annotator.judging.evaluation.flips import FlipMatrix, flip_matrices
from pcs_annotator.runs.run_result import SILENCES
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import count, percent
from pcs_annotator.showing.report.view import View

MOST_BARS = 20
MOST_LABELS, MOST_NARROW = 8, 4
MOST_FLIPS = 12
MOST_OPEN = 4
MOST_MATRICES = 60
HEAT = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
"""Shares above which a cell is one shade darker."""
MOST_REASONS = 8
BY_REWRITE = (
    "A rewrite keeps the meaning, so a label that changes was uncertain. The table shows how often each model gave a "
    "rewritten text a different label than the original text."
)
BY_QUESTION = (
    "These relations leave the text as it is and put the question differently: labels in another order, other words, "
    "another layout. A label that changes depends on how the model was asked. The table shows how often each model "
    "changed its label."
)


def distribution(view: View) -> b.Section:
    """Return a bar per label, with the share among gold rows marked."""
    counts = view.result.counts
    given: Counter[str | None] = Counter({None: counts.unlabelled})
    given.update(counts.labels)
    gold = Counter(label for label in view.gold if label is not None)
    labels = sorted(view.task.labels, key=lambda label: (-given[label], view.task.labels.index(label)))
    shown: list[str | None] = [*labels[:MOST_BARS], *([None] if given[None] else [])]
    rows = [_row(label, given, gold, counts.rows) for label in shown]
    columns = [b.Column("Label"), b.Column("", "chart"), *b.numbers("rows", "share")]
    about_gold = None
    if gold:
        columns.append(b.Column("gold share", "number quiet"))
        about_gold = b.note(
            f"The vertical mark is the share among the {count(gold.total())} gold rows. A bar far from it means that "
            "the label is given too often or too rarely, or that the gold rows have a different mix of labels."
        )
    else:
        rows = [row[:-1] for row in rows]
    hidden = len(labels) - MOST_BARS
    return b.section(
        "labels",
        "Labels",
        b.Table(columns=columns, rows=rows, kind="bars counts"),
        b.note(f"{hidden} rarer labels are not shown.") if hidden > 0 else None,
        about_gold,
    )


def _row(label: str | None, given: Counter[str | None], gold: Counter[str], rows: int) -> b.Row:
    share = given[label] / max(rows, 1)
    if label is None:
        return ["no label", b.Bar(share, kind="bar bad"), given[label], percent(given[label], rows), ""]
    mark = gold[label] / gold.total() if gold else None
    shares = percent(given[label], rows), percent(gold[label], gold.total())
    return [b.name(label), b.Bar(share, mark), given[label], *shares]


def flips(view: View) -> b.Section:
    """Return how often each relation made each model change its label, and from which to which."""
    matrices = [one for one in flip_matrices(view.result.votes) if one.flips.pairs]
    if not matrices:
        why = "Nothing to compare: no model answered both a text and its rewrite, or the same question put differently."
        return b.section("flips", "Flipped labels", b.text(why), menu="Flips")
    shown = matrices[:MOST_MATRICES]
    by_question = [one for one in matrices if one.relation in view.question_relations]
    by_rewrite = [one for one in matrices if one.relation not in view.question_relations]
    kinds = (("rewrites", BY_REWRITE, by_rewrite), ("the question", BY_QUESTION, by_question))
    rates: list[b.Block] = []
    for _, about, found in kinds:
        if found:
            rates += [b.text(about), _rates(found, view.result.votes.annotators)]
    hidden = len(matrices) - len(shown)
    return b.section(
        "flips",
        f"Labels flipped by {' and by '.join(title for title, _, found in kinds if found)}",
        *rates,
        *(
            _relation(relation, list(group), view, not place or len(shown) <= MOST_OPEN)
            for place, (relation, group) in enumerate(groupby(shown, lambda one: one.relation))
        ),
        b.note(f"{hidden} more tables are left out.") if hidden else None,
        b.note("A graded answer counts as the label that was answered.")
        if view.result.votes.grades is not None
        else None,
        menu="Flips",
    )


def _rates(matrices: Sequence[FlipMatrix], annotators: Sequence[str]) -> b.Table:
    """Return the share of answers that changed, per relation (rows) and model (columns)."""
    found = {(one.relation, one.annotator): one.flips for one in matrices}
    rows: list[b.Row] = []
    for relation in dict.fromkeys(one.relation for one in matrices):
        flips = [found.get((relation, annotator)) for annotator in annotators]
        rows.append([b.name(relation), *(None if one is None else _rate(one.changed, one.pairs) for one in flips)])
    columns = [b.Column("Relation"), *b.numbers(*map(b.name, annotators))]
    return b.Table(columns=columns, rows=rows, kind="heat", label="Share of answers that changed")


def _relation(relation: str, matrices: Sequence[FlipMatrix], view: View, unfolded: bool) -> b.Folded:
    changed, pairs = (sum(getattr(one.flips, what) for one in matrices) for what in ("changed", "pairs"))
    labels = view.result.votes.labels
    other = "other question" if relation in view.question_relations else "rewrite"
    shown = [b.titled(one.annotator, _changes(one, labels, f"original → {other}")) for one in matrices]
    share = b.Styled(f" {percent(changed, pairs)} of {count(pairs)} answers changed", "quiet")
    kind = "matrices wide" if len(labels) > MOST_NARROW else "matrices"
    return b.Folded((b.Styled(relation, "bold", own=True), share), [b.Group(shown, kind=kind)], unfolded)


def _changes(one: FlipMatrix, labels: Sequence[str], heading: str) -> b.Block:
    """Return labels before and after as a matrix; of many labels, which it would mostly be empty for, as a list."""
    if len(labels) <= MOST_LABELS:
        return matrix(one.counts, labels, heading, "Labels before and after")
    return top_changes(one.counts, labels, heading) or b.note("No answer changed.")


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


def silences(view: View) -> b.Section:
    """Return how many rewrites and answers are missing, and why."""
    found, bounded = view.result.silences, view.result.bounded
    unlisted = "a label that the server did not list may have more than 1 %; it was given the most that it can have"
    return b.section(
        "silences",
        "Missing rewrites and answers",
        b.titled("Rewrites", _rewrites(view)),
        b.titled("Answers", _answers(view)),
        *(reasons(f"Why {what}", found[kind]) for kind, what in SILENCES.items()),
        reasons("Why answers are labels without probabilities", view.result.hard),
        b.note(f"In {counted(bounded, 'answer')}, {unlisted}.") if bounded else None,
        reasons("Failed calls, repeated by the next run", view.result.tally.failed),
        menu="Missing answers",
    )


def _rewrites(view: View) -> b.Block:
    if not view.rewrites:
        return b.note("No text was rewritten." if view.question_relations else "No rewrites are recorded.")
    ends: Counter[tuple[str, str]] = Counter()
    for one in view.rewrites:
        ends[one.relation, one.status] += one.times
    rows = []
    for relation in view.result.votes.relations:
        counts = [ends[relation, status] for status in ("changed", "not_applicable", "rejected")]
        if any(other == relation for other, _ in ends):
            rows.append(_count_row(relation, counts, sum(counts)))
    titles = b.numbers("changed", "did not apply", "rejected by a check", "share changed")
    return b.Table(columns=[b.Column("Relation"), b.Column("", "chart"), *titles], rows=rows)


def _answers(view: View) -> b.Table:
    votes, graded = view.result.votes, view.graded_answers
    rows = []
    for position, model in enumerate(votes.annotators):
        codes = votes.codes[:, position]
        silent, unasked = int(np.sum(codes == ABSTAINED)), int(np.sum(codes == NOT_ASKED))
        given = codes.size - silent - unasked
        row = _count_row(model, [given, silent, unasked], given + silent)
        rows.append(row if graded is None else [*row, percent(graded[model], given)])
    titles = ["labels", "unreadable", "not asked", "share with label", *(["with log-probs"] if graded else [])]
    return b.Table(columns=[b.Column("Model"), b.Column("", "chart"), *b.numbers(*titles)], rows=rows)


def _count_row(title: str, counts: Sequence[int], total: int) -> b.Row:
    """Return a row of counts, with the share of the first one in the total."""
    return [b.name(title), b.Bar(counts[0] / max(total, 1)), *counts, percent(counts[0], total)]


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
