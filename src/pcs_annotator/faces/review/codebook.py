"""The review page of a codebook: one text with a form for all its variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pcs_annotator.base.errors import ChangedMeanwhile, LeaseExpired
from pcs_annotator.base.text import series
from pcs_annotator.core.review import Verdict
from pcs_annotator.faces.review.app import Fields, Pages, Screen
from pcs_annotator.faces.review.forms import Visit, verdict_of
from pcs_annotator.faces.review.item import BLIND, DECIDED, Eyes, beside_view, buttons_view, head_view, readable
from pcs_annotator.faces.review.layout import chip, keys_of, post_form
from pcs_annotator.faces.review.rows import Choices
from pcs_annotator.runs.review.jointly import CodebookReview, GivenText, ShownText, ShownVariable, answers_of
from pcs_annotator.runs.review.values import Query
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import number
from pcs_annotator.showing.markup import Markup, section, sentence, tag, user_text
from pcs_annotator.showing.to_html import bar, html

STEP = "/"
"""Between the levels of a tree's label."""
MOST_WITHOUT_SEARCH = 12
"""Labels that can be taken in without a box to search them."""
NONE, CANNOT_TELL = "none", ""


class CodebookPages(Pages):
    """All pages of the review of a codebook."""

    _review: CodebookReview  # type: ignore[assignment]  # what the pages of one variable call, it has, too

    def __init__(self, review: CodebookReview, name: str, reviewer: str = "") -> None:
        super().__init__(review, name, {}, reviewer)  # type: ignore[arg-type]  # see above

    def _views(self, shown: ShownText, visit: Visit) -> tuple[Markup, Markup | None]:  # type: ignore[override]
        return text_view(shown, Eyes(visit.reviewer, {}, visit.queue)), beside_view(shown.row)

    def _choices(self, query: Query, visit: Visit) -> Choices:
        people = sorted(self._review.progress(visit.reviewer).reviewers)
        return Choices(self._review.review_of(query).labels, self._review.columns, people, [*self._review.reviews])

    def _list(self, visit: Visit, query: Query, **said: Any) -> Screen:
        return super()._list(visit, replace(query, variable=query.variable or next(iter(self._review.reviews))), **said)

    def _verdict(self, visit: Visit, form: Fields) -> Screen:
        common = verdict_of({**form, "version": "0"}, visit.reviewer)
        if form.get("skip"):
            labels: dict[str, str | None] = dict.fromkeys(self._review.reviews)
        else:
            asked = form.get("asked", "").split("|")
            variables = {name: task for name, task in self._review.variables.items() if name in asked}
            labels = dict(pair for name, task in variables.items() for pair in answers_of(name, task, form))
        given = GivenText(labels=labels, common=common, lease=form.get("lease", ""), version=form.get("version", ""))
        try:
            saved = self._review.submit(given)
        except LeaseExpired as error:
            return self._next(visit, message=str(error), kind="problem", status=409)
        except ChangedMeanwhile as error:
            fresh = self._review.show(common.id, visit.reviewer, common.queue)
            return self._item(fresh, visit, message=str(error), kind="problem", status=409)  # type: ignore[arg-type]
        message = f"Skipped · row {common.id}" if form.get("skip") else _saved(saved, common.id)
        return self._next(visit, message=message, kind="saved")

    def _people(self, visit: Visit, _: Fields) -> Screen:
        reviews = self._review.reviews
        found = {name: one.agreement() for name, one in reviews.items()}
        conflicts = {name: int(one.state.conflict.sum()) for name, one in reviews.items()}
        rows: list[b.Row] = [[b.name(name), one.rows, one.alpha, conflicts[name]] for name, one in found.items()]
        table = b.Table(
            columns=[b.Column("variable"), *b.numbers("rows with two verdicts", "α", "conflicts")], rows=rows
        )
        who = self._review.progress(visit.reviewer).reviewers
        people = b.Table(
            columns=[b.Column("reviewer"), *b.numbers("rows")], rows=[[b.name(n), k] for n, k in who.items()]
        )
        main = tag(
            "div",
            tag("h1", "People"),
            section("agreement", "Agreement", html(table)),
            section("reviewers", "Reviewers", html(people) if who else sentence("Nobody has reviewed a row yet.")),
            class_="people",
        )
        return Screen(title="People", main=main, address="/people", place="/people")


def _saved(saved: Mapping[str, Verdict], id: str) -> str:
    """Return what was saved and, where that was hidden until now, on which variables models say something else."""
    said, blind = f"Saved · row {id}", {part: one for part, one in saved.items() if one.blind and one.label}
    if not blind:
        return said
    other = [f"{part} ({one.proposed or 'no label'})" for part, one in blind.items() if one.label != one.proposed]
    return f"{said} · models differ on {series(other)}" if other else f"{said} · models say the same"


