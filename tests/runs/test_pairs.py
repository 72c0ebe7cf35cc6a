"""Whole runs that compare two texts; the relation `order` swaps them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pcs_annotator as pcs
from pcs_annotator import Task
from pcs_annotator.asking.engine.job import QuestionForm
from pcs_annotator.base.errors import ConfigError, LabelError, TableError
from pcs_annotator.core.task import BETWEEN, Phrasing, pair_text, usual_instruction
from pcs_annotator.core.votes import Vote
from pcs_annotator.faces.cli.main import main
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.relations.question import LabelOrder
from pcs_annotator.reviewing.session import Review
from pcs_annotator.runs.default_panel import hard_questions
from pcs_annotator.tables.chunks import Columns, TableStream
from tests.simulated import read_csv, write_csv
from tests.stub.behaviour import pick

QUICK: Any = {"optimiser": "uniform", "text": False, "max_error": 0.1}
SHOWN = re.compile(r"a:\nAnswer (\d+) is worth (\d)\.\n\nb:\nAnswer \d+ is worth (\d)\.")


def judge(number: int = 0, bias: int = 0) -> Callable[[str], str]:
    """Return a model that prefers the better text, but in some of 100 cases the one that it reads first."""

    def answers(question: str) -> str:
        row, first, second = SHOWN.findall(question)[-1]
        if pick(100, row, "bias", str(number)) < bias:
            return "<label>a</label>"
        return f"<label>{'tie' if first == second else 'a' if first > second else 'b'}</label>"

    answers.__name__ = f"judge_{number}"
    return answers


def pairs(path: Path, rows: int = 90, gold: int = 60) -> Path:
    found = []
    for row in range(rows):
        one, other = (pick(9, side, str(row)) + 1 for side in ("one", "other"))
        label = "tie" if one == other else "a" if one > other else "b"
        texts = {"left": f"Answer {row} is worth {one}.", "right": f"Answer {row} is worth {other}."}
        found.append({"id": f"p{row}", **texts, "gold": label if row < gold else ""})
    return write_csv(path, found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    relations = ["original", "order"]
    data, models = pairs(tmp_path / "data.csv"), [judge(number) for number in range(2)]
    pcs.run(data, tmp_path / "run", pair=("left", "right"), models=models, relations=relations, **QUICK)
    return tmp_path / "run"


def test_a_run_says_which_of_two_texts_is_better(folder: Path) -> None:
    rows = read_csv(folder / "labels.csv")
    assert {row["pcs_label"] for row in rows} == {"a", "b", "tie"}
    assert all(row["pcs_label"] == row["gold"] for row in rows[:60])
    assert rows[0]["left"].startswith("Answer 0"), "the user's columns stay as they are"
    assert "Answer 0 is worth" in (folder / "report.html").read_text()


def test_new_pairs_are_in_columns_called_as_in_the_run(folder: Path, tmp_path: Path) -> None:
    found = pcs.label(pairs(tmp_path / "new.csv", 95, 95), folder, models=[judge(0), judge(1)])
    assert [one.label for one in found.outcomes] == [row["gold"] for row in read_csv(tmp_path / "new.csv")]
    other = pa.table({"left": ["Answer 7 is worth 1."], "right": ["Answer 7 is worth 3."]})
    with pcs.load_run(folder, models=[judge(0), judge(1)]) as run:
        assert run.label_table(other)["pcs_label"].to_pylist() == ["b"]
        assert run.label(other)[0].label == "b"
        assert run.label("Answer 7 is worth 1.").label is None, "half a pair is no pair"


def test_the_review_page_shows_both_texts_under_their_labels(folder: Path) -> None:
    with Review.open(folder) as review:
        shown = review.show("p3", "ann")
        assert re.fullmatch(r"a:\nAnswer 3 .*\n\nb:\nAnswer 3 .*", shown.text)
        assert not shown.columns, "neither the texts nor gold are among the other columns"


def test_a_swap_takes_the_advantage_of_the_first_text_away(tmp_path: Path) -> None:
    data, shares = pairs(tmp_path / "data.csv", 200, 0), []
    for relations in (["original"], ["original", "order"]):
        place = tmp_path / f"run{len(relations)}"
        models = [judge(number, 40) for number in range(3)]
        how: Any = {"relations": relations, "text": False}
        found = pcs.run(data, place, pair=("left", "right"), models=models, **how)
        scores = [one.scores for one in found.outcomes]
        shares.append(sum(one.get("a", 0) - one.get("b", 0) for one in scores) / len(scores))
    assert shares[0] > 0.3
    assert abs(shares[1]) < 0.08


def test_texts_that_are_equally_good_are_a_tie() -> None:
    shape, even = LabelShape.of("pair", ("b", "a", "tie")), np.array([[0.4, 0.4, 0.2], [0.4, 0.2, 0.4]])
    assert shape.choose(even, ("a", "b", "tie")).tolist() == [2, 0]
    assert LabelShape.of("pair", ("a", "b")).choose(np.array([[0.5, 0.5]]), ("a", "b")).tolist() == [0]


def test_answers_about_swapped_texts_are_mapped_back() -> None:
    task = Task(usual_instruction(("a", "b", "tie"), "pair"), ("a", "b", "tie"), pair=(0, 1))
    form = QuestionForm.of(Phrasing(task=task), [], LabelOrder())
    vote = form.in_task_order(Vote(label="a", grades=(0.7, 0.2, 0.1), stated=(0.6, 0.3, 0.1)))
    assert (vote.label, vote.grades, vote.stated) == ("b", (0.2, 0.7, 0.1), (0.3, 0.6, 0.1))
    assert form.in_task_order(Vote(label="tie")).label == "tie"
    assert form.task.shown_pair(pair_text("x", "y")) == "a:\ny\n\nb:\nx"
    assert task.instruction == "Which of the two texts is better: a, b, tie?"


def test_long_texts_are_both_cut_and_examples_are_pairs_too() -> None:
    class Short:
        name, context_tokens, can_constrain, can_grade = "fake:short", 700, False, False

    text = pair_text("first " * 2000, "second " * 2000)
    example = pcs.Example(pair_text("good", "bad"), "a")
    task = Task("Which is better?", ("a", "b"), examples=[example], pair=(1, 0))
    model: Any = Short()
    question: Any = pcs.Annotator("fake:short").question(task, text, model)
    seen = [message.content for message in question.request.messages]
    assert "a:\nbad\n\nb:\ngood" in seen[1]
    assert "<label>b</label>" in seen[2]
    assert re.search(r"a:\n(second )+\[…\]( second)+\n\nb:\n(first )+\[…\]( first)+\n", seen[3])
    assert question.cut > 20_000


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"relations": ["original", "case"]}, ConfigError, "rewrites a text, and a pair has two"),
        ({"relations": ["original", "order:rotated"]}, ConfigError, "a pair has one other order"),
        ({"labels": ["a", "b", "tie", "d"]}, LabelError, "a label for each text"),
        ({"kind": "scale", "labels": ["a", "b", "tie"]}, ConfigError, "compared by one label"),
        ({"pair": ("left", "middle")}, TableError, "has no column 'middle' .--pair."),
        ({"pair": (), "kind": "pair", "text_column": "left"}, ConfigError, "name two columns with --pair"),
        ({"pair": ("left",)}, ConfigError, "name two columns"),
    ],
)
def test_what_cannot_be_done_with_pairs_is_said(
    given: dict[str, Any], error: type[Exception], says: str, tmp_path: Path
) -> None:
    how: Any = {"pair": ("left", "right"), "models": [judge()], **QUICK, **given}
    with pytest.raises(error, match=says):
        pcs.run(pairs(tmp_path / "data.csv"), tmp_path / "run", **how)


def test_a_plan_asks_about_pairs_in_both_orders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = pairs(tmp_path / "data.csv", 12, 0)
    assert main(["plan", str(data), "--pair", "left,right", "--model", "scripted:hash"]) == 0
    assert "order" in capsys.readouterr().out


def test_usual_questions_about_pairs_are_asked_in_both_orders() -> None:
    task = Task("Which is better?", ["a", "b", "tie"], pair=(0, 1))
    assert hard_questions(task) == ("original", "order", "wording", "wording+order")


def test_a_single_column_may_have_the_sign_of_a_pair_in_its_name() -> None:
    table = pa.table({"a | b": ["one", None], "n": ["1", "2"]})
    stream = TableStream.of(table, "data", Columns(text="a | b"))
    assert [item.text for item in stream.read().items] == ["one", ""]
    assert stream.check_ids() == 2
    assert pair_text(f"one{BETWEEN}more", " two ") == f"one\n\nmore{BETWEEN}two"
