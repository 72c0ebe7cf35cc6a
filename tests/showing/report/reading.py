"""Parses a page: checks that its tags are balanced, and separates text from attributes."""

import json
import re
from functools import lru_cache
from html import unescape
from typing import Any

from tests.builders import the

VOID = {"meta", "input", "br", "col", "rect", "line"}
NAME = r"[a-zA-Z][-:a-zA-Z0-9]*"
# What is between the tags of a script or a style is neither text nor elements.
PART = re.compile(
    r"<!DOCTYPE html>"
    r"|<(?P<raw>script|style)(?P<settings>[^<>]*)>.*?</(?P=raw)>"
    rf"|</(?P<closed>{NAME})>"
    rf'|<(?P<opened>{NAME})(?P<attributes>(?:\s+{NAME}(?:="[^"]*")?)*)\s*(?P<empty>/?)>'
    r"|(?P<text>[^<]+)",
    re.S,
)
ATTRIBUTE = re.compile(rf'({NAME})(?:="([^"]*)")?')


class Page:
    """A parsed page; tags that do not close in order, and whatever our pages never contain, fail an assertion.

    It reads only HTML as `markup.py` writes it, many times faster than `html.parser`.
    """

    def __init__(self, html: str) -> None:
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        place = 0
        for part in PART.finditer(html):
            assert part.start() == place, f"not HTML as we write it: {html[place : place + 80]!r}"
            place = part.end()
            self._read(part)
        assert place == len(html), f"not HTML as we write it: {html[place : place + 80]!r}"
        assert not self.open, f"never closed: {self.open}"

    def _read(self, part: re.Match[str]) -> None:
        kind = part.lastgroup
        if kind == "text":
            self.handle_data(unescape(part["text"]))
        elif kind == "closed":
            assert self.open, f"</{part['closed']}> closes nothing"
            assert self.open.pop() == part["closed"]
        elif kind == "settings":
            self.tags.append((part["raw"], _attributes(part["settings"])))
        elif kind == "empty":
            self.tags.append((part["opened"], _attributes(part["attributes"])))
            if not part["empty"] and part["opened"] not in VOID:
                self.open.append(part["opened"])

    def handle_data(self, data: str) -> None:
        """Note text outside of tags."""
        self.words.append(data)

    @property
    def text(self) -> str:
        """All visible text, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of every element with this tag."""
        return [attributes for name, attributes in self.tags if name == tag]

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        """Return the attributes of every element with this class."""
        return [attributes for _, attributes in self.tags if name in (attributes.get("class") or "").split()]


@lru_cache(maxsize=10_000)
def _attributes(written: str) -> dict[str, str | None]:
    found = [(one[1].lower(), None if one[2] is None else unescape(one[2])) for one in ATTRIBUTE.finditer(written)]
    assert len(dict(found)) == len(found), f"an attribute is there twice: {written}"
    return dict(found)


def section(html: str, name: str) -> str:
    """Return the text of one section of a page."""
    start = html.index(f'<section id="{name}"')
    return Page(html[start : html.index("</section>", start) + len("</section>")]).text


def listed(html: str) -> list[dict[str, Any]]:
    """Return the rows that the script of a page lists."""
    found = the(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S))
    rows: list[dict[str, Any]] = json.loads(found[1])["rows"]
    return rows
