"""A page as one file: no network access, and only its own script may run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from pcs_annotator.showing.blocks import Block, Section, Words
from pcs_annotator.showing.markup import Markup, joined, tag
from pcs_annotator.showing.to_html import html_of, inline

STYLES = ("colours.css", "style.css", "charts.css")
SCRIPT = "explore.js"


def header(title: Words, *shown: Block, overline: Words = "") -> Markup:
    """Return the top of a page."""
    above = tag("p", inline(overline), class_="overline") if overline else None
    return tag("header", above, tag("h1", inline(title)), html_of(*shown))


def document(name: str, header: Markup, sections: Sequence[Section], styles: Sequence[str] = STYLES) -> str:
    """Return a whole page."""
    links = [tag("a", one.menu or one.title, href=f"#{one.name}") for one in sections]
    has_rows = any(one.name == "rows" for one in sections)
    skip = ("rows", "#rows") if has_rows else ("contents", f"#{sections[0].name}")
    script = [_asset(SCRIPT)] if has_rows else []  # it finds and orders rows
    body = tag(
        "body",
        tag("a", f"Skip to the {skip[0]}", href=skip[1], class_="skip"),
        tag("nav", *links, aria_label="Sections"),
        header,
        tag("main", html_of(*sections)),
        *(tag("script", one) for one in script),
    )
    return f"<!DOCTYPE html>\n{tag('html', _head(name, styles, script), body, lang='en')}\n"


def title_of(name: str) -> Markup:
    """Return the title of a page, by which it is known later."""
    return tag("title", f"{name} · perceived-confidence")


def _head(name: str, styles: Sequence[str], scripts: Sequence[Markup]) -> Markup:
    style = joined(*map(_asset, styles))
    allowed = " ".join(map(_hash, scripts)) or "'none'"
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {allowed}; base-uri 'none'; form-action 'none'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        title_of(name),
        tag("style", style),
    )


def _asset(name: str) -> Markup:
    return joined(Markup(files(__package__).joinpath(name).read_text(encoding="utf-8")))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
