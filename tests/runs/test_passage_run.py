"""Runs of variables that are quoted from texts: passages and values, from the data to labels, promise and estimates."""

import csv
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import pcs_annotator as pcs
from pcs_annotator.base.errors import ConfigError, LabelError, PcsWarning
from pcs_annotator.core.task import Item
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.passage_run import PassageResult
from pcs_annotator.runs.quotations import OVERLAP, WINDOW, windows_of
from pcs_annotator.studies.estimating.answers import EstimateQuestion
from pcs_annotator.studies.estimating.gold_plan import GoldGoal, draw_gold, plan_gold
from pcs_annotator.studies.estimating.robust import robust
from pcs_annotator.verbs import exchange
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


def rows_of(path: Path) -> list[dict[str, str]]:
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
    for row in rows[:45]:  # in the end, gold is counted
        _, gold = text_with_gold(int(row["id"][1:]))
        assert int(row["pcs_entities_final=person"]) == sum(each["type"] == "person" for each in gold)
        assert int(row["pcs_entities_final"]) == len(gold)
    off = [abs(int(row["pcs_entities"]) - len(text_with_gold(int(row["id"][1:]))[1])) for row in rows]
    assert sum(off) / len(off) < 1
    assert all(row["pcs_entities_final"] == row["pcs_entities"] for row in rows[45:])
    assert all(
        int(row["pcs_entities"]) == int(row["pcs_entities=person"]) + int(row["pcs_entities=place"]) for row in rows
    )
    assert {row["pcs_entities_decision"] for row in rows} <= {"accept", "review", ""}


def test_a_result_is_shown_in_a_line_per_variable(folder: Path) -> None:
    book = run(folder, *MODELS, relations=["original", "order"])
    first, *lines = repr(book).splitlines()
    assert first == f"BookResult('{folder}/run')"
    assert [line.partition(":")[0].strip() for line in lines] == ["entities"]
    assert re.search(r"entities', 60 texts, \d+ passages, \d+ accept", lines[0])


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
    assert certificate.gold_rows == certificate.assumed_rows == 45
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
    assert again.to_pandas()["quotation"].tolist() == again.passages_table()["quotation"].to_pylist()
    assert "rows" in again._repr_html_()
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


def test_that_nothing_was_quoted_is_said_and_is_no_error(tmp_path: Path) -> None:
    write_texts(tmp_path / "data.jsonl", texts=30, labelled=20)
    with pytest.warns(PcsWarning, match="no model quoted anything from the texts"):
        result = result_of(tmp_path, lambda prompt: "[]", relations=["original"])
    assert result.counts.rows == 0
    assert {row["gold"] for row in result.passages_table().to_pylist()} == {"missed"}


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
        (SETTINGS + "per_label = true\n", "passages have one promise"),
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


def test_more_texts_and_more_gold_are_a_further_run_in_the_same_folder(tmp_path: Path) -> None:
    calls = list[str]()
    models = [quoting(0.9, "good", calls), quoting(0.6, "poor", calls)]
    write_texts(tmp_path / "data.jsonl", texts=40, labelled=25)
    result_of(tmp_path, *models, relations=["original"])
    write_texts(tmp_path / "data.jsonl", texts=50, labelled=45)
    result = result_of(tmp_path, *models, relations=["original"])
    assert len(calls) == 2 * 50
    assert sum(marked is not None for marked in result.marked) == 45


def test_a_file_that_a_person_filled_in_is_gold_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    write_texts(tmp_path / "data.jsonl", texts=40, labelled=0)
    result = result_of(tmp_path, *MODELS, relations=["original"])
    rows = rows_of(result.folder.to_label)
    for row in rows:
        text, gold = text_with_gold(int(row["id"][1:]))
        assert row["text"] == text
        row["gold"] = json.dumps(gold)
    filled = tmp_path / "filled.csv"

    def write() -> None:
        with filled.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)

    write()
    fitted = fit(result.folder.home, people=FromPeople(gold=filled)).only
    assert isinstance(fitted, PassageResult)
    assert [marked is not None for marked in fitted.marked].count(True) == len(rows)
    assert fitted.learned.passages is not None
    rows[0]["gold"] = "person: Nobody Here"
    write()
    with pytest.raises(LabelError, match=r"filled\.csv, row 2, column gold.*Nobody Here"):
        fit(result.folder.home, people=FromPeople(gold=filled, gold_wins=True))


def test_passages_go_to_label_studio_and_come_back_as_verdicts(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(folder / "run", copy)
    tasks = tmp_path / "tasks.json"
    exchange.export_rows(copy, tasks, decision="all", count=4)
    answered = json.loads(tasks.read_text())
    for number, task in enumerate(answered):
        result = task["predictions"][0]["result"][:1]
        task |= {
            "id": number,
            "annotations": [{"id": number, "completed_by": {"email": "ann@example.org"}, "result": result}],
        }
    (tmp_path / "back.json").write_text(json.dumps(answered))
    imported = exchange.import_answers(copy, tmp_path / "back.json")
    assert imported.verdicts == 4
    marked = Run.open(copy / "variables" / "entities").marked  # type: ignore[attr-defined]
    first = answered[0]["annotations"][0]["result"][0]["value"]
    assert [passage[:3] for passage in marked[0]] == [(first["start"], first["end"], first["labels"][0])]
    texts, left_out = exchange.export_conll(copy, tmp_path / "out.conll")
    assert (texts, left_out) == (60, 0)
    assert f"# id = t1\n# text = {text_with_gold(1)[0]}\n" in (tmp_path / "out.conll").read_text()


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (lambda path: plan_gold(path, GoldGoal()), "how many gold texts they need is not foretold"),
        (lambda path: draw_gold(path, 5, "stratified"), "leave --draw out"),
        (lambda path: robust(path, EstimateQuestion()), "leave --robust out"),
        (lambda path: fit(path, {"by": "language"}), "leave by, per_label"),
    ],
)
def test_what_is_for_labels_only_says_so(folder: Path, command: Callable[[Path], object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        command(folder / "run" / "variables" / "entities")


def test_texts_are_drawn_for_people_not_candidates(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "run", tmp_path / "run")
    drawn, path = draw_gold(tmp_path / "run" / "variables" / "entities", 5, "simple")
    assert drawn == 5
    assert all(row["text"] == text_with_gold(int(row["id"][1:]))[0] for row in rows_of(path))


def test_new_texts_and_comparisons_of_methods_say_what_to_do_instead(folder: Path) -> None:
    with pytest.raises(ConfigError, match="add the new texts to its data and repeat pcs run"):
        pcs.load_run(folder / "run" / "variables" / "entities").label(["Anna Berg slept."])


def test_counts_are_estimated_with_an_interval(folder: Path) -> None:
    estimated = pcs.estimate(folder / "run" / "variables" / "entities")
    lines = {line.name: line for line in estimated.lines}
    truth = [sum(each["type"] == "person" for each in text_with_gold(number)[1]) for number in range(60)]
    line = lines["entities=person"]
    interval = line.corrected.interval
    assert interval is not None
    assert interval.low <= sum(truth) / 60 <= interval.high
