"""Which relation turns which label into which, model by model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from pcs_annotator.judging.evaluation.flips import FlipMatrix, flip_matrices
from pcs_annotator.pipeline.report.formats import count, percent
from pcs_annotator.pipeline.report.markup import ColumnHead, Markup, figure, section, sentence, table, tag, user_text
from pcs_annotator.pipeline.report.view import View

MOST_LABELS, MOST_NARROW = 8, 4
MOST_FLIPS = 12
MOST_OPEN = 4
MOST_MATRICES = 60
HEAT = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
"""Shares from which a cell is a shade darker."""


def flips(view: View) -> Markup:
    """Return how often each model changed its label under each relation, and from which to which."""
    matrices = [one for one in flip_matrices(view.result.votes) if one.flips.pairs]
    if not matrices:
        told = "Nothing to compare: no text was answered both as it is and rewritten."
        return section("flips", "Which rewrite flips which label", sentence(told))
    shown = matrices[:MOST_MATRICES]
    return section(
        "flips",
        "Which rewrite flips which label",
        sentence(
            "A rewrite keeps the meaning, so a label that changes under it was not sure. Here is how often each model "
            "gave a rewritten text another label than the text itself."
        ),
        _rates(matrices, view),
        *(
            _relation(relation, list(group), view, not place or len(shown) <= MOST_OPEN)
            for place, (relation, group) in enumerate(groupby(shown, lambda one: one.relation))
        ),
        sentence(f"{len(matrices) - len(shown)} further tables are left out.", kind="note")
        if len(shown) < len(matrices)
        else None,
    )


def _rates(matrices: Sequence[FlipMatrix], view: View) -> Markup:
    """Return relations down, models across: the share of answers that changed."""
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
    whole = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *lines), class_="heat")
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label="Share of answers that changed")


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
            *(figure(one.annotator, show(one, labels)) for one in matrices),
            class_="matrices wide" if len(labels) > MOST_NARROW else "matrices",
        ),
        class_="numbers",
        open=unfolded,
    )


def _matrix(one: FlipMatrix, labels: Sequence[str]) -> Markup:
    totals = one.counts.sum(axis=1)
    head = [
        tag("th", "text → rewrite", scope="col"),
        *(tag("th", user_text(to), scope="col", class_="number") for to in labels),
    ]
    lines = [
        tag(
            "tr",
            tag("th", user_text(label), scope="row"),
            *(
                _cell(int(one.counts[row, column]), int(totals[row]), same=row == column)
                for column in range(len(labels))
            ),
        )
        for row, label in enumerate(labels)
    ]
    whole = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *lines), class_="heat")
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label="Labels before and after")


def _top(one: FlipMatrix, labels: Sequence[str]) -> Markup:
    """Return the most frequent changes as a list: a matrix of so many labels is mostly empty."""
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
    return table([ColumnHead("text → rewrite"), ColumnHead("answers", "number"), ColumnHead("share", "number")], rows)


def _rate(changed: int, pairs: int) -> Markup:
    told = f"{count(changed)} of {count(pairs)}"
    return tag("td", percent(changed, pairs), " ", tag("small", told), class_=f"number heat-{_heat(changed, pairs)}")


def _heat(part: int, whole: int) -> int:
    return sum(part / whole > step for step in HEAT)


def _cell(part: int, whole: int, *, same: bool) -> Markup:
    if not whole:
        return tag("td", "–", class_="number")
    if not part and not same:
        return tag("td", "0", class_="number quiet")
    kind = "number same" if same else f"number heat-{_heat(part, whole)}"
    return tag("td", count(part), " ", tag("small", percent(part, whole)), class_=kind)
