"""Sentences on stderr."""

import pytest

from pcs_annotator.faces.cli.ending import complain

SENTENCE = "error: data.csv has no column 'txt' (--text-column); did you mean 'text'? there are id, text, gold, party"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_sentence_is_wrapped_at_words(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    complain(f"{SENTENCE}\nrun again")
    *lines, last = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= width
    assert " ".join(line.strip() for line in lines) == SENTENCE
    assert last == "run again"


def test_a_file_gets_the_sentence_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    complain(SENTENCE)
    assert capsys.readouterr().err == f"{SENTENCE}\n"
