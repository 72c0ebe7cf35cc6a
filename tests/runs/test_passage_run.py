"""Runs of variables that are quoted from texts: passages and values, from the data to labels, promise and estimates."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import pcs_annotator as pcs
from pcs_annotator.base.errors import ConfigError, LabelError
from pcs_annotator.core.task import Item
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.passage_run import PassageResult
from pcs_annotator.runs.quotations import OVERLAP, WINDOW, windows_of
from pcs_annotator.verbs.fit import fit
from tests.made_once import made_once
from tests.runs.quoting import SETTINGS, quoting, text_in, text_with_gold, write_texts

pytestmark = pytest.mark.filterwarnings("ignore::pcs_annotator.base.errors.PcsWarning")
MODELS = (quoting(0.9, "good"), quoting(0.75, "fair"), quoting(0.6, "poor"))


def run(folder: Path, *models: Any, settings: str = SETTINGS, data: str = "data.jsonl", **options: Any) -> Any:
    (folder / "pcs.toml").write_text(settings)
    return pcs.run(folder / data, folder / "run", config=folder / "pcs.toml", models=[*models], **options)


def result_of(folder: Path, *models: Any, **options: Any) -> PassageResult:
    result = run(folder, *(models or MODELS), **options).results["entities"]
    assert isinstance(result, PassageResult)
    return result


def rows_of(path: Path) -> list[Mapping[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(path: Path) -> None:
        write_texts(path / "data.jsonl")
        run(path, *MODELS, relations=["original", "order"])

    return made_once(tmp_path_factory, "passages", make)


def test_every_passage_has_a_confidence_a_decision_and_its_votes(folder: Path) -> None:
    rows = rows_of(folder / "run" / "variables" / "entities" / "passages.csv")
    texts = {f"t{number}": text_with_gold(number) for number in range(60)}
    for row in rows:
        text, gold = texts[row["id"]]
        assert text[int(row["start"]) : int(row["end"])] == row["quotation"]
        if int(row["id"][1:]) < 45 and row["gold"] != "missed":
            assert row["gold"] in ("yes", "no")
            assert (row["gold"] == "yes") >= (
                {"start": int(row["start"]), "end": int(row["end"]), "type": row["type"]} in gold
            )
            assert 0 < float(row["confidence"]) < 1
            assert row["decision"] in ("accept", "review")
            assert row["votes"].endswith(" of 6")
    assert len({(row["id"], row["start"], row["end"], row["type"]) for row in rows}) == len(rows)
    right = [float(row["confidence"]) for row in rows if row["gold"] == "yes"]
    wrong = [float(row["confidence"]) for row in rows if row["gold"] == "no"]
    assert min(sum(right) / len(right), 1 - sum(wrong) / len(wrong)) > 0.8


def test_labels_have_a_count_for_every_type(folder: Path) -> None:
    rows = rows_of(folder / "run" / "labels.csv")
    for row in rows[:45]:  # of gold texts, gold is counted
        _, gold = text_with_gold(int(row["id"][1:]))
        assert int(row["pcs_entities=person"]) == sum(each["type"] == "person" for each in gold)
        assert int(row["pcs_entities"]) == len(gold)
    off = [abs(int(row["pcs_entities"]) - len(text_with_gold(int(row["id"][1:]))[1])) for row in rows[45:]]
    assert sum(off) / len(off) < 1
    assert {row["pcs_entities_decision"] for row in rows} <= {"accept", "review", ""}


def test_weighing_finds_more_than_the_best_single_question(folder: Path) -> None:
    figures = Run.open(folder / "run" / "variables" / "entities").figures()["passages"]
    weighed, best = figures["weighed"], figures["questions"][0]

    def f1(found: Mapping[str, int]) -> float:
        precision, recall = found["right"] / found["passages"], found["hits"] / found["gold"]
        return 2 * precision * recall / (precision + recall)

    assert f1(weighed) > f1(best) + 0.03
    assert figures["auroc"] > 0.75
    assert 0 < figures["at_least"] <= figures["accepted"]["hits"] / figures["accepted"]["gold"]


def test_the_promise_is_about_passages_and_counts_gold_texts(folder: Path) -> None:
    certificate = Run.open(folder / "run" / "variables" / "entities").model_in_force().certificate
    assert certificate is not None
    assert certificate.holds
    assert certificate.promise.of == "passages"
    assert certificate.gold_rows <= 45
    report = (folder / "run" / "report.html").read_text()
    assert "of the accepted passages are wrong" in report
    assert "are not in their text, and cast no vote" in report
    assert 'class="passage' in report


def test_a_second_run_asks_nothing_and_a_fit_changes_nothing(folder: Path, tmp_path: Path) -> None:
    write_texts(tmp_path / "data.jsonl")
    calls = list[str]()
    models = [quoting(skill, name, calls) for skill, name in ((0.9, "good"), (0.6, "poor"))]
    first = result_of(tmp_path, *models, relations=["original", "order"])
    asked = len(calls)
    assert asked == 60 * 2 * 2
    before = first.folder.passages.read_bytes()
    again = result_of(tmp_path, *models, relations=["original", "order"])
    assert len(calls) == asked
    assert again.folder.passages.read_bytes() == before
    assert fit(tmp_path / "run").results["entities"].folder.passages.read_bytes() == before
    assert len(calls) == asked


def test_models_are_asked_about_long_texts_in_windows_and_no_passage_is_there_twice(tmp_path: Path) -> None:
    text, gold = text_with_gold(7, sentences=1_900)
    assert len(text) > 80_000
    rows = [{"id": "long", "text": text, "entities": gold}, {"id": "empty", "text": " ", "entities": None}]
    (tmp_path / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    calls = list[str]()
    result = result_of(tmp_path, quoting(1.0, "perfect", calls), relations=["original"])
    windows = windows_of([Item(id="long", text=text)])
    assert len(windows) == len(calls) == -(-(len(text) - OVERLAP) // (WINDOW - OVERLAP))
    assert all(window.item.text == text[window.start : window.start + WINDOW] for window in windows)
    places = [(passage.start, passage.end, passage.type) for passage in result.run.candidates.passages]
    assert len({*places}) == len(places)
    found = {*places} & {(each["start"], each["end"], each["type"]) for each in gold}
    assert len(found) > 0.2 * len(gold)  # of names that occur hundreds of times, the first places of every window


def test_replies_that_cannot_be_read_are_silent_and_lose_nothing(tmp_path: Path) -> None:
    write_texts(tmp_path / "data.jsonl", texts=12, labelled=0)
    good = quoting(0.9, "good")

    def broken(prompt: str) -> str:
        return '[{"type": "person", "quotation": '

    def endless(prompt: str) -> str:
        return json.dumps([{"type": "person", "quotation": f"x{number}"} for number in range(600)])

    result = result_of(tmp_path, good, broken, endless, relations=["original"])
    assert result.unreadable == {"no JSON in the reply": 12, "more than 500 quotations in the reply": 12}
    assert all(answers.endswith(" of 1") for answers in result.passages_table()["votes"].to_pylist())


VALUES = """
[variables.paid]
kind = "value"
instruction = "How much does the text say was paid?"
format = "number"

