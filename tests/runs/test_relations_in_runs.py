"""Relations of the question in a run folder: what is recorded, and that new texts are asked about in the same way."""

from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import run
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import Request
from pcs_annotator.models import scripted
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.tables.vote_files import read_variants


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "posts.csv"
    rows = [f"{row},It's post number {row}.,{('good', 'bad')[row % 2]}" for row in range(24)]
    path.write_text("\n".join(["id,text,gold", *rows]) + "\n", encoding="utf-8")
    (tmp_path / "pcs.toml").write_text("[learn]\nresamples = 5\nfolds = 2\n", encoding="utf-8")
    return path


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """All requests to scripted models."""
    asked: list[Request] = []
    by_hash = scripted.answer_by_hash

    def answer(request: Request, salt: str = "") -> str:
        asked.append(request)
        return by_hash(request, salt)

    monkeypatch.setattr(scripted, "answer_by_hash", answer)
    return asked


@pytest.mark.usefixtures("requests")
def test_variants_tell_unchanged_texts_from_rewrites(data: Path) -> None:
    relations = ["original", "order", "layout", "order+case"]
    result = run(data, "here", models=["scripted:hash"], relations=relations, optimiser="lr")
    assert result.votes.relations == tuple(relations)
    assert (result.votes.codes >= 0).all()
    variants = read_variants(RunFolder(Path("here")).variants, {"1"})
    assert {relation: variant.status for (_, relation), variant in variants.items()} == {
        "order": "original",
        "layout": "original",
        "order+case": "changed",
    }
    report = Path("here/report.html").read_text(encoding="utf-8")
    assert "order+case" in report


@pytest.mark.usefixtures("requests")
def test_two_labels_have_one_other_order(data: Path) -> None:
    with pytest.raises(ConfigError, match=r"'order' and 'order:rotated' ask the same question.*leave one of them out"):
        run(data, "here", models=["scripted:hash"], relations=["original", "order", "order:rotated"])


def test_wordings_come_from_the_settings(data: Path, requests: list[Request]) -> None:
    Path("pcs.toml").write_text('[task]\nwordings = ["Is the post good or bad?"]\n', encoding="utf-8")
    how: dict[str, Any] = {"models": ["scripted:hash"], "relations": ["original", "wording"], "optimiser": "uniform"}
    run(data, "here", config="pcs.toml", **how)
    assert sum("Is the post good or bad?" in request.messages[0].content for request in requests) == 24
    Path("pcs.toml").write_text('[task]\nwordings = ["", "x"]\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="wordings: number 1 is ''"):
        run(data, "there", config="pcs.toml", **how)
