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
from pcs_annotator.showing.report.formats import bar, count, percent
from pcs_annotator.showing.report.markup import Child, Markup, figure, section, sentence, table, tag, user_text
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


def distribution(view: View) -> Markup:
    """Return a bar per label, with the share among gold rows marked."""
    counts = view.result.counts
    given: Counter[str | None] = Counter({None: counts.unlabelled})
    given.update(counts.labels)
    gold = Counter(label for label in view.gold if label is not None)
    labels = sorted(view.task.labels, key=lambda label: (-given[label], view.task.labels.index(label)))
    names: list[str | None] = [*labels[:MOST_BARS], *([None] if given[None] else [])]
    rows = [_row(name, given, gold, counts.rows) for name in names]
    columns = [("Label", ""), ("", "chart"), ("rows", "number"), ("share", "number")]
    if gold:
        columns.append(("gold share", "number quiet"))
    else:
        rows = [row[:-1] for row in rows]
    hidden = len(labels) - MOST_BARS
    return section(
        "labels",
        "Labels",
        table(columns, rows, kind="bars counts"),
        sentence(f"{hidden} rarer labels are not shown.", kind="note") if hidden > 0 else None,
        sentence(
            f"The vertical mark is the share among the {count(gold.total())} gold rows. A bar far from it means that "
            "the label is given too often or too rarely, or that the gold rows have a different mix of labels.",
            kind="note",
        )
        if gold
        else None,
    )


def _row(name: str | None, given: Counter[str | None], gold: Counter[str], rows: int) -> list[Child]:
    total = gold.total()
    share = given[name] / max(rows, 1)
    mark = gold[name] / total if total and name is not None else None
    return [
        "no label" if name is None else user_text(name),
        bar(share, mark=mark, kind="bar" if name is not None else "bar bad"),
        count(given[name]),
        percent(given[name], rows),
        percent(gold[name], total) if name is not None else "",
    ]


def flips(view: View) -> Markup:
    """Return how often each relation made each model change its label, and from which to which."""
    matrices = [one for one in flip_matrices(view.result.votes) if one.flips.pairs]
    if not matrices:
        why = "Nothing to compare: no model answered both a text and its rewrite, or the same question put differently."
        return section("flips", "Flipped labels", sentence(why))
    shown = matrices[:MOST_MATRICES]
    by_question = [one for one in matrices if one.relation in view.question_relations]
    by_rewrite = [one for one in matrices if one.relation not in view.question_relations]
    causes = [title for title, found in (("rewrites", by_rewrite), ("the question", by_question)) if found]
    return section(
        "flips",
        f"Labels flipped by {' and by '.join(causes)}",
        *((sentence(BY_REWRITE), _rates(by_rewrite, view)) if by_rewrite else ()),
        *((sentence(BY_QUESTION), _rates(by_question, view)) if by_question else ()),
        *(
            _relation(relation, list(group), view, not place or len(shown) <= MOST_OPEN)
            for place, (relation, group) in enumerate(groupby(shown, lambda one: one.relation))
        ),
        sentence(f"{len(matrices) - len(shown)} more tables are left out.", kind="note")
        if len(shown) < len(matrices)
        else None,
        sentence("A graded answer counts as the label that was answered.", kind="note")
        if view.result.votes.grades is not None
        else None,
    )


def _rates(matrices: Sequence[FlipMatrix], view: View) -> Markup:
    """Return the share of answers that changed, per relation (rows) and model (columns)."""
    found = {(one.relation, one.annotator): one.flips for one in matrices}
    annotators = view.result.votes.annotators
    lines = []
    for relation in dict.fromkeys(one.relation for one in matrices):
        cells = [tag("th", user_text(relation), scope="row")]
        for annotator in annotators:
            one = found.get((relation, annotator))
            cells.append(tag("td", "–", class_="number") if one is None else _rate(one.changed, one.pairs))
        lines.append(tag("tr", *cells))
    head = [
        tag("th", "Relation", scope="col"),
        *(tag("th", user_text(n), scope="col", class_="number") for n in annotators),
    ]
    return heat_table("Share of answers that changed", head, lines)


def heat_table(title: str, head: Sequence[Markup], lines: Sequence[Markup]) -> Markup:
    """Return a table whose cells are coloured; a wide one scrolls."""
    whole = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *lines), class_="heat")
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=title)


def _relation(relation: str, matrices: Sequence[FlipMatrix], view: View, unfolded: bool) -> Markup:
    changed, pairs = (sum(getattr(one.flips, name) for one in matrices) for name in ("changed", "pairs"))
    labels = view.result.votes.labels
    show = _matrix if len(labels) <= MOST_LABELS else _top
    return tag(
        "details",
        tag(
            "summary",
            user_text(relation, "b"),
            tag("span", f" {percent(changed, pairs)} of {count(pairs)} answers changed", class_="quiet"),
        ),
        tag(
            "div",
            *(figure(one.annotator, show(one, labels, _heading(relation, view))) for one in matrices),
            class_="matrices wide" if len(labels) > MOST_NARROW else "matrices",
        ),
        class_="numbers",
        open=unfolded,
    )


def _heading(relation: str, view: View) -> str:
    return f"original → {'other question' if relation in view.question_relations else 'rewrite'}"


