"""The same people, places and addresses."""

import pytest

from pcs_annotator.relations.check_words import Rewrite
from pcs_annotator.relations.checks import names


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
        ("thx @mira_l for that", "thx for that"),
        ("look: http://ex.am/ple1", "look: http://ex.am/ple2"),
        ("nice day", "nice day @mira_l"),
    ],
)
def test_a_missing_or_new_name_is_detected(source: str, text: str) -> None:
    assert names(Rewrite(source, text))
