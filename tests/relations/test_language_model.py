"""The language model is unpacked once; whatever happens to the copy, the answers stay the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcs_annotator.relations.language import load_identifier

TEXTS = ("The cat sleeps on the bed.", "Der Hund schläft nicht.", "Це дуже нудний фільм", "x")


def answers() -> list[list[tuple[str, float]]]:
    identifier = load_identifier()
    return [identifier.rank(text) for text in TEXTS]


def test_the_unpacked_model_gives_the_same_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = answers()
    (folder,) = (tmp_path / "pcs-annotator").iterdir()
    monkeypatch.setattr("py3langid.modelio.lzma.open", lambda path: pytest.fail("unpacked again"))
    assert answers() == first
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (folder / "moves.npy").write_bytes(b"cut off")
    assert answers() == first


def test_a_cache_that_cannot_be_written_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert answers()[0][0][0] == "en"
