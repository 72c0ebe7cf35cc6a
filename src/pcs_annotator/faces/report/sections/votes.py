"""One item's variants, changes marked, and what every model said of each."""

from __future__ import annotations

from collections import Counter

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.codes import ABSTAINED
from pcs_annotator.core.variant import ORIGINAL, Variant
from pcs_annotator.faces.report.diff import clipped, marked
from pcs_annotator.faces.report.markup import Markup, joined, tag
from pcs_annotator.faces.report.selection import Row
from pcs_annotator.faces.report.view import View

STATUS = {"not_applicable": "not applicable", "rejected": "rejected"}


def votes_table(row: Row, view: View, room: int) -> Markup:
    """Return relations down, models across; a missing rewrite says why."""
    votes = view.result.votes
    head = [tag("th", name, scope="col", dir="auto") for name in ("relation", "text", *votes.annotators)]
    lines = [
        tag(
            "tr",
            tag("th", relation, scope="row", dir="auto"),
            tag("td", _shown(row, relation, room), class_="variant", dir="auto"),
            *(
                _cell(row.codes[annotator, position], view, row.outcome.label, votes.annotators[annotator])
                for annotator in range(len(votes.annotators))
            ),
        )
        for position, relation in enumerate(votes.relations)
    ]
    whole = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *lines), class_="votes")
    return tag("div", whole, class_="scroll")


def _shown(row: Row, relation: str, room: int) -> Markup:
    if relation == ORIGINAL:
        return tag("span", clipped(row.item.text, room) or "(empty text)")
    variant = row.variants.get(relation)
    if variant is None:
        return tag("span", "no variant recorded", class_="quiet")
    if variant.text is not None:
        return marked(row.item.text, variant.text, room)
    return _missing(row, variant, room)


def _missing(row: Row, variant: Variant, room: int) -> Markup:
    why = STATUS.get(variant.status, variant.status) + (f": {clipped(variant.reason, room)}" if variant.reason else "")
    told = tag("span", why, class_="quiet")
    if variant.refused is None:
        return told
    return joined(told, tag("span", marked(row.item.text, variant.refused, room), class_="refused"))


def _cell(draws: Codes, view: View, label: str | None, annotator: str) -> Markup:
    """Return one vote; with several draws, how often each label was given."""
    labels = view.result.votes.labels
    given = Counter(int(code) for code in draws if code >= 0)
    if not given:
        if bool((draws == ABSTAINED).any()):
            return tag("td", "silent", class_="vote silent", data_by=annotator)
        return tag("td", "–", class_="vote unasked", data_by=annotator)
    top = given.most_common()
    agrees = labels[top[0][0]] == label
    text = ", ".join(labels[code] if len(draws) == 1 else f"{labels[code]} {times}×" for code, times in top)
    return tag("td", text, class_="vote yes" if agrees else "vote no", data_by=annotator, dir="auto")
