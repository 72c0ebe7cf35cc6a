import json
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from tests.command_line import Pcs
from tests.stub import Behaviour, stub_process

SENTENCE = "The committee rejected 3 plans on Monday."


@pytest.fixture
def texts() -> Path:
    path = Path("texts.csv")
    path.write_text(f'id,text\na,"{SENTENCE}"\nb,"It isn\'t late."\nc,\n', encoding="utf-8")
    return path


def test_list_names_every_relation_and_what_it_needs(pcs: Pcs) -> None:
    lines = {line.split()[0]: line for line in pcs.out("relations", "list").splitlines() if line}
    assert "--rewriter MODEL" in lines["llm:voice"]
    listed = {relation["name"]: relation for relation in pcs.json("relations", "list")}
    assert listed["rule:frame"] == {
        "name": "rule:frame",
        "version": "2",
        "changes": "text",
        "needs": [],
        "deterministic": True,
    }


def test_try_shows_the_change_and_the_verdicts(pcs: Pcs) -> None:
    text = pcs.out("relations", "try", "frame", SENTENCE)
    assert f"→ The text reads: {SENTENCE}" in text
    assert "{+" in text
    assert "✓ numbers" in text


def test_try_shows_how_the_question_reads(pcs: Pcs) -> None:
    text = pcs.out("relations", "try", "order", SENTENCE)
    assert "text unchanged" in text
    assert "an example; [task] in pcs.toml has yours" in text
    assert "- [-positive-]{+negative+}" in text
    assert pcs.json("relations", "try", "layout", SENTENCE)["question"].startswith("[user]")
    assert pcs.json("relations", "try", "case", SENTENCE)["question"] is None


def test_try_says_why_a_text_stays_as_it_is(pcs: Pcs) -> None:
    text = pcs.out("relations", "try", "case", "早上好，你好吗？", code=1)
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


def test_a_rejected_rewrite_is_shown_with_the_reason(pcs: Pcs) -> None:
    Path("pcs.toml").write_text(
        '[relations]\nrewriter = "scripted:hash"\n[relations.odd]\nprompt = "Say: {text}"\n', encoding="utf-8"
    )
    text = pcs.out("relations", "try", "odd", SENTENCE, code=1)
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
def test_what_a_user_can_fix_is_one_sentence_and_code_2(arguments: list[str], complaint: str, pcs: Pcs) -> None:
    error = pcs.refused("relations", *arguments)
    assert complaint in error
    assert "Traceback" not in error
