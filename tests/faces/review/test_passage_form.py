"""The form for passages and values, as HTML."""

import json
import re
from html import unescape

from pcs_annotator.core.passages import Extraction, Passage
from pcs_annotator.faces.review.passage_form import passage_field, value_field
from pcs_annotator.showing.highlights import Marked
from pcs_annotator.showing.markup import joined
from tests.faces.review.marking import CANDIDATES, EXTRACTION, TEXT, VALUES, blind


def carried(html: str) -> dict[str, object]:
    data: dict[str, object] = json.loads(unescape(re.findall(r'data-marking="([^"]*)"', html)[0]))
    return data


def test_the_script_gets_text_types_and_passages_in_the_order_of_the_text() -> None:
    data = carried(joined(*passage_field("claims", TEXT, EXTRACTION, CANDIDATES[::-1])))
    assert data["text"] == TEXT  # line breaks as they are
    assert data["types"] == ["claim", "evidence", "rebuttal"]
    passages = data["passages"]
    assert isinstance(passages, list)
    assert [each["right"] for each in passages] == [True, None, True, None, None]
    assert [(each["strength"], each["sure"]) for each in passages][:2] == [("s4", "0.97"), ("s2", "0.41")]
    assert [each["start"] for each in passages] == sorted(each.passage.start for each in CANDIDATES)


def test_who_judges_first_learns_nothing_of_the_models() -> None:
    html = joined(*passage_field("claims", TEXT, EXTRACTION, blind(CANDIDATES)))
    passages = carried(html)["passages"]
    assert isinstance(passages, list)
    assert {(each["right"], each["strength"], each["sure"]) for each in passages} == {(None, "s2", "")}
    values = joined(*value_field("people", TEXT, blind(VALUES), None))
    assert "checked" not in values
    assert "0.71" not in values
    assert "<svg" not in values


def test_texts_types_and_values_are_escaped() -> None:
    attack = "\"><script>alert('&')</script>\u202e\x00"
    html = joined(
        *passage_field(attack, attack, Extraction((attack, "b")), [Marked(Passage(0, 5, attack))]),
        *value_field(attack, attack, [Marked(Passage(0, 5, "value", attack))], attack),
    )
    assert "<script" not in html
    assert carried(html)["text"] == attack.replace("\x00", "\ufffd")


def test_a_type_alone_needs_no_choice() -> None:
    html = joined(*passage_field("dates", TEXT, Extraction(("date",)), ()))
    assert "<select" not in html
    assert html.count("data-add=") == 1


def test_a_value_is_offered_once_and_one_that_was_written_down_is_kept() -> None:
    twice = [*VALUES, VALUES[0]._replace(passage=VALUES[0].passage._replace(start=0, end=4))]
    html = joined(*value_field("people", TEXT, twice, "2019"))
    assert re.findall(r'<input( checked)?[^>]*value="([^"]*)"', html) == [
        *(("", "1200"), (" checked", "2019"), ("", "25")),
        *(("", "another value"), ("", "none"), ("", "")),
    ]
    written = joined(*value_field("people", TEXT, VALUES, "17"))
    assert 'value="17" name="people=typed"' in written
    assert re.findall(r'<input checked[^>]*value="([^"]*)"', written) == ["another value"]