def _matrix(one: FlipMatrix, labels: Sequence[str], heading: str) -> Markup:
    totals = one.counts.sum(axis=1)
    head = [
        tag("th", heading, scope="col"),
        *(tag("th", user_text(to), scope="col", class_="number") for to in labels),
    ]
    lines = [
        tag(
            "tr",
            tag("th", user_text(label), scope="row"),
            *(
                heat_cell(int(one.counts[row, column]), int(totals[row]), same=row == column)
                for column in range(len(labels))
            ),
        )
        for row, label in enumerate(labels)
    ]
    return heat_table("Labels before and after", head, lines)


def _top(one: FlipMatrix, labels: Sequence[str], heading: str) -> Markup:
    """Return the most frequent changes as a list; with many labels the matrix would be mostly empty."""
    changes = one.counts.copy()
    np.fill_diagonal(changes, 0)
    order = np.argsort(-changes, axis=None, kind="stable")[:MOST_FLIPS]
    places = [divmod(int(place), len(labels)) for place in order]
    rows = [
        [
            tag("span", user_text(labels[row]), " → ", user_text(labels[column])),
            count(int(changes[row, column])),
            percent(int(changes[row, column]), int(one.counts[row].sum())),
        ]
        for row, column in places
        if changes[row, column]
    ]
    if not rows:
        return sentence("No answer changed.", kind="note")
    return table([(heading, ""), ("answers", "number"), ("share", "number")], rows)


def _rate(changed: int, pairs: int) -> Markup:
    counts = f"{count(changed)} of {count(pairs)}"
    return tag("td", percent(changed, pairs), " ", tag("small", counts), class_=f"number heat-{_heat(changed, pairs)}")


def _heat(part: int, whole: int) -> int:
    return sum(part / whole > step for step in HEAT)


def heat_cell(part: int, whole: int, *, same: bool) -> Markup:
    """Return a count and its share, in a colour that tells how large it is; grey on the diagonal."""
    if not whole:
        return tag("td", "–", class_="number")
    if not part and not same:
        return tag("td", "0", class_="number quiet")
    kind = "number same" if same else f"number heat-{_heat(part, whole)}"
    return tag("td", count(part), " ", tag("small", percent(part, whole)), class_=kind)


def silences(view: View) -> Markup:
    """Return how many rewrites and answers are missing, and why."""
    found = view.result.silences
    return section(
        "silences",
        "Missing rewrites and answers",
        figure("Rewrites", _rewrites(view)),
        figure("Answers", _answers(view)),
        *(_reasons(f"Why {what}", found[kind]) for kind, what in SILENCES.items()),
        _reasons("Why answers are labels without probabilities", view.result.hard),
        _bounded(view.result.bounded),
        _reasons("Failed calls, repeated by the next run", view.result.tally.failed),
    )


def _bounded(answers: int) -> Markup | None:
    if not answers:
        return None
    text = "a label that the server did not list may have more than 1 %; it was given the most that it can have"
    return sentence(f"In {counted(answers, 'answer')}, {text}.", kind="note")


def _rewrites(view: View) -> Markup:
    if not view.rewrites:
        why = "No text was rewritten." if view.question_relations else "No rewrites are recorded."
        return sentence(why, kind="note")
    ends: Counter[tuple[str, str]] = Counter()
    for one in view.rewrites:
        ends[one.relation, one.status] += one.times
    names = [name for name in view.result.votes.relations if any(relation == name for relation, _ in ends)]
    rows = []
    for name in names:
        counts = [ends[name, status] for status in ("changed", "not_applicable", "rejected")]
        rows.append(_count_row(name, counts, sum(counts)))
    titles = ("changed", "did not apply", "rejected by a check", "share changed")
    return table([("Relation", ""), ("", "chart"), *((title, "number") for title in titles)], rows)


def _answers(view: View) -> Markup:
    votes, graded = view.result.votes, view.graded_answers
    rows = []
    for position, name in enumerate(votes.annotators):
        codes = votes.codes[:, position]
        silent, unasked = int(np.sum(codes == ABSTAINED)), int(np.sum(codes == NOT_ASKED))
        given = codes.size - silent - unasked
        row = _count_row(name, [given, silent, unasked], given + silent)
        rows.append(row if graded is None else [*row, percent(graded[name], given)])
    titles = ["labels", "unreadable", "not asked", "share with label", *(["with log-probs"] if graded else [])]
    return table([("Model", ""), ("", "chart"), *((title, "number") for title in titles)], rows)


def _count_row(name: str, counts: Sequence[int], total: int) -> list[Child]:
    """Return a row of counts, with the share of the first one in the total."""
    return [user_text(name), bar(counts[0] / max(total, 1)), *map(count, counts), percent(counts[0], total)]


def _reasons(title: str, reasons: Mapping[str, int]) -> Markup | None:
    if not reasons:
        return None
    top = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = [
        tag("li", tag("b", count(times), class_="count"), " ", user_text(reason, "span"))
        for reason, times in top[:MOST_REASONS]
    ]
    rest = sum(times for _, times in top[MOST_REASONS:])
    if rest:
        shown.append(tag("li", tag("b", count(rest), class_="count"), " for other reasons"))
    return figure(title, tag("ul", *shown, class_="reasons"))
