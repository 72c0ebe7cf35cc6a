import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Variant
from pcs_annotator.relations.prompted import count_windows, cut_windows, has_words, rewrite_in_windows
from pcs_annotator.relations.rewrite_in_reply import CHANGED_NOTHING, CUT_OFF, DOES_NOT_APPLY, REFUSES, Refused

SIGNS = st.text(alphabet="ab A.!?\n\t\"')。😀1,", max_size=200)


@given(SIGNS, st.integers(1, 60))
def test_windows_and_gaps_make_up_the_text(text: str, longest: int) -> None:
    windows = cut_windows(text, longest)
    assert windows.joined(windows.texts) == text
    assert all(0 < len(piece) <= longest and piece == piece.strip() for piece in windows.texts)
    assert all(not gap.strip() for gap in windows.gaps)


def test_a_short_text_is_one_window() -> None:
    text = "  One. Two.\n\nThree. "
    assert cut_windows(text).texts == ("One. Two.\n\nThree.",)
    assert cut_windows(text).gaps == ("  ", " ")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The mill closed. ", "It burned down."),
        ("Mr. Dorn met Dr. Vale in the U.S. Senate. ", "They spoke."),
        ("Prices rose. ", "The rate was 3.5 percent in St. Ives."),
        ("“Go home!” she said. ", "He went."),
        ("She said: “Go home!” ", "He went."),
        ("All was well. ", "He left... then came back."),
        ("HEADLINE WITHOUT STOP\n", "The story begins here."),
        ("今日は雨です。", "明日は晴れます。"),
    ],
)
def test_windows_end_where_sentences_do(first: str, second: str) -> None:
    text = first + second
    assert cut_windows(text, len(text) - 1).texts == (first.strip(), second)


def test_a_paragraph_is_kept_together_where_that_leaves_a_window_half_full() -> None:
    first, second = "Ann ran far. Ben sat down.", "Cal woke up early. Dan slept on."
    assert cut_windows(f"{first}\n\n{second}", 50).texts == (first, second)
    assert cut_windows(f"{first}\n\n{second}", 50).gaps == ("", "\n\n", "")


def test_a_giant_sentence_is_cut_at_a_blank_and_a_giant_word_anywhere() -> None:
    assert cut_windows("aaa bbb ccc ddd", 8).texts == ("aaa bbb", "ccc ddd")
    assert cut_windows("a" * 20, 8).texts == ("a" * 8, "a" * 8, "a" * 4)


@pytest.mark.parametrize("sign", ["The mill closed. ", "word ", "x", " ", "\n", ". ", "! ", "\n ", '"', "。", "a.b. "])
def test_a_long_article_is_cut_in_linear_time(sign: str) -> None:
    # No clock: in quadratic time this would take minutes.
    text = f"A{sign * (90_000 // len(sign))}z"
    windows = cut_windows(text)
    assert windows.joined(windows.texts) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", False),
        (" \n", False),
        ("😀 !!", False),
        ("https://a.example/b @you #tag 12", False),
        ("ok", True),
        ("雨", True),
    ],
)
def test_links_numbers_and_signs_are_nothing_to_rewrite(text: str, words: bool) -> None:
    assert has_words(text) is words
    assert count_windows(text) == int(words)


def rewritten(text: str, outcomes: dict[str, str | Refused], longest: int = 12) -> Variant:
    async def rewrite(piece: str) -> str | Refused:
        return outcomes.get(piece, piece.upper())

    return asyncio.run(rewrite_in_windows("loud", text, rewrite, longest))


def test_windows_are_joined_with_the_blanks_that_were_between_them() -> None:
    variant = rewritten("It rained.\n\nWe left.  They came.", {})
    assert variant == Variant(
        relation="loud",
        status="changed",
        text="IT RAINED.\n\nWE LEFT.  THEY CAME.",
        source="It rained.\n\nWe left.  They came.",
    )


@pytest.mark.parametrize("reason", [DOES_NOT_APPLY, CHANGED_NOTHING])
def test_a_window_that_it_does_not_apply_to_stays_as_it_is(reason: str) -> None:
    variant = rewritten("It rained. We left.", {"We left.": Refused(reason, fails=False)})
    assert (variant.status, variant.text) == ("changed", "IT RAINED. We left.")


def test_a_window_without_words_is_not_asked_about() -> None:
    variant = rewritten("It rained.\n😀 😀 😀 !!!\nWe left.", {"😀 😀 😀 !!!": "unwanted"})
    assert variant.text == "IT RAINED.\n😀 😀 😀 !!!\nWE LEFT."


def test_it_does_not_apply_where_it_applies_to_no_window() -> None:
    outcome = Refused(DOES_NOT_APPLY, fails=False)
    variant = rewritten("It rained. We left.", {"It rained.": outcome, "We left.": outcome})
    assert (variant.status, variant.reason, variant.text) == ("not_applicable", DOES_NOT_APPLY, None)


@pytest.mark.parametrize(("reason", "status"), [(CUT_OFF, "rejected"), (REFUSES, "not_applicable")])
def test_half_a_text_is_never_presented_as_the_whole(reason: str, status: str) -> None:
    variant = rewritten("It rained. We left.", {"We left.": Refused(reason, text="WE")})
    assert (variant.status, variant.reason, variant.text, variant.refused) == (status, reason, None, None)


def test_a_window_that_raises_waits_for_the_others() -> None:
    done = []

    async def rewrite(piece: str) -> str | Refused:
        if piece == "It rained.":
            raise RuntimeError("down")
        await asyncio.sleep(0.01)
        done.append(piece)
        return piece.upper()

    with pytest.raises(RuntimeError, match="down"):
        asyncio.run(rewrite_in_windows("loud", "It rained. We left.", rewrite, 12))
    assert done == ["We left."]
