import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.core.chat import sendable


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_sendable_text_is_left_untouched(text: str) -> None:
    assert sendable(text) == text


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udc4d", "\ufffd"),
        ("\ud83d.", "\ufffd."),
        ("\ud83d\udc4d", "👍"),
        ("a\0b", "a\ufffdb"),
    ],
)
def test_what_cannot_be_sent_is_replaced(text: str, sent: str) -> None:
    assert sendable(text) == sent
