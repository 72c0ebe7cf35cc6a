"""Prompts and replies in the report: pooled, within a budget, least certain rows first, and safe."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import Item, RunResult
from pcs_annotator.runs.folder_votes import Evidence, evidence_of
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.settings import Config
from pcs_annotator.showing.report import replies as report_replies
from pcs_annotator.showing.report.page import render
from tests.builders import the
from tests.showing.report.reading import Page
from tests.showing.report.results import made_run
from tests.simulated import QUICK, simulated_models, simulated_run

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return simulated_run(tmp_path_factory.mktemp("made"), rows=80, gold_rows=60, learn=replace(QUICK, text=True))


def data_of(result: RunResult) -> dict[str, Any]:
    with simulated_models():
        data: dict[str, Any] = json.loads(the(DATA.search(render(result)))[1])
    return data


def test_prompts_are_kept_once_and_can_be_put_together_again(result: RunResult) -> None:
    data = data_of(result)
    pool = data["pool"]
    with simulated_models():
        evidence = evidence_of(result.folder, result.config, result.dataset.items)
    for row, exchanges in zip(data["rows"], evidence.exchanges, strict=True):
        assert len(row["asked"]) == len(exchanges) == 6
        for (cell, prompt, marker, reply, sent, got, seconds), exchange in zip(row["asked"], exchanges, strict=True):
            text, mark = f"{'The text reads: ' * (cell // 3)}{row['text']}", pool[marker]
            system, user = (pool[place] for place in pool[prompt])
            assert system == ["system", exchange.messages[0].content]
            assert user[1] + f"{mark}\n{mark}\n{text}\n{mark}" + user[2] == exchange.messages[1].content
            assert pool[reply] == exchange.reply.text
            assert (sent, got) == (exchange.reply.usage.input_tokens, exchange.reply.usage.output_tokens)
            assert seconds == 0.0
    assert len([one for one in pool if isinstance(one, list) and one[0] == "system"]) == 1


def test_the_least_certain_rows_come_first_where_there_is_little_room(
    result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_replies, "MOST_BYTES", 4_000)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-shown")
    rows = data_of(result)["rows"]
    shown, others = ([row["sure"] for row in rows if ("asked" in row) == has] for has in (True, False))
    assert 5 <= len(shown) < 40
    assert max(shown) <= min(others)
    with simulated_models():
        page = render(result)
        text = Page(page).text
    assert "sk-not-to-be-shown" not in page
    assert f"Prompts and replies of the {len(shown)} least certain rows are below the answers" in text


def test_a_message_without_the_text_as_the_row_has_it_is_kept_whole(
    result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {item.id: item for item in result.dataset.items}
    items = [replace(item, text=f"{item.text} More than was sent.") for item in result.dataset.items]

    def evidence_of_sent(folder: RunFolder, config: Config, longer: Sequence[Item], own: object) -> Evidence:
        return evidence_of(folder, config, [sent[item.id] for item in longer])

    monkeypatch.setattr(report_replies, "evidence_of", evidence_of_sent)
    data = data_of(replace(result, dataset=replace(result.dataset, items=tuple(items))))
    _, prompt, marker, *_ = data["rows"][0]["asked"][0]
    whole = data["pool"][data["pool"][prompt][1]]
    assert len(whole) == 2
    assert result.dataset.items[0].text in whole[1]
    assert data["pool"][marker] == ""


def test_without_a_ledger_the_report_is_as_before(tmp_path: Path, result: RunResult) -> None:
    made = made_run(tmp_path)
    page = render(made)
    assert "Prompts and replies" not in Page(page).text
    assert "pool" not in json.loads(the(DATA.search(page))[1])
    without = render(result)  # the simulated models are not registered now
    assert "pool" not in json.loads(the(DATA.search(without))[1])


def test_words_that_tell_are_marked_as_scripts_count(result: RunResult) -> None:
    assert result.model.text is not None
    emoji = replace(result.dataset.items[0], text="\U0001f600 looks good.")
    items = [emoji, *result.dataset.items[1:]]
    row = data_of(replace(result, dataset=replace(result.dataset, items=tuple(items))))["rows"][0]
    units = row["text"].encode("utf-16-le")
    marked = {
        units[2 * start : 2 * (start + abs(length))].decode("utf-16-le"): length > 0
        for start, length in zip(row["words"][::2], row["words"][1::2], strict=True)
    }
    assert marked["good"] == (row["label"] == "good")
