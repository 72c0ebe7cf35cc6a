import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.showing.diff import clipped, marked
from tests.showing.report.reading import Page

words = st.lists(st.sampled_from(["the", "cat", "sat", "<b>", "on", "a", "mat", ".", "\n"]), max_size=12).map(" ".join)


class _Sides(Page):
    """Recovers both texts from the marked one."""

    def side(self, without: str) -> str:
        return "".join(text for text, place in self.pieces if place != without)

    def __init__(self, html: str) -> None:
        self.pieces: list[tuple[str, str]] = []
        super().__init__(html)

    def handle_data(self, data: str) -> None:
        self.pieces.append((data, self.open[-1] if self.open else ""))


@given(words, words)
def test_both_texts_can_be_read_back(before: str, after: str) -> None:
    sides = _Sides(marked(before, after, 1000))
    assert sides.side("ins") == before
    assert sides.side("del") == after


def test_only_what_changed_is_marked() -> None:
    assert marked("The cat sat.", "The dog sat.", 100) == "The <del>cat</del><ins>dog</ins> sat."


def test_words_that_only_end_alike_are_marked_whole() -> None:
    assert marked("She was walking", "She was talking", 100) == "She was <del>walking</del><ins>talking</ins>"


def test_equal_texts_have_no_marks() -> None:
    assert marked("The cat sat.", "The cat sat.", 100) == "The cat sat."


@pytest.mark.parametrize("after", ["other " * 50_000, "word " * 40_000 + "end " + "word " * 10_000, ""])
def test_long_texts_are_shortened_in_linear_time(after: str) -> None:
    # Quadratic time would take minutes, so no clock is needed.
    shown = marked("word " * 50_000, after, 300)
    assert len(shown) < 1000
    assert "…" in shown


def test_a_long_text_shows_the_places_that_changed() -> None:
    before = "start " + "word " * 200 + "cat " + "word " * 50 + "tail"
    after = before.replace("cat", "dog")
    shown = marked(before, after, 300)
    assert "<del>cat</del><ins>dog</ins>" in shown
    assert not shown.startswith("start")


def test_many_changes_in_a_long_text_are_not_all_shown() -> None:
    before = " ".join(f"same{number} old" for number in range(40))
    shown = marked(before, before.replace("old", "new"), 200)
    assert 0 < shown.count("<ins>") <= 6
    assert shown.endswith(" …")


def test_a_text_without_spaces_is_cut_too() -> None:
    assert clipped("字" * 20, 5) == "字字字字字…"


@pytest.mark.parametrize("blanks", [5, 120, 1_500])
def test_a_text_that_begins_with_blanks_shows_its_words(blanks: int) -> None:
    assert clipped(" " * blanks + "字", 5) == "字"
    assert clipped("\n" * blanks + "one two three", 5) == "one …"
