"""Definitions of labels, written once by a model, and suggestions."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import load_run
from pcs_annotator import run as run_in_python
from pcs_annotator.base.errors import ConfigError, PcsWarning
from pcs_annotator.core.outcome import COPY_OF_GOLD
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, RelationSettings, Saving, TaskSettings
from pcs_annotator.studies.methods_text import methods_of
from pcs_annotator.verbs.plan import plan
from tests.builders import the
from tests.command_line import Pcs
from tests.simulated import label, read_csv, run, simulated_models, truth_of, write_texts

DEFINED = ("original", "definitions", "suggestion", "suggestion:2")
SENTENCES = {"good": "The text is about good.", "bad": "The text is about bad."}


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[..., RunRequest]:
    data = write_texts(tmp_path / "data.csv", range(100), 60)

    def make(model: str = "simulated:large@92", relations: tuple[str, ...] = (), **task: Any) -> RunRequest:
        config = Config(
            task=TaskSettings(labels=("good", "bad"), **task),
            ask=AskSettings(models=(model,)),
            relations=RelationSettings(use=relations),
        )
        return RunRequest(data=data, folder=tmp_path / "run", config=config, environment={}, to_label=0)

    return make


def test_definitions_are_written_once_and_kept(request_of: Callable[..., RunRequest]) -> None:
    with simulated_models():
        planned = plan(request_of())
        first, again = run(request_of()), run(request_of())
    assert planned.defines
    assert the(planned.panel).relations == DEFINED == first.votes.relations
    assert (first.config.task.definitions, first.tally.calls) == (SENTENCES, 400)
    assert sum(bill.calls for bill in first.bills) == 401
    assert (again.config.task.definitions, again.tally.calls) == (SENTENCES, 0)
    assert sum(bill.calls for bill in again.bills) == 401
    assert "good: The text is about good" in methods_of(first)
    with simulated_models():
        assert not plan(request_of(definitions=SENTENCES)).defines


def test_gold_rows_that_define_labels_are_not_learned_from(request_of: Callable[..., RunRequest]) -> None:
    with simulated_models():
        result = run(request_of())
    shown = sum(sum(truth_of(row) == label for row in range(60)) // 20 for label in SENTENCES)
    assert len(result.config.task.defined_by) == shown == 2
    kept = Run.open(result.folder.home).gold
    assert result.learned.model.gold_rows == 60 - shown == sum(label is not None for label in kept.labels)
    # their label is gold's all the same, also of their copies, and nobody labels them again
    rows = read_csv(result.folder.labels)
    assert [row["pcs_final_label"] for row in rows[:60]] == [truth_of(row) for row in range(60)]
    review = [row["pcs_decision"] == "review" for row in rows]
    assert (result.counts.settled, result.counts.to_review) == (sum(review[:60]), sum(review[60:]))
    defining = [row for row, label in enumerate(kept.labels[:60]) if label is None]
    assert len(defining) == shown
    with simulated_models(), load_run(result.folder.home) as loaded:
        copies = loaded.label([f" Case {row} looks {truth_of(row)}." for row in defining])
    assert [outcome.label for outcome in copies] == [truth_of(row) for row in defining]
    assert {outcome.reason for outcome in copies} == {COPY_OF_GOLD}


def test_definitions_and_suggestions_are_asked_in_the_order_of_their_worth_until_the_label_is_settled(
    request_of: Callable[..., RunRequest], tmp_path: Path
) -> None:
    with simulated_models():
        result = run(request_of())
        spending = result.learned.spending
        new = RunRequest(
            data=write_texts(tmp_path / "new.csv", range(1000, 1060)), folder=tmp_path / "run", config=Config()
        )
        needed, everything = label(new, None), label(new, None, Saving(ask="all"))
    assert spending is not None
    order = [result.votes.relations[cell.relation] for cell in the(needed.frugal).strategy.order]
    assert sorted(order) == sorted(DEFINED)
    assert spending.by_relation[order[0]] == 1.0
    assert spending.by_relation[order[-1]] < 1.0
    tally = needed.tally
    assert tally.questions + tally.spared == everything.tally.questions == 4 * 60
    assert tally.questions / 240 == pytest.approx(spending.questions, abs=0.1)
    assert [outcome.label for outcome in needed.outcomes] == [outcome.label for outcome in everything.outcomes]


def test_definitions_of_ones_own_are_shown_under_the_relation_only(request_of: Callable[..., RunRequest]) -> None:
    with simulated_models():
        own = {"good": "Praise.", "bad": "A complaint."}
        result = run(request_of(definitions=own, relations=("original", "definitions")))
    assert (result.config.task.definitions, result.config.task.defined_by) == (own, ())
    assert sum(bill.calls for bill in result.bills) == 200


def silent(text: str) -> str:
    """Answer with a label, whatever is asked."""
    return ("good", "bad")[len(text) % 2]


def test_a_model_that_writes_no_definitions_is_asked_without_them(tmp_path: Path) -> None:
    data = write_texts(tmp_path / "data.csv", range(20), 0)
    with pytest.warns(PcsWarning, match="wrote no definitions of the labels"):
        result = run_in_python(data, tmp_path / "run", models=[silent], labels=["good", "bad"])
    assert result.votes.relations == ("original", "suggestion", "suggestion:2")
    named: dict[str, Any] = {"labels": ["good", "bad"], "relations": ["original", "definitions"]}
    with pytest.raises(ConfigError, match=r"write them into \[task.definitions\]"):
        run_in_python(data, tmp_path / "other", models=[silent], **named)


def repeating(text: str) -> str:
    """Write definitions that repeat the texts that are shown, or good ones if none are shown."""
    if "LABEL: SENTENCE" not in text:
        return silent(text)
    return "good: looks good\nbad: looks bad" if "between tags" in text else "good: Praise.\nbad: A complaint."


def test_a_model_that_repeats_gold_rows_is_asked_without_them(tmp_path: Path) -> None:
    data = write_texts(tmp_path / "data.csv", range(100), 60)
    result = run_in_python(data, tmp_path / "run", models=[repeating], labels=["good", "bad"], relations=list(DEFINED))
    task = result.config.task
    assert (task.definitions, task.defined_by) == ({"good": "Praise.", "bad": "A complaint."}, ())


def test_pcs_plan_says_that_a_model_defines_the_labels(request_of: Callable[..., RunRequest], pcs: Pcs) -> None:
    printed = pcs("plan", request_of().data, "--model", "scripted:hash", "--labels", "good,bad")
    assert "a model writes a sentence about each label" in printed


def test_definitions_and_suggestions_need_a_question_of_their_own(
    request_of: Callable[..., RunRequest], tmp_path: Path
) -> None:
    request = request_of(relations=("original", "suggestion:3"))
    with simulated_models(), pytest.raises(ConfigError, match="there are only 2 labels: leave it out"):
        run(request)
    together = replace(
        request_of().config,
        variables={name: TaskSettings(labels=("good", "bad")) for name in ("mood", "tone")},
        relations=RelationSettings(use=("original", "definitions")),
    )
    data = tmp_path / "texts.csv"
    data.write_text("text\nA fine day.\nA bad day.\n", encoding="utf-8")
    with simulated_models(), pytest.raises(ConfigError, match="ask --separately"):
        run(replace(request, data=data, config=together))
