from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.asking.annotators.length import GAP, CutPolicy, estimate_tokens, fit_text

POLICIES = st.sampled_from(["head", "tail", "head+tail"])
WORDS = " ".join(f"word{number}" for number in range(200))


@given(text=st.text(), room=st.integers(-5, 60), policy=POLICIES)
def test_fitted_text_fits_and_every_character_is_accounted_for(text: str, room: int, policy: CutPolicy) -> None:
    fitted = fit_text(text, room, policy)
    head, gap, tail = fitted.text.partition(GAP) if policy == "head+tail" and fitted.cut else (fitted.text, "", "")
    assert estimate_tokens(fitted.text) <= max(room, 0)
    assert fitted.cut == len(text) - len(fitted.text) + len(gap)
    assert fitted.cut or fitted.text == text
    assert text.startswith(head) or policy == "tail"
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


@pytest.mark.parametrize(
    ("policy", "first", "last"), [("head", True, False), ("tail", False, True), ("head+tail", True, True)]
)
def test_policy_decides_which_part_is_kept(policy: CutPolicy, first: bool, last: bool) -> None:
    fitted = fit_text(WORDS, 50, policy)
    assert fitted.cut > 0
    assert ("word0 " in fitted.text, "word199" in fitted.text) == (first, last)
    assert (GAP in fitted.text) == (policy == "head+tail")


@pytest.mark.parametrize("policy", ["head", "tail", "head+tail"])
def test_words_are_not_split(policy: CutPolicy) -> None:
    kept = fit_text(WORDS, 50, policy).text.replace(GAP, " ").split()
    assert set(kept) <= set(WORDS.split())


@pytest.mark.parametrize("policy", ["head", "tail", "head+tail"])
def test_two_million_characters_are_cut(policy: CutPolicy) -> None:
    text = "многа букаф " * 170_000
    fitted = fit_text(text, 8000, policy)
    assert 7000 < estimate_tokens(fitted.text) <= 8000
    assert fitted.cut > 1_900_000
