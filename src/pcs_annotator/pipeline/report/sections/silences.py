"""Who said nothing, which rewrites did not come about, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED
from pcs_annotator.pipeline.report.bars import bar
from pcs_annotator.pipeline.report.formats import count, percent
from pcs_annotator.pipeline.report.markup import (
    Child,
    ColumnHead,
    Markup,
    figure,
    section,
    sentence,
    table,
    tag,
    user_text,
)
from pcs_annotator.pipeline.report.view import View

MOST_REASONS = 8


def silences(view: View) -> Markup:
    """Return rewrites and answers that are missing, counted."""
    tally = view.result.tally
    return section(
        "silences",
        "Silences, and why",
        figure("Rewrites", _rewrites(view)),
        figure("Answers", _answers(view)),
        _reasons("Why a rewrite is missing", _rewrite_reasons(view)),
        _reasons("Why an answer has no label", _without_relations(tally.silences, view)),
        _reasons("Questions without an answer; the next run asks them again", tally.failed),
    )


def _rewrites(view: View) -> Markup:
    if not view.rewrites:
        return sentence("Texts were shown as they are, without rewrites.", kind="note")
    ends: Counter[tuple[str, str]] = Counter()
    for one in view.rewrites:
        ends[one.relation, one.status] += one.times
    names = [name for name in view.result.votes.relations if any(relation == name for relation, _ in ends)]
    rows: list[list[Child]] = []
    for name in names:
        changed, idle, rejected = (ends[name, status] for status in ("changed", "not_applicable", "rejected"))
        total = changed + idle + rejected
        rows.append(
            [
                user_text(name),
                bar(changed / max(total, 1)),
                count(changed),
                count(idle),
                count(rejected),
                percent(changed, total),
            ]
        )
    titles = ("changed", "not applicable", "rejected", "share changed")
    return table(
        [ColumnHead("Relation"), ColumnHead("", "chart"), *(ColumnHead(title, "number") for title in titles)], rows
    )


def _answers(view: View) -> Markup:
    votes = view.result.votes
    rows: list[list[Child]] = []
    for position, name in enumerate(votes.annotators):
        codes = votes.codes[:, position]
        silent, unasked = int(np.sum(codes == ABSTAINED)), int(np.sum(codes == NOT_ASKED))
        given = codes.size - silent - unasked
        rows.append(
            [
                user_text(name),
                bar(given / max(given + silent, 1)),
                count(given),
                count(silent),
                count(unasked),
                percent(given, given + silent),
            ]
        )
    titles = ("labels", "silent", "not asked", "share answered")
    return table(
        [ColumnHead("Model"), ColumnHead("", "chart"), *(ColumnHead(title, "number") for title in titles)], rows
    )


def _rewrite_reasons(view: View) -> Counter[str]:
    missing = (one for one in view.rewrites if one.status in ("not_applicable", "rejected"))
    found: Counter[str] = Counter()
    for one in missing:
        found[f"{one.relation}: {one.reason or one.status.replace('_', ' ')}"] += one.times
    return found


def _without_relations(reasons: Mapping[str, int], view: View) -> Counter[str]:
    """Return the silences of annotators; those of relations are counted from the recorded rewrites."""
    prefixes = tuple(f"{name}: " for name in view.result.votes.relations)
    return Counter({reason: times for reason, times in reasons.items() if not reason.startswith(prefixes)})


def _reasons(title: str, reasons: Counter[str]) -> Markup | None:
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
