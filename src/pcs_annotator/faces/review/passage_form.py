"""Passages and values of a text for a person: what models found, to accept, correct or reject, and what they missed."""

import json
from collections.abc import Iterator, Mapping, Sequence

from pcs_annotator.base.text import series
from pcs_annotator.core.passages import EVEN, NONE, VALUE, Extraction, Passage
from pcs_annotator.reviewing.book_review import ANOTHER, TYPED
from pcs_annotator.reviewing.values import Candidate, ShownVariable
from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.showing.diff import clipped
from pcs_annotator.showing.formats import number
from pcs_annotator.showing.highlights import Marked, strength
from pcs_annotator.showing.markup import Markup, printable, sentence, tag, user_text
from pcs_annotator.showing.to_html import bar

RIGHT = {"accept": True, "reject": False}
HOW = "Select text to mark what is missing; drag the ends of a mark to move them."
NEEDS_SCRIPT = "Marking needs the script of this page."
STEPS = (
    ("start", "-1", "[←", "[", "Start one word back"),
    ("start", "1", "[→", "]", "Start one word forward"),
    ("end", "-1", "←]", "{", "End one word back"),
    ("end", "1", "→]", "}", "End one word forward"),
)

LONGEST_SAID = 60  # characters of a passage in a line with what somebody said


def quoted_field(variable: ShownVariable, text: str, reviewer: str) -> Iterator[Markup]:
    """Yield what asks about a variable that is quoted from a text, with the person's own verdict, if there is one."""
    extraction, candidates = variable.task.extraction, next(iter(variable.parts.values())).candidates
    assert extraction is not None
    mine = next(iter(variable.said.get(reviewer, ())), None)
    if not extraction.is_value:
        marked = _marked(candidates, None if mine is None else passages_in(mine))
        yield from passage_field(variable.name, text, extraction, marked)
        return
    ranked = sorted(candidates, key=lambda each: -(each.confidence or 0))
    chosen = next(iter(variable.proposed or ()), None) if mine is None else mine
    yield from value_field(variable.name, text, [Marked(*each[:2]) for each in ranked], chosen)


def _marked(candidates: Sequence[Candidate], mine: Sequence[Passage] | None) -> list[Marked]:
    """Return candidates as a person decided about them, with what they added; else as the models are sure of them."""
    if mine is None:
        sure = [each.decision in ("accept", "agree") and (each.confidence or EVEN) >= EVEN for each in candidates]
        decided = zip(candidates, sure, strict=True)
        return [Marked(*each[:2], "accept" if right else None) for each, right in decided]
    marked = [Marked(*each[:2], "accept" if each.passage in mine else "reject") for each in candidates]
    there = {each.passage for each in candidates}
    return marked + [Marked(passage, None, "accept") for passage in mine if passage not in there]


def passages_in(label: str) -> list[Passage]:
    """Return the passages in a verdict."""
    return [Passage(row["start"], row["end"], row["type"]) for row in json.loads(label)]


def in_words(label: str, text: str, task: TaskSettings) -> str:
    """Return a label as a person can read it: passages as quotations."""
    if task.kind != "passages":
        return label
    passages = passages_in(label)
    return series(
        [f"“{clipped(text[start:end], LONGEST_SAID)}” ({type_})" for start, end, type_, _ in passages] or [NONE]
    )


def passage_field(name: str, text: str, extraction: Extraction, marked: Sequence[Marked]) -> Iterator[Markup]:
    """Yield what marks the passages of a text, which the script fills; the field of this name sends them.

    Who judges blind is given no confidence and no decision. Without the script, nothing is sent: the text is skipped.
    """
    types = extraction.types
    yield tag("noscript", sentence(NEEDS_SCRIPT, kind="problem"))
    yield tag(
        "div",
        tag("input", type="hidden", name_=name, value=""),
        _panel(types),
        tag("ol", class_="found", aria_label="Passages"),
        tag(
            "div", _aside("none", "0", "no passage in this text"), _aside("unsure", "-", "can’t tell"), class_="options"
        ),
        sentence(HOW, " ", tag("span", tag("kbd", "M"), " marks a word."), kind="note how"),
        sentence(kind="note summary", aria_live="polite"),
        _adding(types),
        data_marking=_data(text, types, sorted(marked, key=lambda each: each.passage)),
        class_="marking needs-script",
    )


