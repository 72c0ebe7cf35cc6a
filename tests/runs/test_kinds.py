"""Whole runs whose labels are steps of a scale, or paths of a tree."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pcs_annotator as pcs
from pcs_annotator.base.errors import ConfigError, LabelError
from pcs_annotator.runs.book_result import book_columns
from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.showing import answer
from pcs_annotator.showing.report.page import render
from pcs_annotator.tables.files import read_json
from pcs_annotator.verbs.fit import fit_run, open_run
from tests.builders import the
from tests.faces.serve.running import running
from tests.made_once import made_once
from tests.simulated import audited, copy_run, few_resamples, read_csv, write_csv
from tests.stub.behaviour import pick

STEPS = ("1", "2", "3", "4", "5")
PATHS = tuple(f"{parent}/{leaf}" for parent in ("economy", "sport", "war") for leaf in ("near", "far", "odd", "old"))
QUICK: Any = {"optimiser": "lr", "relations": ["original", "frame"], "text": False, "max_error": 0.1}


def truth_in(question: str, labels: tuple[str, ...]) -> int:
    found = re.findall(r"Case \d+ is about (\S+)\.", question)
    return labels.index(found[-1])


def one_step_off(number: int, share: int) -> Callable[[str], str]:
    """Return a model that is one step off in a share of the texts, in per cent."""

    def answers(question: str) -> str:
        truth = truth_in(question, STEPS)
        step = (-1 if pick(2, question, "way", str(number)) else 1) if pick(100, question, str(number)) < share else 0
        return f"<label>{STEPS[min(max(truth + step, 0), 4)]}</label>"

    answers.__name__ = f"steps_{number}"
    return answers


def another_leaf(number: int, share: int) -> Callable[[str], str]:
    """Return a model that names another leaf of the right parent in a share of the texts, in per cent."""

    def answers(question: str) -> str:
        truth = truth_in(question, PATHS)
        off = 1 + pick(3, question, "leaf", str(number)) if pick(100, question, str(number)) < share else 0
        return f"<label>{PATHS[truth // 4 * 4 + (truth + off) % 4]}</label>"

    answers.__name__ = f"paths_{number}"
    return answers


def texts(path: Path, labels: tuple[str, ...], rows: int = 240, gold: int = 200) -> Path:
    found = []
    for row in range(rows):
        truth = labels[pick(len(labels), "truth", str(row))]
        text = f"Case {row} is about {truth}."
        found.append({"id": f"t{row}", "text": text, "gold": truth if row < gold else ""})
    return write_csv(path, found)


def make_scale(folder: Path) -> None:
    data, models = texts(folder / "data.csv", STEPS), [one_step_off(number, 25) for number in range(3)]
    how: Any = {"config": few_resamples(folder), "promise": "off-by-more-than-one", **QUICK}
    pcs.run(data, folder / "run", models=models, labels=STEPS, kind="scale", **how)


@pytest.fixture
def scale(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    return copy_run(made_once(tmp_path_factory, "scale", make_scale) / "run", tmp_path / "run")


def make_tree(folder: Path) -> None:
    data, models = texts(folder / "data.csv", PATHS), [another_leaf(number, 60) for number in range(3)]
    pcs.run(data, folder / "run", config=few_resamples(folder), models=models, labels=PATHS, kind="tree", **QUICK)


@pytest.fixture
def tree(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    return copy_run(made_once(tmp_path_factory, "tree", make_tree) / "run", tmp_path / "run")


def test_a_scale_has_an_interval_and_a_promise_within_one_step(scale: Path) -> None:
    rows = read_csv(scale / "labels.csv")
    assert all(int(row["pcs_low"]) <= int(row["pcs_label"]) <= int(row["pcs_high"]) for row in rows)
    assert all(float(row["pcs_within_one"]) >= float(row["pcs_confidence"]) for row in rows)
    assert "pcs_set" not in rows[0]
    assert {row["pcs_decision"] for row in rows} == {"accept"}
    result = open_run(scale)
    assert answer.usable(result.learned.model, result.counts) == ("use", "240 of 240 accepted")
    ((_, said),) = answer.promise(result.learned.model)
    assert str(said).startswith("at most 10 % of the accepted labels are off by more than one step, with ")
    assert str(said).endswith("; tests so far used 0 % of the 10 % risk")
    html = render(result)
    assert "Mean absolute error, in steps" in html
    assert re.search("limit: at most .{1,20} off by more than one step", html)
    assert the(result.learned.against_gold).figures["mae"].value < 0.3


def test_a_scale_keeps_its_labels_when_it_is_opened_and_used_again(scale: Path) -> None:
    rows = read_csv(scale / "labels.csv")
    assert [one.label for one in open_run(scale).outcomes] == [row["pcs_label"] for row in rows]
    models = [one_step_off(number, 25) for number in range(3)]
    loaded = pcs.load_run(scale, models=models)
    new = loaded.label_table({"text": ["Case 1001 is about 4.", ""]})
    assert new.column_names[-1] == "pcs_error"
    assert {"pcs_within_one", "pcs_low", "pcs_high"} <= set(new.column_names)
    assert loaded.label_schema(new.select(["text"]).schema).names == new.column_names
    (outcome,) = loaded.label(["Case 1001 is about 4."])
    assert outcome.details["pcs_low"] <= outcome.label <= outcome.details["pcs_high"]
    assert fit_run(scale).learned.model.shape[:2] == ("scale", STEPS)


def test_an_audit_of_a_scale_counts_labels_that_are_two_steps_off(scale: Path) -> None:
    audited(scale, lambda place: True, rows=20)
    fit_run(scale)
    found = read_json(scale / "variables/label/model.json")["certificate"]["audit"]
    assert (found["rows"], found["wrong"]) == (20, 0)


def test_a_row_of_a_tree_gets_its_leaf_or_its_parent(tree: Path) -> None:
    rows = read_csv(tree / "labels.csv")
    levels = {row["pcs_level"] for row in rows if row["pcs_decision"] == "accept"}
    assert "1" in levels
    for row in rows:
        assert len(row["pcs_label"].split("/")) == int(row["pcs_level"])
        if row["pcs_level"] == "1":
            below = sum(float(value) for name, value in row.items() if name.startswith(f"p_{row['pcs_label']}/"))
            assert float(row["pcs_confidence"]) == pytest.approx(below, abs=1e-4)
    result = open_run(tree)
    parents = sum(row["pcs_level"] == "1" for row in rows)
    assert f"{parents} only a parent" in str(answer.usable(result.learned.model, result.counts)[1])
    assert ", at every level of the tree" in str(*answer.promise(result.learned.model))
    assert f"{parents} only a parent" in render(result)


@pytest.mark.system
def test_a_tree_can_be_reviewed_and_compared_and_used_for_new_texts(tree: Path) -> None:
    audited(tree, lambda place: place > 0, rows=20)  # the first verdict is another leaf, mostly of the same parent
    fit_run(tree)
    found = read_json(tree / "variables/label/model.json")["certificate"]["audit"]
    assert found["rows"] == 20
    assert found["wrong"] <= 1
    models = [another_leaf(number, 60) for number in range(3)]
    new = pcs.load_run(tree, models=models).label_table({"text": [f"Case {row} is about war/far." for row in range(9)]})
    assert set(new["pcs_label"].to_pylist()) <= {*PATHS, "war"}
    assert open_run(tree).label_counts.keys() <= set(PATHS)
    assert pcs.compare(str(tree), f":model={open_run(tree).votes.annotators[0]}").rows == 240


@pytest.mark.parametrize(
    ("kind", "labels", "message"),
    [
        ("scale", ("3", "2", "1"), "list those of a scale from the lowest to the highest"),
        ("tree", ("a/b", "c"), "label 'c' is not a path of a tree: write the parent before it, such as parent/c"),
        ("tree", ("a/b", "a/b/c", "d/e"), "label 'a/b' is also the parent of 'a/b/c': name it 'a/b/other'"),
        ("tree", ("a/b", "a / b", "d/e"), "labels 'a/b' and 'a / b' are the same path"),
        ("tree", ("a/b", "a/c"), "all labels of the tree have the same parent"),
    ],
)
def test_labels_that_are_not_of_the_kind_are_refused(
    tmp_path: Path, kind: str, labels: tuple[str, ...], message: str
) -> None:
    data = texts(tmp_path / "data.csv", labels, rows=5, gold=0)
    with pytest.raises(LabelError, match=re.escape(message)):
        pcs.run(data, tmp_path / "run", models=[one_step_off(0, 0)], labels=labels, kind=kind)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("kind", "promise", "message"),
    [
        ("one", "off-by-more-than-one", 'is for the steps of a scale: use kind = "scale"'),
        ("tree", "false-discoveries", "is not possible for a tree: use error-among-accepted"),
    ],
)
def test_promises_that_are_not_about_such_labels_are_refused(
    tmp_path: Path, kind: str, promise: str, message: str
) -> None:
    data = texts(tmp_path / "data.csv", PATHS, rows=5, gold=0)
    with pytest.raises(ConfigError, match=re.escape(message)):
        pcs.run(data, tmp_path / "run", models=[another_leaf(0, 0)], labels=PATHS, kind=kind, promise=promise)


def test_numbers_in_the_gold_column_are_put_in_order_and_words_are_not(tmp_path: Path) -> None:
    ten = tuple(str(number) for number in range(1, 11))
    data = texts(tmp_path / "data.csv", ten, rows=80, gold=80)

    def right(question: str) -> str:
        return f"<label>{ten[truth_in(question, ten)]}</label>"

    plain: Any = {"optimiser": "majority", "relations": ["original"], "text": False}
    made = pcs.run(data, tmp_path / "run", models=[right], kind="scale", **plain)
    assert made.config.task.labels == ten
    words = texts(tmp_path / "words.csv", ("low", "middle", "high"), rows=20, gold=20)
    with pytest.raises(LabelError, match="labels that are words have no order"):
        pcs.run(words, tmp_path / "other", models=[right], kind="scale")


def test_a_scale_without_gold_has_the_median_answer(tmp_path: Path) -> None:
    data = texts(tmp_path / "data.csv", STEPS, rows=12, gold=0)
    models = [one_step_off(number, 0) for number in range(3)]
    pcs.run(data, tmp_path / "run", models=models, labels=STEPS, kind="scale", relations=["original"])
    rows = read_csv(tmp_path / "run" / "labels.csv")
    assert all(row["pcs_label"] in row["text"] for row in rows)
    assert "pcs_low" not in rows[0]
    assert json.loads((tmp_path / "run" / "variables/label/model.json").read_text())["shape"]["kind"] == "scale"


@pytest.mark.parametrize(("kind", "labels", "more"), [("scale", STEPS, "within_one"), ("tree", PATHS, "level")])
def test_a_service_says_what_the_kind_adds(tmp_path: Path, kind: Any, labels: tuple[str, ...], more: str) -> None:
    data = texts(tmp_path / "data.csv", labels, rows=80, gold=60)
    few = few_resamples(tmp_path)
    pcs.run(data, tmp_path / "run", models=["scripted:hash"], labels=labels, kind=kind, config=few, **QUICK)

    async def served() -> tuple[Any, Any]:
        async with running(tmp_path / "run") as one:
            return await one.ask("GET", "/openapi.json"), await one.classify("Case 1001 is about nothing.")

    (_, about), (_, said) = asyncio.run(served())
    (item,) = said["data"]
    assert more in item
    schema = about["components"]["schemas"]["Classified"]
    known = json.dumps(schema)
    assert f'"{more}"' in known
    assert ('"war"' in known) == (kind == "tree")


def test_a_variable_of_a_codebook_may_be_a_scale() -> None:
    cells = {"pcs_label": "2", "pcs_confidence": 0.5, "pcs_decision": "review", "pcs_low": "1", "pcs_high": "3"}
    columns = {name: pa.array([cell]) for name, cell in cells.items()}
    found = book_columns({"tone": TaskSettings(labels=STEPS, kind="scale")}, {"tone": columns}, {})
    assert (found["pcs_tone_low"].to_pylist(), found["pcs_tone_high"].to_pylist()) == (["1"], ["3"])
