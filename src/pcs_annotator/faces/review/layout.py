"""The frame of every page, `page.html`, and what is filled in: navigation, progress, and the keys of labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, repeat
from string import Template
from urllib.parse import urlencode

from markdown_it import MarkdownIt

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.showing.markup import Child, Markup, escaped, joined, sentence, tag, user_text

Commands = Sequence[tuple[str, str]]
OF_LABELS = (("Enter", "give the proposed label"),)
OF_VARIABLES = (
    ("Tab", "next variable; Shift Tab: the one before"),
    ("1 – 9", "a label of this variable, then letters"),
    ("0", "none of the labels"),
    ("-", "can’t tell"),
    ("Enter", "save all variables"),
)
OF_PASSAGES = (
    ("J K", "next passage, or the one before; arrows, too"),
    ("A X", "the passage is right, or not right"),
    ("1 – 9", "its type; of selected text: mark it"),
    ("[ ]", "its start: one word back, or forward"),
    ("{ }", "its end: one word back, or forward; Alt: one character"),
    ("Alt →", "its end, by characters; with Shift its start"),
    ("M", "mark a word, to move its ends"),
)
"""Keys and what they do, for people, on pages with one variable, several, and passages; the frame has the others."""
TAKEN = "sugnv?"
FOR_LABELS = "123456789" + "".join(letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in TAKEN)
FRAME = Template((files(__package__) / "assets" / "page.html").read_text(encoding="utf-8"))
PLACES = (("/", "Review"), ("/people", "People"))


def keys_of(labels: Sequence[str], chosen: str = "") -> dict[str, str]:
    """Return label → key: those given, in the order of the labels, else 1 to 9 and letters; empty beyond them.

    A label keeps its key however probable it is, so that fingers can learn it.
    """
    if not chosen:
        return dict(zip(labels, chain(FOR_LABELS, repeat("")), strict=False))
    keys = chosen.lower()
    usable = all(key.isprintable() and not key.isspace() and key not in TAKEN for key in keys)
    if not usable or not len(labels) == len(keys) == len({*keys}):
        order = ", ".join(labels)
        raise ConfigError(f"--keys {keys!r}: give one key for each of {order}, all different and none of {TAKEN}")
    return dict(zip(labels, keys, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A page before it is sent."""

    title: str  # its title
    main: Markup  # its content
    address: str  # where it can be had again
    place: str = "/"  # the navigation's entry for it
    message: str = ""  # what to say about it, such as "Saved"
    kind: str = ""  # the kind of message, for its colour
    status: int = 200  # the HTTP status


def link(path: str, **values: str) -> str:
    """Return an address with its query."""
    return f"{path}?{urlencode(values, errors='replace')}" if values else path


def whole_page(
    screen: Screen, name: str, reviewer: str, keys: Mapping[str, str], progress: Markup, more: Commands = ()
) -> str:
    """Return a page of the run with this name, for a reviewer, whose name is empty if it is not known yet.

    `more` are keys that it explains beside the usual ones.
    """
    texts = {"title": screen.title, "name": name, "message": screen.message, "labels": "|".join(keys)}
    commands = (*(OF_LABELS if keys else OF_VARIABLES), *more)
    parts = {
        "top": _top(name, reviewer, screen.place),
        "progress": progress,
        "main": screen.main,
        "commands": joined(*(_command(*command) for command in commands)),
        "label_keys": _label_keys(keys) if keys else "",
    }
    return FRAME.substitute({part: escaped(text) for part, text in texts.items()}, **parts)


def _top(name: str, reviewer: str, entry: str) -> Markup:
    run = tag("span", user_text(name), class_="name")
    if not reviewer:
        return tag("header", run, class_="top")
    places = [tag("a", title, href=path, aria_current="page" if path == entry else None) for path, title in PLACES]
    return tag(
        "header",
        run,
        tag("nav", *places, aria_label="Pages"),
        tag("button", tag("kbd", "G"), "Go to", type="button", data_opens="go-to", class_="plain needs-script"),
        tag("button", tag("kbd", "?"), "Keys", type="button", data_opens="keys", class_="plain needs-script"),
        tag("a", user_text(reviewer), href="/reviewer", title="Change the name", class_="who"),
        class_="top",
    )


def _command(keys: str, what: str) -> Markup:
    return tag("div", tag("dt", *(tag("kbd", key) for key in keys.split(" "))), tag("dd", what))


def _label_keys(keys: Mapping[str, str]) -> Markup:
    fields = {
        label: tag("input", maxlength="1", autocomplete="off", data_label=label, data_usual=key, class_="cap")
        for label, key in keys.items()
    }
    note = sentence("Type another key to change one; it is kept in this browser.", kind="note")
    labels = [tag("label", field, user_text(label)) for label, field in fields.items()]
    return joined(tag("h3", "Labels"), note, tag("div", *labels, class_="label-keys"))


def chip(*children: Child, kind: str = "", **attributes: str | None) -> Markup:
    """Return a short mark, such as a label; its kind gives it a colour."""
    return tag("span", *children, class_=f"chip {kind}".strip(), **attributes)


def post_form(act: str, values: Mapping[str, str], *children: Child, **attributes: str) -> Markup:
    """Return a form that sends these values, and what is filled in, to the address of an act."""
    hidden = [tag("input", type="hidden", name_=name, value=value) for name, value in values.items()]
    return tag("form", *hidden, *children, method="post", action=f"/{act}", data_act=act, **attributes)


def name_form(name: str) -> Markup:
    """Return the question for the reviewer's name."""
    field = tag("input", name_="name", value=name, required=True, maxlength="60", autocomplete="name", autofocus=True)
    start = tag("button", "Start reviewing", class_="strong")
    return tag(
        "div",
        tag("h1", "Who is reviewing?"),
        sentence("Your verdicts are stored with this name in the run folder; nothing leaves this machine."),
        tag("form", tag("label", "Your name", field), start, method="post", action="/reviewer"),
        class_="card asks",
    )


def guidelines_view(text: str) -> Markup:
    """Return guidelines in Markdown as HTML, with headings two levels further down, because the page has its own.

    Raw HTML in it is shown as text, and nothing is loaded.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 2, 6)}"
        for inner in token.children or ():
            if inner.type == "link_open":
                inner.attrs |= {"target": "_blank", "rel": "noopener noreferrer"}
    return Markup(parser.renderer.render(tokens, parser.options, {}))
