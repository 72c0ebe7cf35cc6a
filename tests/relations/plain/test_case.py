from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.relations.plain.case import case
from pcs_annotator.relations.rule import NotApplicable


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("The hotel was GOOD. I loved it!", "the hotel was good. i loved it!"),
        ("We met Ann Lee in New York on 5 May.", "we met Ann Lee in New York on 5 May."),
        ("Ann Lee called. She's AMAZING, I'm not.", "Ann Lee called. she's amazing, i'm not."),
        ("So NASA and eBay said. McCain didn't, says the US.", "so NASA and eBay said. McCain didn't, says the US."),
        ("STOP SHOUTING AT ME NOW", "stop shouting at me now"),
        ("How the Mayor Saved Her Old School", "how the mayor saved her old school"),
        ("@Bob Look at #BlackFriday: http://A.b/C, 5PM!", "@Bob look at #BlackFriday: http://A.b/C, 5PM!"),
        ("So happy :D XD &AMP; you", "so happy :D XD &AMP; you"),
        ("Der Hund schläft. Er ist müde.", "der Hund schläft. er ist müde."),
        ("¿Dónde está? ¡Qué bonito es todo!", "¿dónde está? ¡qué bonito es todo!"),
        ("Iğdır'da IŞIK yok. İzmir güzel.", "ığdır'da IŞIK yok. izmir güzel."),
        ("Сегодня хорошо. Мы гуляем.", "сегодня хорошо. мы гуляем."),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
    ],
)
def test_capitals_become_small_letters_except_in_names(text: str, changed: str) -> None:
    assert case(text) == changed


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("heading to work. bye!", "Heading to work. Bye!"),
        ("@user he knows Putin", "@user He knows Putin"),
        ("26 pin cable for eBay", "26 Pin Cable For eBay"),
        ("ﬁne", "Fine"),
    ],
)
def test_a_text_without_capitals_to_change_gets_some(text: str, changed: str) -> None:
    assert case(text) == changed


@pytest.mark.parametrize("text", ["今日はとても良い天気です", "سنرى غدا", "12:30 @BOB"])
def test_scripts_without_case_are_left_alone(text: str) -> None:
    assert case(text) == NotApplicable("no letter has another case")


@given(st.text(alphabet=st.sampled_from("aBcİßÄéΣ .,!?'@#/:0…\n-"), max_size=60))
def test_only_the_case_changes(text: str) -> None:
    found = case(text)
    if isinstance(found, str):
        assert found != text
        assert found.casefold().replace("\u0307", "") == text.lower().casefold().replace("\u0307", "")
    assert case(text) == found
