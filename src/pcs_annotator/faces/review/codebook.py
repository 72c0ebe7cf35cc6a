"""The review page of a codebook: one text with a form for all its variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pcs_annotator.base.text import series
from pcs_annotator.core.review import Verdict
from pcs_annotator.faces.review.app import Fields, Pages, Screen
from pcs_annotator.faces.review.forms import Visit
from pcs_annotator.faces.review.item import DECIDED, Eyes, beside_view, buttons_view, text_view, verdict_form
from pcs_annotator.faces.review.layout import chip, keys_of
from pcs_annotator.faces.review.progress import reviewers_view
from pcs_annotator.faces.review.rows import Choices
from pcs_annotator.runs.review.jointly import CodebookReview, answers_of
from pcs_annotator.runs.review.values import Given, Query, Shown, ShownVariable
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import number
from pcs_annotator.showing.markup import Markup, section, tag, user_text
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

    def _views(self, shown: Shown, visit: Visit) -> tuple[Markup, Markup | None]:
        return form_view(shown, Eyes(visit.reviewer, {}, visit.queue)), beside_view(shown)

    def _choices(self, query: Query, visit: Visit) -> Choices:
        people = sorted(self._review.progress(visit.reviewer).reviewers)
        return Choices(self._review.review_of(query).labels, self._review.columns, people, [*self._review.reviews])

    def _list(self, visit: Visit, query: Query, **said: Any) -> Screen:
        return super()._list(visit, replace(query, variable=query.variable or next(iter(self._review.reviews))), **said)

    def _save(self, given: Given, form: Fields) -> str:
        asked = form.get("asked", "").split("|")
        labels: dict[str, str | None] = dict.fromkeys(self._review.reviews)
        if not form.get("skip"):
            variables = {name: task for name, task in self._review.variables.items() if name in asked}
            labels = dict(pair for name, task in variables.items() for pair in answers_of(name, task, form))
        saved = self._review.submit(given, labels)
        return f"Skipped · row {given.id}" if form.get("skip") else _saved(saved, given.id)

    def _people(self, visit: Visit, _: Fields) -> Screen:
        found = {name: (one.agreement(), int(one.state.conflict.sum())) for name, one in self._review.reviews.items()}
        columns = [b.Column("variable"), *b.numbers("rows with two verdicts", "α", "conflicts")]
        rows: list[b.Row] = [[b.name(name), one.rows, one.alpha, conflicts] for name, (one, conflicts) in found.items()]
        main = tag(
            "div",
            tag("h1", "People"),
            section("agreement", "Agreement", html(b.Table(columns=columns, rows=rows))),
            reviewers_view(self._review.progress(visit.reviewer)),
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


def form_view(shown: Shown, eyes: Eyes) -> Markup:
    """Return a text, and a form with all its variables."""
    asked = [one for one in shown.variables if one.asked]
    save = tag("button", tag("kbd", "↵"), "Save", id="save", class_="strong", aria_keyshortcuts="Enter")
    form = verdict_form(
        shown,
        eyes,
        tag("input", type="hidden", name_="asked", value="|".join(one.name for one in asked)),
        *(_variable(one, eyes.reviewer) for one in asked),
        *(_known(one) for one in shown.variables if not one.asked),
        tag("div", save, *buttons_view(None), class_="beside"),
        aria_label="Verdicts",
        class_="verdicts",
    )
    return tag("div", text_view(shown, eyes), form, class_="card both")


def _known(one: ShownVariable) -> Markup:
    said = tag("span", "has a gold label or a verdict already", class_="quiet")
    return tag("p", tag("b", user_text(one.name)), " ", said, class_="known")


def _variable(one: ShownVariable, reviewer: str) -> Markup:
    """Return one variable: its name, what is asked, and its labels, with those that the models or the person gave."""
    task, mine = one.task, one.said.get(reviewer)
    chosen = mine if mine is not None else one.proposed
    others = [
        tag("li", user_text(name), ": ", tag("b", user_text(", ".join(labels) or NONE)))
        for name, labels in one.said.items()
        if name != reviewer
    ]
    legend = tag(
        "legend",
        tag("b", user_text(one.name)),
        tag("span", user_text(task.instruction), class_="quiet"),
        chip(DECIDED[one.decision], kind=one.decision) if one.decision else None,
        chip("your verdict", kind="good") if mine is not None else None,
    )
    searched = task.kind == "tree" or len(task.labels) > MOST_WITHOUT_SEARCH
    search = tag(
        "input", type="search", placeholder="Search labels", aria_label=f"Search labels of {one.name}", data_filter=""
    )
    kind = f"options {task.kind}{' long' if searched else ''}"
    return tag(
        "fieldset",
        legend,
        search if searched else None,
        tag("div", *_options(one, chosen), class_=kind),
        tag("ul", *others, class_="said") if others else None,
        data_variable=one.name,
        tabindex="-1",
        class_="variable",
    )


def _options(one: ShownVariable, chosen: Sequence[str] | None) -> Iterator[Markup]:
    task, many = one.task, one.task.kind == "many"
    above = ""
    for label, key in keys_of(task.labels).items():
        parent, _, leaf = label.rpartition(STEP) if task.kind == "tree" else ("", "", label)
        if parent != above:
            yield tag("p", user_text(parent.replace(STEP, " › ")), class_="quiet parent")
            above = parent
        field = {"type": "radio", "name_": one.name, "value": label}
        if many:
            field = {"type": "checkbox", "name_": f"{one.name}={label}", "value": "yes"}
        marks = {"proposed": label in (one.proposed or ()), "checked": label in (chosen or ())}
        yield _option(leaf.strip(), key, field, one.probabilities.get(label), marks)
    other = {"type": "radio", "name_": one.name}
    if many:
        yield _option("none", "0", {**other, "value": NONE}, None, {"checked": chosen == [], "aside": True})
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
