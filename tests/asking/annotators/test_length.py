import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.asking.annotators.length import GAP, estimate_tokens, fit_text

WORDS = " ".join(f"word{number}" for number in range(200))


@given(text=st.text(), room=st.integers(-5, 60))
def test_fitted_text_fits_and_every_character_is_accounted_for(text: str, room: int) -> None:
    fitted = fit_text(text, room)
    head, gap, tail = fitted.text.partition(GAP) if fitted.cut else (fitted.text, "", "")
    assert estimate_tokens(fitted.text) <= max(room, 0)
    assert fitted.cut == len(text) - len(fitted.text) + len(gap)
    assert fitted.cut or fitted.text == text
    assert text.startswith(head)
    assert text.endswith(tail)


@given(text=st.text(), more=st.text())
def test_longer_text_never_takes_fewer_tokens(text: str, more: str) -> None:
    assert estimate_tokens(text + more) >= estimate_tokens(text)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("a", 1, 1),
        ("plain English words, as they come " * 10, 70, 120),
        ("Привет, как дела? " * 10, 80, 180),
        ("今天天气很好" * 10, 60, 120),
        ("👍" * 10, 15, 40),
        ("\ud800", 1, 3),
    ],
)
def test_estimate_is_about_right(text: str, least: int, most: int) -> None:
    assert least <= estimate_tokens(text) <= most


def test_start_and_end_are_kept_and_no_word_is_split() -> None:
    fitted = fit_text(WORDS, 50)
    assert fitted.cut > 0
    assert ("word0 " in fitted.text, "word199" in fitted.text, GAP in fitted.text) == (True, True, True)
    assert set(fitted.text.replace(GAP, " ").split()) <= set(WORDS.split())
    assert fit_text("one two three four", 3).text == "one two"
    assert fit_text("x" * 1000, 4) == ("x" * 14, 986)


def test_two_million_characters_are_cut() -> None:
    fitted = fit_text("многа букаф " * 170_000, 8000)
    assert 7000 < estimate_tokens(fitted.text) <= 8000
    assert fitted.cut > 1_900_000
