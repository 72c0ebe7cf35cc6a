"""Who did what to whom."""

from __future__ import annotations

import pytest

from pcs_annotator import Expectation
from pcs_annotator.relations.checks.names import roles
from pcs_annotator.relations.checks.reading import Rewrite

VOICE = Expectation(reorders=True)


def test_names_may_not_swap_unless_the_relation_reorders() -> None:
    assert "changed places" in roles(Rewrite("Then Ann Reed praised Bob Holt.", "Then Bob Holt praised Ann Reed."))
    assert not roles(Rewrite("Then Ann Reed praised Bob Holt.", "Then Reed lauded Holt."))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Yes, Ann Reed's aunt is mad at Bob Holt.", "Yes, Bob Holt's aunt is mad at Ann Reed."),
        ("Odalys Brent on Working with Tova Quist", "Tova Quist on Working with Odalys Brent"),
        ("She praised the mayor.", "She was praised by the mayor."),
        ("I told her the secret.", "You told her the secret."),
        ("He left early.", "She left early."),
    ],
)
def test_the_plainest_swaps_are_detected(source: str, text: str) -> None:
    assert roles(Rewrite(source, text, VOICE))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("The nurse saw the thief.", "The nurse was seen by the thief."),
        ("Ann Reed sued Bob Holt on Monday.", "On Monday, Ann Reed was sued by Bob Holt."),
        ("I deleted the app.", "The app deleted me."),
    ],
)
def test_swapped_roles_are_detected(source: str, text: str) -> None:
    assert roles(Rewrite(source, text, VOICE))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("The nurse saw the thief.", "The thief was seen by the nurse."),
        ("Ann Reed sued Bob Holt on Monday.", "Bob Holt was sued by Ann Reed on Monday."),
        ("The letter was written by me.", "I wrote the letter."),
        ("They looked at the plan.", "The plan was looked at by them."),
        ("The door opened.", "The door was opened."),
        ("My boss gave me a day off.", "I was given a day off by my boss."),
        ("Ann Reed said Bob Holt bought the firm.", "Ann Reed said the firm was bought by Bob Holt."),
    ],
)
def test_a_change_of_voice_passes(source: str, text: str) -> None:
    assert roles(Rewrite(source, text, VOICE)) == ""
