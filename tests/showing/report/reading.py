"""Parses a page: checks that its tags are balanced, and separates text from attributes."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "input", "br", "col", "rect", "line"}


class Page(HTMLParser):
    """A parsed page; tags that do not close in order fail an assertion."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
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


def section(html: str, name: str) -> str:
    """Return the text of one section of a page."""
    start = html.index(f'<section id="{name}"')
    return Page(html[start : html.index("</section>", start) + len("</section>")]).text


def listed(html: str) -> list[dict[str, Any]]:
    """Return the rows that the script of a page lists."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert found is not None
    rows: list[dict[str, Any]] = json.loads(found[1])["rows"]
    return rows
