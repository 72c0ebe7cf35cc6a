"""The same people, places and addresses."""

from __future__ import annotations

import pytest

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.checks.names import names
from pcs_annotator.relations.checks.reading import Rewrite


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Then Mira Lindqvist left Norwick.", "Then Lindqvist went away from Norwick."),
        ("We saw Mira Lindqvist's house.", "We saw the house of Mira Lindqvist."),
        ("They blamed the U.S. for it.", "They blamed the United States for it."),
        ("They went to Russia.", "They made a Russian journey."),
        ("Best day EVER with MOM", "The best day ever with my mother"),
        ("Is Odalys Brent Upset About Her Role?", "Is Odalys Brent Unhappy With Her Part?"),
        ("thx @mira_l for http://ex.am/ple1 #fun", "Thank you @mira_l for https://ex.am/ple1 #fun"),
        ("While he slept, Bob called.", "Whilst he slept, Bob called."),
    ],
)
def test_kept_names_pass(source: str, text: str) -> None:
    assert names(Rewrite(source, text)) == ""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Then Mira Lindqvist left.", "Then a woman left."),
        ("Then Mira Lindqvist left.", "Then Mira Quist left."),
        ("Then Mira Lindqvist left.", "Then Tova Quist left."),
        ("They like the BBC.", "They like the radio."),
        ("Odalys Brent Wins Prize In Norwick", "Tova Quist Wins Prize In Norwick"),
        ("thx @mira_l for that", "thx for that"),
        ("look: http://ex.am/ple1", "look: http://ex.am/ple2"),
        ("nice day", "nice day @mira_l"),
    ],
)
def test_a_missing_or_new_name_is_detected(source: str, text: str) -> None:
    assert names(Rewrite(source, text))


@pytest.mark.parametrize(
    "sentence",
    [
        "Will Smith won the prize.",
        "Art Howe left the club.",
        "Carly Moreno left the club.",
        "Business Objects sells software.",
        "Formula One boss Bernie Lane left.",
        "Grant Hill left the club.",
        "New York voted.",
        "Turkey closed the border.",
        "Celebrity Big Brother starts tomorrow.",
    ],
)
def test_a_name_at_the_start_keeps_its_capital_in_mid_sentence(sentence: str) -> None:
    pytest.importorskip("lemminflect")
    small = f"It is known that {sentence[0].lower()}{sentence[1:]}"
    assert names(Rewrite(sentence, small)) == (
        f'names without their capital: "{sentence.split(maxsplit=1)[0]}"; write names as in the text'
    )
    assert names(Rewrite(sentence, f"It is known that {sentence}")) == ""
    assert names(Rewrite(sentence, small, Expectation(recases=True))) == ""


@pytest.mark.parametrize(
    "sentence",
    [
        "The United Nations agreed.",
        "Former House speaker Lee left.",
        "Small British islands vote.",
        "Insured Floridians pay more.",
        "Top-seeded Ivan Lend won.",
        "New British rules apply.",
        "Everything Captain Howdy says is right.",
        "Council members met Ann Lee.",
        "Price cuts hurt sales.",
        "Thats a good idea.",
        "Isn't it late?",
        "When I left, it was late.",
    ],
)
def test_any_other_first_word_may_lose_its_capital(sentence: str) -> None:
    pytest.importorskip("lemminflect")
    assert names(Rewrite(sentence, f"We know that {sentence[0].lower()}{sentence[1:]}")) == ""


def test_a_name_in_mid_sentence_keeps_its_capital() -> None:
    pytest.importorskip("lemminflect")
    assert '"Mira"' in names(Rewrite("We met Mira there.", "There, mira was met by us."))
    assert names(Rewrite("We met the President there.", "There, the president was met by us.")) == ""
