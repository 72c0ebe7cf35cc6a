from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator import Variant
from pcs_annotator.showing.markup import Markup, escaped, joined, tag
from pcs_annotator.showing.report.page import render
from pcs_annotator.tables.vote_files import count_variants, writing_variants
from tests.showing.report.reading import Page, listed
from tests.showing.report.results import QUICKER, Made, made_run

NASTY = (
    "<script>alert(1)</script>",
    "\"quoted\" 'twice'",
    "</td></table><img src=x onerror=alert(1)>",
    "a & b &amp; c",
    "שלום <b>עולם</b>",
    "\\frac{1}{2} $x$ --> <!-- ",
)


def test_nothing_a_user_or_a_model_writes_becomes_an_element(tmp_path: Path) -> None:
    made = Made(
        labels=NASTY,
        names=tuple(f"{name} model" for name in NASTY[:2]),
        relations=("original", f"{NASTY[2]} relation"),
        text=" ".join(NASTY),
        instruction=NASTY[0],
        learn=QUICKER,
    )
    html = render(made_run(tmp_path, made))
    page = Page(html)
    plain = Made(labels=tuple("abcdef"), relations=("original", "r"), names=("m", "n"), learn=QUICKER)
    calm = Page(render(made_run(tmp_path, plain)))
    assert {name for name, _ in page.tags} <= {name for name, _ in calm.tags}
    assert len(page.of("script")) == 2  # the rows as data, and what lists them
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
    for text in NASTY:
        assert " ".join(text.split()) in page.text
        assert all(text in row["text"] for row in listed(html))


def test_reasons_and_refused_rewrites_are_escaped_too(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    item = result.dataset.items[0]
    refused = Variant(relation="voice", status="rejected", reason="<i>bad</i>", refused=f"<u>no</u> {item.text}")
    with writing_variants(result.folder.variants) as note:
        note(item, refused)
    page = Page(render(replace(result, rewrites=tuple(count_variants(result.folder.variants)))))
    assert not page.of("i")
    assert not page.of("u")
    assert "voice: <i>bad</i>" in page.text


def test_a_title_with_markup_stays_text(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    result.folder.book.unlink()
    named = replace(result.dataset, name="</title><script>x</script>.csv")
    page = Page(render(replace(result, dataset=named)))
    assert len(page.of("script")) == 2  # the rows as data, and what lists them
    assert "</title><script>x</script>.csv" in page.text


def test_texts_keep_their_own_direction(tmp_path: Path) -> None:
    page = Page(render(made_run(tmp_path, Made(text="שלום עולם", labels=("טוב", "רע"), learn=QUICKER))))
    assert sum(attributes.get("dir") == "auto" for attributes in page.of("bdi")) == len(page.of("bdi")) > 0


def test_plain_text_is_escaped_and_markup_is_not() -> None:
    assert tag("b", "<i>", Markup("<i></i>"), None) == "<b>&lt;i&gt;<i></i></b>"
    assert joined("&", None, Markup("&amp;")) == "&amp;&amp;"
    assert escaped(escaped("<")) == "&lt;"


@pytest.mark.parametrize("value", ['"', "<", "&", "'"])
def test_attributes_cannot_be_broken_out_of(value: str) -> None:
    (element,) = Page(tag("p", title=f"a{value}b", hidden=False, lang=None)).of("p")
    assert element == {"title": f"a{value}b"}


def test_what_was_markup_is_plain_text_once_it_is_put_into_another_text() -> None:
    assert tag("p", f"{tag('b', 'x')}!") == "<p>&lt;b&gt;x&lt;/b&gt;!</p>"
