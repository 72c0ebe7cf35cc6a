"""Relations of the question in a run folder: what is recorded, and that new texts are asked about in the same way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import label, run
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import Request
from pcs_annotator.faces.cli.main import main
from pcs_annotator.models import scripted
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.tables.vote_files import read_variants

OTHER = "Choose the label that describes the post: good, bad."
WITH_WRITER: dict[str, Any] = {
    "labels": ["good", "bad"],
    "models": ["scripted:hash"],
    "rewriter": "scripted:hash:writer",
    "relations": ["original", "order", "llm:wording", "order+case"],
    "optimiser": "lr",
}


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
    """All requests to scripted models; when asked to, they write another wording."""
    asked: list[Request] = []
    by_hash = scripted.answer_by_hash

    def answer(request: Request, salt: str = "") -> str:
        asked.append(request)
        return OTHER if "The text is an instruction" in request.messages[0].content else by_hash(request, salt)

    monkeypatch.setattr(scripted, "answer_by_hash", answer)
    return asked


def wordings_written(requests: list[Request]) -> int:
    return sum("The text is an instruction" in request.messages[0].content for request in requests)


def test_new_texts_are_asked_about_with_the_wording_of_the_run(data: Path, requests: list[Request]) -> None:
    result = run(data, "here", **WITH_WRITER)
    assert result.config.task.written_wording == OTHER
    stored = json.loads(Path("here/run.json").read_text(encoding="utf-8"))
    assert stored["config"]["task"]["written_wording"] == OTHER
    assert wordings_written(requests) == 1
    Path("here/ledger.db").unlink()
    requests.clear()
    new = data.with_name("new.csv")
    new.write_text("id,text\na,It's another post.\nb,And one more.\n", encoding="utf-8")
    label(new, "here", ask="all")
    assert wordings_written(requests) == 0
    assert sum(OTHER in request.messages[0].content for request in requests) == 2


@pytest.mark.usefixtures("requests")
def test_the_wording_is_shown(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--labels", "good,bad", "--model", "scripted:hash", "--rewriter", "scripted:hash:writer"]
    command = ["run", str(data), *options, "--relations", "original,llm:wording", "--optimiser", "uniform"]
    assert main([*command, "--details"]) == 0
    assert f"the question under llm:wording: {OTHER}" in " ".join(capsys.readouterr().out.split())
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written_wording"] == OTHER
    assert OTHER in Path("runs/posts/report.html").read_text(encoding="utf-8")


def test_a_run_that_is_resumed_pays_for_nothing_twice(data: Path, requests: list[Request]) -> None:
    run(data, "here", **WITH_WRITER)
    requests.clear()
    assert run(data, "here", **WITH_WRITER).tally.calls == 0
    assert requests == []


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