[learn]
max_error = 0.2
resamples = 0
"""


def test_a_value_is_the_same_however_it_is_written_and_one_per_text_is_accepted(tmp_path: Path) -> None:
    rows = []
    for number in range(60):
        amount = 1_000 + number
        text = f"Bill {number}: Ann paid {amount:,} euros." if number % 4 else f"Letter {number}: nothing was paid."
        rows.append({"id": str(number), "text": text, "paid": str(amount) if number % 4 else "none"})
    (tmp_path / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def exact(prompt: str) -> str:
        words = re.findall(r"\d,\d{3}", text_in(prompt))
        return json.dumps({"quotation": f"{words[-1]} euros", "value": words[-1]} if words else {})

    def loose(prompt: str) -> str:
        reply = json.loads(exact(prompt))
        if reply and int(reply["value"][-1]) > 7:  # it reads the number of the bill instead
            reply["value"] = reply["quotation"] = text_in(prompt).split()[1].strip(":")
        return json.dumps({**reply, "value": f"€ {reply['value'].replace(',', '')}.00"} if reply else {})

    result = run(tmp_path, exact, loose, settings=VALUES, relations=["original", "wording"]).results["paid"]
    labels = rows_of(tmp_path / "run" / "labels.csv")
    assert [row["pcs_paid_final"] for row in labels] == [row["paid"] for row in rows]
    table = result.passages_table().to_pylist()
    accepted = [row for row in table if row["decision"] == "accept"]
    assert len(accepted) > 20
    assert {row["gold"] for row in accepted} == {"yes"}
    assert len({row["id"] for row in accepted}) == len(accepted)
    assert [row["value"] for row in table if row["id"] == "9"] == ["9", "1009"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (SETTINGS.replace('labels = ["person", "place"]', ""), "needs the types of its passages"),
        (VALUES.replace('instruction = "How much does the text say was paid?"', ""), "needs a question"),
        (VALUES.replace('format = "number"', 'labels = ["a", "b"]'), "which has no labels"),
        (SETTINGS.replace("[variables.entities]", "[task]"), r"needs a name, .*write \[variables.NAME\]"),
        (SETTINGS + "per_label = true\n", "one promise, for all texts"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_before_the_first_call(
    tmp_path: Path, settings: str, problem: str
) -> None:
    write_texts(tmp_path / "data.jsonl", texts=5)
    with pytest.raises(ConfigError, match=problem):
        run(tmp_path, MODELS[0], settings=settings)
    assert not (tmp_path / "run").exists()


def test_gold_outside_its_text_and_rewrites_are_refused_before_the_first_call(tmp_path: Path) -> None:
    rows = write_texts(tmp_path / "data.jsonl", texts=3)
    with pytest.raises(ConfigError, match="quotations are looked up in the text as it is"):
        run(tmp_path, MODELS[0], relations=["original", "case"])
    rows[1]["entities"] = [{"start": 2, "end": 5_000, "type": "person"}]
    (tmp_path / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(LabelError, match=r"row 2.*5000|row 2.*5,000|row 2"):
        run(tmp_path, MODELS[0])
    assert not (tmp_path / "run").exists()


def test_new_texts_and_comparisons_of_methods_say_what_to_do_instead(folder: Path) -> None:
    with pytest.raises(ConfigError, match="add the new texts to its data and repeat pcs run"):
        pcs.load_run(folder / "run" / "variables" / "entities").label(["Anna Berg slept."])


def test_counts_are_estimated_with_an_interval(folder: Path) -> None:
    estimated = pcs.estimate(folder / "run" / "variables" / "entities")
    lines = {line.name: line for line in estimated.lines}
    truth = [sum(each["type"] == "person" for each in text_with_gold(number)[1]) for number in range(60)]
    line = lines["entities=person"]
    assert line.corrected.interval.low <= sum(truth) / 60 <= line.corrected.interval.high
