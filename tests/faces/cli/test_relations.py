from __future__ import annotations

import json
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from tests.stub import Behaviour, stub_process

SENTENCE = "The committee rejected 3 plans on Monday."


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
    ("arguments", "complaint"),
    [
        (["try", "voise", "A text."], "'voice'"),
        (["try", "case", "A text.", "-c", "none.toml"], "none.toml"),
        (["try", "paraphrase", "A text."], "--rewriter MODEL"),
        (["try", "voice", "A text.", "--rewriter", "nobody:knows"], "nobody:knows"),
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