def value_field(name: str, text: str, marked: Sequence[Marked], chosen: str | None) -> Iterator[Markup]:
    """Yield a choice of the values found in a text, none, and a field for another one."""
    values = dict[str, Marked]()
    for each in marked:
        values.setdefault(each.passage.value, each)
    numbered = enumerate(values.values(), 1)
    options = [_value(name, each, str(key), checked=each.passage.value == chosen) for key, each in numbered]
    typed = chosen if chosen and chosen not in values and chosen != NONE else None
    field = {"type": "text", "value": typed, "name_": f"{name}={TYPED}", "autocomplete": "off", "placeholder": ANOTHER}
    options += [
        _choice(name, ANOTHER, "", tag("input", **field, aria_label=ANOTHER), checked=typed is not None),
        _choice(name, NONE, "0", "none in the text", checked=chosen == NONE, aside=True),
        _choice(name, "", "-", "can’t tell", aside=True),
    ]
    data = _data(text, (VALUE,), marked)
    yield tag("div", *options, class_="options values", data_marking=data)


def _data(text: str, types: Sequence[str], marked: Sequence[Marked]) -> str:
    """Return text and passages as JSON: positions count whole characters, and HTML would change line breaks."""
    passages = [
        {
            "start": passage.start,
            "end": passage.end,
            "type": passage.type,
            "value": passage.value,
            "right": RIGHT.get(decision or ""),
            "strength": strength(confidence),
            "sure": "" if confidence is None else number(confidence),
        }
        for passage, confidence, decision in marked
    ]
    return json.dumps({"text": printable(text), "types": types, "passages": passages})


def _panel(types: Sequence[str]) -> Markup:
    """Return what is done with the passage in hand."""
    options = [tag("option", f"{at} {type_}" if at < 10 else type_, value=type_) for at, type_ in enumerate(types, 1)]
    kinds = tag("select", *options, aria_label="Type", data_type="") if len(types) > 1 else None
    steps = [
        tag("button", arrow, type="button", data_side=side, data_by=by, aria_label=what, title=f"{what} ({key})")
        for side, by, arrow, key, what in STEPS
    ]
    return tag(
        "div",
        tag("div", _act("before", "‹", "K", "Passage before"), tag("p"), _act("after", "›", "J", "Next passage")),
        tag("div", _act("right", "✓ Right", "A"), _act("wrong", "✗ Not right", "X"), kinds, tag("span", *steps)),
        role="group",
        aria_label="Passage in hand",
        hidden=True,
        class_="in-hand",
    )


def _act(act: str, words: str, key: str, name: str | None = None) -> Markup:
    cap = tag("kbd", key)
    pressed = "false" if act in ("right", "wrong") else None
    shown = {"data_do": act, "aria_label": name, "aria_keyshortcuts": key, "aria_pressed": pressed}
    return tag("button", cap, words, type="button", class_=act, **shown)


def _aside(act: str, key: str, words: str) -> Markup:
    shown = {"data_do": act, "aria_keyshortcuts": key, "aria_pressed": "false"}
    return tag("button", tag("kbd", key), words, type="button", class_="option aside", **shown)


def _adding(types: Sequence[str]) -> Markup:
    """Return the types for a selected part of the text."""
    buttons = [
        tag("button", tag("kbd", str(at), hidden=at > 9), user_text(type_), type="button", data_add=type_)
        for at, type_ in enumerate(types, 1)
    ]
    return tag("div", "Mark as", *buttons, role="group", aria_label="Mark as", hidden=True, class_="adding")


def _value(name: str, marked: Marked, key: str, *, checked: bool) -> Markup:
    value, confidence = marked.passage.value, marked.confidence
    share = None if confidence is None else tag("span", number(confidence), class_="number")
    drawn = None if confidence is None else bar(confidence, kind="bar soft")
    return _choice(name, value, key if len(key) == 1 else "", user_text(value), share, drawn, checked=checked)


def _choice(
    name: str, value: str, key: str, *shown: Markup | str | None, checked: bool = False, aside: bool = False
) -> Markup:
    field: Mapping[str, str] = {"type": "radio", "name_": name, "value": value, "data_key": key}
    box = tag("input", checked=checked, required=not aside, **field)
    cap = tag("kbd", key, hidden=not key)
    return tag("label", box, cap, *shown, class_="option aside" if aside else "option")
