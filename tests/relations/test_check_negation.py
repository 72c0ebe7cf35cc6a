"""What is denied stays denied, what is not stays so."""

import pytest

from pcs_annotator import Expectation
from pcs_annotator.relations.check_words import Rewrite
from pcs_annotator.relations.checks import LEXICAL, negation

DOUBLED = Expectation(negations="doubled")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("He did not come.", "He didn’t come."),
        ("i dont care", "I don't care"),
        ("Smoking is not allowed here.", "Smoking is prohibited here."),
        ("The door is not safe.", "The door is unsafe."),
        ("She has no money.", "She lacks money."),
        ("He did not remember it.", "He failed to remember it."),
        ("I can't wait for Friday", "I am looking forward to Friday"),
        ("She not only sang but danced.", "She sang and danced as well."),
        ("Oh no. It rains.", "Dear me. It rains."),
        ("It's warm, isn't it?", "It is warm, right?"),
        ("Don't think me ugly.", "Think me beautiful."),
        ("There is no doubt that he won.", "He certainly won."),
        ("My uncle discussed an important interest.", "My uncle talked about an important interest."),
    ],
)
def test_the_same_polarity_in_other_words_passes(source: str, text: str) -> None:
    assert negation(Rewrite(source, text)) == ""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("He came.", "He did not come."),
        ("He never came.", "He always came."),
        ("He didn't come.", "He came."),
        ("Nobody knew.", "Somebody knew."),
        ("She is happy.", "She is unhappy."),
        ("Prices rose.", "Prices fell."),
        ("She is honest.", "She is dishonest."),
        ("She bought a farm, and he sold a boat.", "She did not buy a farm, and he did not sell a boat."),
        ("a good girl nevah tells", "a good girl tells"),
        ("Eu gosto muito de você e do aplicativo", "Eu não gosto de você e do aplicativo"),
    ],
)
def test_a_changed_polarity_is_detected(source: str, text: str) -> None:
    assert negation(Rewrite(source, text))


@pytest.mark.parametrize(
    "text",
    [
        "It is not untrue that the council raised taxes.",
        "The council did not fail to raise taxes.",
        "No one can deny that the council raised taxes.",
        "The council has raised taxes.",
        "It is not false that the council raised taxes.",
        "It is not inaccurate to say that the council raised taxes.",
        "It is incorrect to say that the council did not raise taxes.",
        "The council never failed to raise taxes.",
    ],
)
def test_an_even_number_of_negations_may_be_added(text: str) -> None:
    assert negation(Rewrite("The council raised taxes.", text, DOUBLED)) == ""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("The council raised taxes.", "The council did not raise taxes."),
        ("The council raised taxes.", "It is not true that the council raised taxes."),
        ("The council raised taxes.", "It is not untrue that the council did not raise taxes."),
        ("The council raised taxes.", "It is not the case that the council did not fail to raise taxes."),
        ("The council raised taxes.", "It is incorrect to say that the council raised taxes."),
        ("Our mayor raised taxes.", "It is not false that our mayor never raised taxes."),
        ("The tax is legal.", "The tax is not legal."),
        ("I had the best day.", "I did not have the worst day."),
        ("She dates a cook, she met his mother.", "She does not date a cook, she did not meet his mother."),
        ("She does not force anything.", "She forces things."),
        ("Don't think me ugly.", "Think me beautiful."),
    ],
)
def test_a_single_negation_is_not_a_double_one(source: str, text: str) -> None:
    assert "double negation" in negation(Rewrite(source, text, DOUBLED))


def test_an_opposite_denied_counts_as_two() -> None:
    assert negation(Rewrite("The film was good.", "The film was not bad.", DOUBLED)) == ""


@pytest.mark.parametrize("word", ["uncle", "important", "interest", "discuss", "under", "until", "image", "distance"])
def test_words_that_only_look_negative_are_not_listed(word: str) -> None:
    assert word not in LEXICAL
