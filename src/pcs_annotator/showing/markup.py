"""HTML that is safe by construction: everything except `Markup` is escaped."""

import re
from functools import lru_cache
from html import escape

VOID = frozenset({"br", "col", "input", "line", "link", "meta", "rect"})
# A browser replaces or drops these, and a lone surrogate cannot be written at all.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Most parts of a page have none of these, and a page has hundreds of thousands of parts.
_NEEDS_WORK = re.compile(rf"[&<>\"'{_UNPRINTABLE.pattern[1:]}")


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


Child = str | None  # plain text, which is escaped, or `Markup`, which is not; None is omitted


def escaped(text: str) -> Markup:
    """Return text escaped for HTML; `Markup` is returned unchanged."""
    if type(text) is Markup:
        return text
    return Markup(escape(printable(text)) if _NEEDS_WORK.search(text) else text)


def printable(text: str) -> str:
    """Return text with a replacement for every character that a page cannot have."""
    return _UNPRINTABLE.sub("\ufffd", text)


def joined(*children: Child) -> Markup:
    """Return the children, escaped and concatenated."""
    parts = [child if type(child) is Markup else escaped(child) for child in children if child is not None]
    return Markup("".join(parts))


def tag(name: str, /, *children: Child, **attributes: str | bool | None) -> Markup:
    """Return an element; `class_` becomes class, `data_x` becomes data-x, None and False omit the attribute."""
    opening = _opening(name, *attributes.items())
    return Markup(opening) if name in VOID else Markup(f"{opening}{joined(*children)}</{name}>")


@lru_cache(maxsize=4096)
def _opening(name: str, *attributes: tuple[str, str | bool | None]) -> str:
    written = "".join([_attribute(key, value) for key, value in attributes if value not in (None, False)])
    return f"<{name}{written}/>" if name in ("line", "rect") else f"<{name}{written}>"


def _attribute(key: str, value: str | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escaped(str(value))}"'


def user_text(text: str) -> Markup:
    """Return text from a user or a model, which sets its own writing direction."""
    return tag("bdi", text, dir="auto")


def section(name: str, title: str, *children: Child) -> Markup:
    """Return a section of the page with its heading."""
    return tag("section", tag("h2", title, id=f"{name}-title"), *children, id=name, aria_labelledby=f"{name}-title")


def sentence(*children: Child, kind: str | None = None, **attributes: str | bool | None) -> Markup:
    """Return a paragraph."""
    return tag("p", *children, class_=kind, **attributes)
