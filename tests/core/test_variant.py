from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Variant
from pcs_annotator.core.variant import CheckResult, edits_between


def rebuilt(source: str, edits: tuple[tuple[int, str, str], ...]) -> str:
    pieces, done = [], 0
    for start, before, after in edits:
        assert source[start : start + len(before)] == before
        pieces += [source[done:start], after]
        done = start + len(before)
    return "".join([*pieces, source[done:]])


@given(st.text(max_size=60), st.text(max_size=60))
def test_edits_lead_from_one_text_to_the_other(before: str, after: str) -> None:
    assert rebuilt(before, edits_between(before, after)) == after


def test_equal_texts_have_no_edits() -> None:
    assert edits_between("The same.", "The same.") == ()


def test_a_variant_without_a_text_has_no_edits() -> None:
    assert Variant(relation="voice", status="not_applicable", source="A text.").edits == ()


def test_a_refused_rewrite_shows_its_edits() -> None:
    variant = Variant(relation="voice", status="rejected", source="One cat.", refused="Two cats.")
    assert [edit.after for edit in variant.edits] == ["Two", "cats"]


def test_the_cause_names_the_failed_checks_without_details_of_the_text() -> None:
    checks = (CheckResult("numbers", False, "the number 40 is missing"), CheckResult("length", True))
    variant = Variant(relation="voice", status="rejected", reason="the number 40 is missing", checks=checks)
    assert "numbers" in variant.cause
    assert "40" not in variant.cause
    assert Variant(relation="voice", status="not_applicable", reason="a question").cause == "a question"
