from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path

import pytest

from pcs_annotator.base.errors import UnknownNameError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.relations.base import relations
from pcs_annotator.relations.function import TextRule
from tests.stub import Behaviour, stub_process

SENTENCE = "The committee rejected 3 plans on Monday."


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def texts() -> Path:
    path = Path("texts.csv")
    path.write_text(f'id,text\na,"{SENTENCE}"\nb,"It isn\'t late."\nc,\n', encoding="utf-8")
    return path


def test_list_names_every_relation_and_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["relations", "list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert "--rewriter MODEL" in lines["llm:voice"]
    assert main(["relations", "list", "--json"]) == 0
    listed = {relation["name"]: relation for relation in json.loads(capsys.readouterr().out)}
    assert listed["rule:frame"] == {
        "name": "rule:frame",
        "version": "2",
        "changes": "text",
        "needs": [],
        "deterministic": True,
    }


def test_try_shows_the_change_and_the_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["relations", "try", "frame", SENTENCE]) == 0
    text = capsys.readouterr().out
    assert f"→ The text reads: {SENTENCE}" in text
    assert "{+" in text
    assert "✓ numbers" in text


def test_try_shows_how_the_question_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["relations", "try", "order", SENTENCE]) == 0
    text = capsys.readouterr().out
    assert "text unchanged" in text
    assert "an example; [task] in pcs.toml has yours" in text
    assert "- [-positive-]{+negative+}" in text
    assert main(["relations", "try", "layout", SENTENCE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["question"].startswith("[user]")
    assert main(["relations", "try", "case", SENTENCE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["question"] is None


def test_try_says_why_a_text_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["relations", "try", "case", "早上好，你好吗？"]) == 1
    text = capsys.readouterr().out
    assert "not applicable" in text
    assert "no letter has another case" in text


def test_try_with_a_rewriter_over_http_prints_everything_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    with stub_process(Behaviour()) as stub:
        code = main(["relations", "try", "voice", SENTENCE, "--rewriter", f"{stub.url}#m", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert shown["relation"] == "voice"
    assert shown["source"] == SENTENCE
    assert code == (0 if shown["text"] else 1)
    assert shown["text"] or shown["reason"]


def test_a_rejected_rewrite_is_shown_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pcs.toml").write_text(
        '[relations]\nrewriter = "scripted:hash"\n[relations.odd]\nprompt = "Say: {text}"\n', encoding="utf-8"
    )
    assert main(["relations", "try", "odd", SENTENCE]) == 1
    text = capsys.readouterr().out
    assert "rejected" in text
    assert "the reply has no rewrite of the text" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["relations", "try", "cleft", SENTENCE],
        ["run", "texts.csv", "--labels", "a,b", "--model", "scripted:hash", "--relations", "original,frame+cleft"],
        ["run", "texts.csv", "--labels", "a,b", "--model", "scripted:hash", "-c", "old.toml"],
    ],
)
@pytest.mark.usefixtures("texts")
def test_a_removed_relation_is_an_error_that_names_another(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("old.toml").write_text('[relations]\nuse = ["original", "cleft"]\n', encoding="utf-8")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "cleft' was removed" in error
    assert "'frame'" in error


def test_an_old_run_folder_with_removed_relations_still_opens(capsys: pytest.CaptureFixture[str]) -> None:
    with open("data.csv", "w", newline="", encoding="utf-8") as file:
        rows = [[row, f"The committee rejected plan number {row}.", "ab"[row % 2]] for row in range(20)]
        csv.writer(file).writerows([["id", "text", "gold"], *rows])
    asked = ["--labels", "a,b", "--model", "scripted:hash", "--relations", "original,cleft,rule:attribution"]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("rule:cleft", "rule:attribution"):
            patch.setitem(relations._factories, name, partial(TextRule, name, "Once: {}".format))
        assert main(["run", "data.csv", *asked, "--optimiser", "lr"]) == 0
    with pytest.raises(UnknownNameError):
        relations.create("rule:cleft")
    run = Path("runs/data")
    for file_name in ("run.json", "model.json"):
        assert "cleft" in (run / file_name).read_text(encoding="utf-8")
    stored = json.loads((run / "run.json").read_text(encoding="utf-8"))
    stored["config"]["relations"]["similarity"] = True  # a setting that was removed, too
    (run / "run.json").write_text(json.dumps(stored), encoding="utf-8")
    for command in (["fit", str(run), "--optimiser", "lr"], ["report", str(run)]):
        capsys.readouterr()
        assert main(command) == 0
        assert "removed" not in capsys.readouterr().err
    assert "cleft" in (run / "model.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["try", "voise", "A text."], "'voice'"),
        (["try", "case", "A text.", "-c", "none.toml"], "none.toml"),
        (["check", "texts.csv"], "relations check was removed: pcs run FILE"),
        (["try", "paraphrase", "A text."], "--rewriter MODEL"),
        (["try", "voice", "A text.", "--rewriter", "nobody:knows"], "nobody:knows"),
        (["audit", "texts.csv"], "relations audit was removed: pcs relations try"),
    ],
)
@pytest.mark.usefixtures("texts")
def test_what_a_user_can_fix_is_one_sentence_and_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["relations", *arguments]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert "Traceback" not in error
