import pytest

from pcs_annotator.judging.promise.drift import SCRIPTS, script_of


@pytest.mark.parametrize(
    ("text", "script"),
    [("Grüße", "LATIN"), ("plain", "LATIN"), ("你好 ok", "CJK"), ("…!", "NONE"), ("", "NONE"), ("ሰላም", "OTHER")],
)
def test_a_text_has_the_script_of_most_of_its_letters(text: str, script: str) -> None:
    assert SCRIPTS[script_of(text)] == script
