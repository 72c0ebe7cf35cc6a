"""The frame of every page: navigation, status line, progress, and the dialogs for keys and for going to a row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from urllib.parse import urlencode

from markdown_it import MarkdownIt

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.showing.markup import Child, Markup, sentence, tag, user_text

COMMANDS = (
    ("Enter", "give the proposed label"),
    ("S", "skip this row"),
    ("U", "undo your last verdict, and the one before, …"),
    ("Ctrl Z", "undo, too"),
    ("Shift ←", "back to the row before"),
    ("Shift →", "forward again"),
    ("V", "show or hide what every model answered"),
    ("N", "write a note; Enter returns to the row"),
    ("G", "go to a row by its ID"),
    ("?", "show all keys"),
    ("Esc", "close this, or leave a field"),
)
"""Keys and what they do, for people."""
OF_VARIABLES = (
    ("Tab", "next variable; Shift Tab: the one before"),
    ("1 – 9", "a label of this variable, then letters"),
    ("0", "none of the labels"),
    ("-", "can’t tell"),
    ("Enter", "save all variables"),
)
"""Keys on a page with several variables, instead of the first one above."""
TAKEN = "sugnv?"
FOR_LABELS = "123456789" + "".join(letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in TAKEN)
PLACES = (("/", "Review"), ("/people", "People"))


def keys_of(labels: Sequence[str], chosen: str = "") -> dict[str, str]:
    """Return label → key: those given, in the order of the labels, else 1 to 9 and letters; empty beyond them.

    A label keeps its key however probable it is, so that fingers can learn it.

    >>> keys_of(["yes", "no"])
    {'yes': '1', 'no': '2'}
    >>> keys_of(["yes", "no"], "YX")
    {'yes': 'y', 'no': 'x'}
    """
    if not chosen:
        return dict(zip(labels, chain(FOR_LABELS, repeat("")), strict=False))
    keys = chosen.lower()
    if len(keys) != len(labels):
        order = ", ".join(labels)
        raise ConfigError(f"--keys {keys!r} has {len(keys)} keys for {len(labels)} labels: one for each of {order}")
    if len(set(keys)) < len(keys):
        raise ConfigError(f"--keys {keys!r} has a key twice: every label needs its own")
    unusable = [key for key in keys if key in TAKEN or not key.isprintable() or key.isspace()]
    if unusable:
        raise ConfigError(f"--keys: {unusable[0]!r} is used by the page itself: choose another key for that label")
    return dict(zip(labels, keys, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFrame:
    """What is around the content of a page."""

    name: str  # the name of the run
    reviewer: str  # who is reviewing; empty if not known yet
    keys: Mapping[str, str]  # label → key
    progress: Markup  # how the review goes


def link(path: str, **values: str) -> str:
    """Return an address with its query.

    >>> link("/row", id="a b")
    '/row?id=a+b'
    """
    return f"{path}?{urlencode(values, errors='replace')}" if values else path


def whole_page(frame: PageFrame, title: str, main: Markup, entry: str = "", message: str = "") -> str:
    """Return a page; `place` is the path of the navigation's entry for it."""
    field = tag("label", "ID of the row", tag("input", name_="id", required=True, autocomplete="off"))
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#main", class_="skip"),
        _top(frame, entry),
        tag(
            "div",
            sentence(message, id="status", role="status"),
            tag("div", frame.progress, id="progress", role="region", aria_label="Progress"),
            class_="strip",
        ),
        tag("main", main, id="main", tabindex="-1"),
        _keys(frame.keys),
        _dialog("go-to", "Go to a row", tag("form", field, tag("button", "Go", class_="strong"), action="/row")),
        post_form("undo", {}, id="undo"),
        data_labels="|".join(frame.keys),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", f"{title} · {frame.name}"),
        tag("link", rel="icon", href="/assets/icon.svg"),
        tag("link", rel="stylesheet", href="/assets/review.css"),
        tag("script", src="/assets/review.js", defer=True),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _top(frame: PageFrame, entry: str) -> Markup:
    if not frame.reviewer:
        return tag("header", tag("span", user_text(frame.name), class_="name"), class_="top")
    places = [tag("a", title, href=path, aria_current="page" if path == entry else None) for path, title in PLACES]
    return tag(
        "header",
        tag("span", user_text(frame.name), class_="name"),
        tag("nav", *places, aria_label="Pages"),
        tag("button", tag("kbd", "G"), "Go to", type="button", data_opens="go-to", class_="plain needs-script"),
        tag("button", tag("kbd", "?"), "Keys", type="button", data_opens="keys", class_="plain needs-script"),
        tag("a", user_text(frame.reviewer), href="/reviewer", title="Change the name", class_="who"),
        class_="top",
    )


def _keys(keys: Mapping[str, str]) -> Markup:
    """Return the dialog that lists all keys; those of labels can be changed there."""
    commands = [
        tag("div", tag("dt", *(tag("kbd", part) for part in name.split(" "))), tag("dd", what))
        for name, what in (COMMANDS if keys else (*OF_VARIABLES, *COMMANDS[1:]))
    ]
    labels = [
        tag(
            "label",
            tag("input", maxlength="1", autocomplete="off", data_label=label, data_usual=key, class_="cap"),
            user_text(label),
        )
        for label, key in keys.items()
    ]
    single = tag(
        "label",
        tag("input", type="checkbox", id="single-keys", checked=True),
        "Single keys work (letters, digits, Enter)",
    )
    return _dialog(
        "keys",
        "Keys",
        tag("dl", *commands, class_="commands"),
        tag("h3", "Labels") if keys else None,
        sentence("Type another key to change one; it is kept in this browser.", kind="note") if keys else None,
        tag("div", *labels, class_="label-keys"),
        sentence(id="keys-problem", role="alert"),
        single,
    )


def _dialog(name: str, title: str, *children: Child) -> Markup:
    close = tag("form", tag("button", "Close", class_="plain"), method="dialog")
    head = tag("header", tag("h2", title, id=f"{name}-title"), close)
    return tag("dialog", head, *children, id=name, aria_labelledby=f"{name}-title")


def chip(*children: Child, kind: str = "", **attributes: str | None) -> Markup:
    """Return a short mark, such as a label; its kind gives it a colour."""
    return tag("span", *children, class_=f"chip {kind}".strip(), **attributes)


def post_form(act: str, values: Mapping[str, str], *children: Child, **attributes: str) -> Markup:
    """Return a form that sends these values, and what is filled in, to the address of an act."""
    hidden = [tag("input", type="hidden", name_=name, value=value) for name, value in values.items()]
    return tag("form", *hidden, *children, method="post", action=f"/{act}", data_act=act, **attributes)


def undo_button() -> Markup:
    """Return the button that takes back the last verdict; its form is in the frame."""
    return tag("button", tag("kbd", "U"), "Undo", form="undo", aria_keyshortcuts="U Control+Z")


def name_form(name: str) -> Markup:
    """Return the question for the reviewer's name."""
    field = tag(
        "label",
        "Your name",
        tag("input", name_="name", value=name, required=True, maxlength="60", autocomplete="name", autofocus=True),
    )
    return tag(
        "div",
        tag("h1", "Who is reviewing?"),
        sentence("Your verdicts are stored with this name in the run folder; nothing leaves this machine."),
        tag("form", field, tag("button", "Start reviewing", class_="strong"), method="post", action="/reviewer"),
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