def text_view(shown: ShownText, eyes: Eyes) -> Markup:
    """Return a text, and a form with all its variables."""
    row, blind = shown.row, shown.row.outcome is None
    article = tag(
        "article",
        head_view(row, eyes),
        tag("div", readable(row.text), class_="text", id="text", dir="auto", tabindex="0", lang=""),
        sentence(BLIND, kind="why quiet") if blind else None,
        id="item",
        tabindex="-1",
        aria_labelledby="item-title",
        aria_describedby="text",
    )
    asked = [one for one in shown.variables if one.asked]
    carried = {
        "id": row.id,
        "lease": shown.lease,
        "version": shown.version,
        "shown_by": row.queue,
        "queue": eyes.working,
        "asked": "|".join(one.name for one in asked),
    }
    save = tag("button", tag("kbd", "↵"), "Save", id="save", class_="strong", aria_keyshortcuts="Enter")
    form = post_form(
        "verdict",
        carried,
        *(_variable(one, eyes.reviewer) for one in asked),
        *(_known(one) for one in shown.variables if not one.asked),
        tag("div", save, *buttons_view(None), class_="beside"),
        aria_label="Verdicts",
        class_="verdicts",
    )
    return tag("div", article, form, class_="card both")


def _known(one: ShownVariable) -> Markup:
    said = tag("span", "has a gold label or a verdict already", class_="quiet")
    return tag("p", tag("b", user_text(one.name)), " ", said, class_="known")


def _variable(one: ShownVariable, reviewer: str) -> Markup:
    """Return one variable: its name, what is asked, and its labels, with those that the models or the person gave."""
    task = one.task
    mine, proposed = one.given_by(reviewer), one.proposed()
    blind = all(shown.outcome is None for shown in one.parts.values())
    chosen = mine if mine is not None else proposed
    decisions = {shown.outcome.decision for shown in one.parts.values() if shown.outcome and shown.outcome.decision}
    decision = "review" if "review" in decisions else next(iter(decisions), None)
    legend = tag(
        "legend",
        tag("b", user_text(one.name)),
        tag("span", user_text(task.instruction), class_="quiet"),
        chip(DECIDED[decision], kind=decision) if decision else None,
        chip("your verdict", kind="good") if mine is not None else None,
    )
    searched = task.kind == "tree" or len(task.labels) > MOST_WITHOUT_SEARCH
    search = tag(
        "input", type="search", placeholder="Search labels", aria_label=f"Search labels of {one.name}", data_filter=""
    )
    none = not chosen and (mine is not None or not blind)
    kind = f"options {task.kind}{' long' if searched else ''}"
    return tag(
        "fieldset",
        legend,
        search if searched else None,
        tag("div", *_options(one, chosen, proposed, none=none), class_=kind),
        _others(one, reviewer),
        data_variable=one.name,
        tabindex="-1",
        class_="variable",
    )


def _options(one: ShownVariable, chosen: set[str], proposed: set[str], *, none: bool) -> Iterator[Markup]:
    task, many = one.task, one.task.kind == "many"
    shares = _shares(one)
    above = ""
    for label, key in keys_of(task.labels).items():
        parent, _, leaf = label.rpartition(STEP) if task.kind == "tree" else ("", "", label)
        if parent != above:
            yield tag("p", user_text(parent.replace(STEP, " › ")), class_="quiet parent")
            above = parent
        field = {"type": "radio", "name_": one.name, "value": label}
        if many:
            field = {"type": "checkbox", "name_": f"{one.name}={label}", "value": "yes"}
        marks = {"proposed": label in proposed, "checked": label in chosen}
        yield _option(leaf.strip(), key, field, shares.get(label), marks)
    other = {"type": "radio", "name_": one.name}
    if many:
        yield _option("none", "0", {**other, "value": NONE}, None, {"checked": none, "aside": True})
    yield _option("can’t tell", "-", {**other, "value": CANNOT_TELL}, None, {"aside": True})


def _option(shown: str, key: str, field: Mapping[str, str], share: float | None, marks: Mapping[str, bool]) -> Markup:
    """Return a label to choose; its marks say whether it is proposed, chosen, or beside the labels."""
    proposed, aside = marks.get("proposed", False), marks.get("aside", False)
    required = field["type"] == "radio" and not aside
    box = tag("input", checked=marks.get("checked", False), data_key=key, required=required, **field)
    return tag(
        "label",
        box,
        tag("kbd", key.upper(), hidden=not key),
        user_text(shown),
        None if share is None else tag("span", number(share), class_="number"),
        None if share is None else bar(share, kind="bar" if proposed else "bar soft"),
        data_proposed=proposed,
        class_="option aside" if aside else "option",
    )


def _shares(one: ShownVariable) -> dict[str, float]:
    """Return how probable every label is; none if that is hidden."""
    if one.task.kind != "many":
        return {**next(iter(one.parts.values())).probabilities}
    return {label: shown.probabilities["yes"] for label, shown in one.parts.items() if "yes" in shown.probabilities}


def _others(one: ShownVariable, reviewer: str) -> Markup | None:
    """Return what others said about a variable, as far as this person may know it."""
    said: dict[str, list[str]] = {}
    for label, shown in one.parts.items():
        for name, verdict in shown.reviewed.by_reviewer.items() if shown.reviewed else ():
            if name != reviewer and verdict.label not in (None, "no" if label else None):
                said.setdefault(name, []).append(label or verdict.label or "")
    lines = [tag("li", user_text(name), ": ", tag("b", user_text(", ".join(labels)))) for name, labels in said.items()]
    return tag("ul", *lines, class_="said") if lines else None
