"""Passages marked in a text, as HTML."""

import re
from html import unescape

from pcs_annotator.core.passages import Passage
from pcs_annotator.showing.highlights import Marked, highlighted

TEXT = "Tar 🚬 <b>damages</b> lungs & hearts."


def plain(html: str) -> str:
    """Return what a page shows of the text itself."""
    return unescape(re.sub("<[^>]*>", "", html.split('<p class="note', maxsplit=1)[0]))


def test_the_text_stays_as_it_is_and_positions_count_characters() -> None:
    html = highlighted(TEXT, [Marked(Passage(4, 5, "sign"), 0.9, "accept")])
    assert plain(html) == TEXT
    assert '<mark class="passage t1 s4 accept" title="sign, confidence 0.90, accepted">🚬</mark>' in html


def test_of_overlapping_passages_the_shortest_gives_the_colour_and_all_are_named() -> None:
    html = highlighted(
        TEXT, [Marked(Passage(0, 20, "claim"), 0.5, "review"), Marked(Passage(9, 30, 'a "type"'), None, "reject")]
    )
    assert plain(html) == TEXT
    review, reject = "claim, confidence 0.50, to review", "a &quot;type&quot;, not right"
    marks = re.findall(r'<mark class="([^"]*)"(?: data-sign="(\d)")? title="([^"]*)">([^<]*)', html)
    assert marks == [
        ("passage t1 s3 review", "1", review, "Tar 🚬 &lt;b&gt;"),
        ("passage t1 s3 review over", "2", f"{review}; {reject}", "damages&lt;/b&gt;"),
        ("passage t2 s2 reject", "", reject, " lungs &amp; h"),
    ]


def test_numbers_of_types_are_those_of_the_legend_and_one_type_has_none() -> None:
    marked = [Marked(Passage(0, 3, "b"), 0.2, None)]
    html = highlighted(TEXT, marked, ["a", "b"])
    assert '<mark class="passage t2 s1" data-sign="2" title="b, confidence 0.20">Tar</mark>' in html
    assert '<mark data-sign="1" class="passage t1">a</mark>' in html
    assert "data-sign" not in highlighted(TEXT, marked)


def test_passages_beyond_the_end_and_texts_without_any_are_shown() -> None:
    assert plain(highlighted("short", [Marked(Passage(2, 99, "x"))])) == "short"
    assert highlighted("<i>", []) == '<div class="highlighted" dir="auto">&lt;i&gt;</div>'
    assert plain(highlighted("", [Marked(Passage(0, 4, "x"))])) == ""
