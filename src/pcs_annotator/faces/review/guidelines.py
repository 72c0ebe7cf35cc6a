"""Guidelines: Markdown as HTML. Raw HTML in it is shown as text, and nothing is loaded."""

from __future__ import annotations

from markdown_it import MarkdownIt

from pcs_annotator.showing.markup import Markup


def rendered(text: str) -> Markup:
    """Return Markdown as HTML, with headings two levels further down, because the page has its own."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 2, 6)}"
        for inner in token.children or ():
            if inner.type == "link_open":
                inner.attrs |= {"target": "_blank", "rel": "noopener noreferrer"}
    return Markup(parser.renderer.render(tokens, parser.options, {}))
