"""A text with several variables for a person: a form with all of them."""

from collections.abc import Iterator, Mapping, Sequence

from pcs_annotator.faces.review.forms import Visit
from pcs_annotator.faces.review.item import (
    DECIDED,
    answers_fold,
    buttons_view,
    number_field,
    said_view,
    text_view,
    verdict_form,
    votes_table,
)
from pcs_annotator.faces.review.layout import chip, keys_of
from pcs_annotator.faces.review.passage_form import in_words, quoted_field
from pcs_annotator.reviewing.book_review import BookReview, answers_of
from pcs_annotator.reviewing.values import Given, Shown, ShownVariable
from pcs_annotator.showing.formats import number
from pcs_annotator.showing.markup import Markup, joined, tag, user_text
from pcs_annotator.showing.to_html import bar

STEP = "/"  # between the levels of a tree's label
MOST_WITHOUT_SEARCH = 12  # labels that can be taken in without a box to search them
NONE, CANNOT_TELL = "none", ""


def labels_in(form: Mapping[str, str], review: BookReview, verdict: Given) -> dict[str, str | None]:
    """Return part → label in a form; skipping a text skips all its variables."""
    if "" in review.reviews or form.get("skip"):
        return dict.fromkeys(review.reviews, verdict.label)
    asked = form.get("asked", "").split("|")
    variables = {name: task for name, task in review.variables.items() if name in asked}
    return dict(pair for name, task in variables.items() for pair in answers_of(name, task, form))


def form_view(shown: Shown, visit: Visit) -> Markup:
    """Return a text, and a form with all its variables."""
    asked = [variable for variable in shown.variables if variable.asked]
    decided = tag("span", "has a gold label or a verdict already", class_="quiet")
    save = tag("button", tag("kbd", "↵"), "Save", id="save", class_="strong", aria_keyshortcuts="Enter")
    form = verdict_form(
        shown,
        visit,
        tag("input", type="hidden", name_="asked", value="|".join(variable.name for variable in asked)),
        *(_variable(variable, shown.text, visit.reviewer) for variable in asked),
        *(
            tag("p", tag("b", user_text(variable.name)), " ", decided, class_="known")
            for variable in shown.variables
            if not variable.asked
        ),
        tag("div", save, *buttons_view(None), class_="beside"),
        aria_label="Verdicts",
        class_="verdicts",
    )
    card = tag("div", text_view(shown, visit), form, class_="card both")
    return joined(card, answers_fold(shown, *_votes(shown.variables))) if shown.outcome else card


def _votes(variables: Sequence[ShownVariable]) -> Iterator[Markup]:
    """Yield the votes on every variable, or every label of it; their texts are among prompts and replies."""
    for part, shown in ((part, shown) for variable in variables for part, shown in variable.parts.items()):
        if shown.outcome:
            yield joined(tag("h3", user_text(part)), votes_table(shown, shown.outcome.label, part, texts=False))


def _variable(variable: ShownVariable, text: str, reviewer: str) -> Markup:
    """Return one variable: its name, what is asked, and its labels, with those that the models or the person gave."""
    task, mine = variable.task, variable.said.get(reviewer)
    chosen = mine if mine is not None else variable.proposed
    verdicts = {name: [in_words(each, text, task) for each in labels] for name, labels in variable.said.items()}
    others = [said_view(name, ", ".join(words) or NONE) for name, words in verdicts.items() if name != reviewer]
    legend = tag(
        "legend",
        tag("b", user_text(variable.name)),
        tag("span", user_text(task.instruction), class_="quiet"),
        chip(DECIDED[variable.decision], kind=variable.decision) if variable.decision else None,
        tag("span", variable.reason, dir="auto", class_="reason") if variable.reason else None,
        chip("your verdict", kind="good") if mine is not None else None,
    )
    listed = task.kind != "number" and not task.extraction
    searched = task.kind == "tree" or (len(task.labels) > MOST_WITHOUT_SEARCH and listed)
    words = {"placeholder": "Search labels", "aria_label": f"Search labels of {variable.name}"}
    search = tag("input", type="search", data_filter="", **words)
    kind = f"options {task.kind}{' long' if searched else ''}"
    options = [tag("div", *_options(variable, chosen), class_=kind)] if not task.extraction else ()
    return tag(
        "fieldset",
        legend,
        search if searched else None,
        *(options or quoted_field(variable, text, reviewer)),
        tag("ul", *others, class_="said") if others else None,
        data_variable=variable.name,
        tabindex="-1",
        class_="variable",
    )


def _options(variable: ShownVariable, chosen: Sequence[str] | None) -> Iterator[Markup]:
    task, many = variable.task, variable.task.kind == "many"
    if task.kind == "number":  # an empty field is for one that cannot be told
        yield number_field(variable.name, task.labels, next(iter(chosen or ()), None))
        return
    above = ""
    for label, key in keys_of(task.labels).items():
        parent, _, leaf = label.rpartition(STEP) if task.kind == "tree" else ("", "", label)
        if parent != above:
            yield tag("p", user_text(parent.replace(STEP, " › ")), class_="quiet parent")
            above = parent
        field = {"type": "radio", "name_": variable.name, "value": label}
        if many:
            field = {"type": "checkbox", "name_": f"{variable.name}={label}", "value": "yes"}
        marks = {"proposed": label in (variable.proposed or ()), "checked": label in (chosen or ())}
        yield _option(leaf.strip(), key, field, variable.probabilities.get(label), marks)
    other = {"type": "radio", "name_": variable.name}
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
