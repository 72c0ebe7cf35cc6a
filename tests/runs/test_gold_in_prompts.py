"""Gold rows in prompts, as examples chosen for each text and kept in the run folder; definitions of labels."""

import asyncio
import csv
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcs_annotator import (
    Annotator,
    CollectSettings,
    Example,
    Item,
    PcsWarning,
    Task,
    UserError,
    Votes,
    collect,
    load_run,
    run,
)
from pcs_annotator.asking.engine.job import Job, make_plan
from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.chat import Request
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.ngrams import NearestExamples, text_key
from pcs_annotator.core.outcome import COPY_OF_GOLD
from pcs_annotator.judging.fit_model import Learning
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.relations.base import Original
from pcs_annotator.relations.question import WithExamples
from pcs_annotator.reviewing.run_rows import asked_questions
from pcs_annotator.runs import ask
from pcs_annotator.runs.ask import open_job
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.resolve_config import settings_of
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, RelationSettings, Saving, TaskSettings
from pcs_annotator.studies.methods_text import methods_of
from pcs_annotator.verbs.fit import open_run
from pcs_annotator.verbs.plan import plan
from tests.builders import learn_model, the
from tests.command_line import Pcs
from tests.judging.written import LABELS, written
from tests.simulated import label, read_csv, simulated_models, truth_of, write_texts
from tests.simulated import run as run_request

SPORT = "<label>sport</label>"


def write_data(path: Path, gold_rows: int, rows: int = 60) -> Path:
    texts, gold = written(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "gold"])
        writer.writerows(
            [row, text, LABELS[code] if row < gold_rows else ""]
            for row, (text, code) in enumerate(zip(texts, gold.tolist(), strict=True))
        )
    return path


class Copying:
    """Opens a model that answers with the label of the first example, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[dict[str, str]]] = []

    def open(self, model: str, environment: object) -> ScriptedModel:
        def answer(request: Request) -> str:
            self.asked.append([{"role": turn.role, "content": turn.content} for turn in request.messages])
            return next((turn.content for turn in request.messages if turn.role == "assistant"), SPORT)

        return ScriptedModel(answer, name=f"copying:{model}")

    def shown(self, text: str) -> list[str]:
        """Return the texts of the examples that came with a text."""
        asked = next(one for one in self.asked if f"\n{text}\n" in one[-1]["content"])
        return [turn["content"].split("\n")[2] for turn in asked[1:-1] if turn["role"] == "user"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Copying:
    made = Copying()
    monkeypatch.setitem(providers._factories, "copying", lambda: made)
    return made


def settings(**more: Any) -> dict[str, Any]:
    return {"models": ["copying:model"], "relations": ["original"], "answers": "hard", "optimiser": "majority", **more}


@pytest.mark.system
def test_each_text_is_asked_about_with_the_nearest_gold_rows_and_never_with_itself(
    server: Copying, tmp_path: Path
) -> None:
    data, texts = write_data(tmp_path / "data.csv", 40), written(60)[0]
    result = run(data, tmp_path / "run", examples="gold:3", **settings())
    assert len(server.asked) == 60
    assert len({turns[0]["content"] for turns in server.asked}) == 1  # what comes first is the same for all texts
    for row, text in enumerate(texts):
        shown = server.shown(text)
        assert len(shown) == 3
        assert text not in shown
        assert {*shown} <= {*texts[:40]}, row
    assert result.learned.model.gold_rows == 40
    bank = NearestExamples([Example(text, "sport") for text in sorted(texts[:40], key=text_key)])
    assert server.shown(texts[50]) == [one.text for one in bank.of(texts[50], 3)]

    # gold grows: the examples stay, so nothing is asked again
    run(write_data(data, 50), tmp_path / "run", examples="gold:3", **settings())
    assert len(server.asked) == 60
    assert open_run(tmp_path / "run").learned.model.gold_rows == 50
    new = "the keeper and the coach of the cup"
    with load_run(tmp_path / "run") as loaded:
        assert loaded.label([texts[3], new])[0].label in LABELS  # a gold text is asked about as it was
    assert len(server.asked) == 61
    assert {*server.shown(new)} <= {*texts[:40]}

    # the same questions for other data
    other = write_data(tmp_path / "other.csv", 0)
    run(other, tmp_path / "other", config=tmp_path / "run", ledger=tmp_path / "run" / "ledger.db", optimiser="majority")
    assert len(server.asked) == 61
    # everything anew
    with pytest.warns(PcsWarning, match="the answers so far are kept"):
        result = run(data, tmp_path / "run", examples="gold:3", fresh=True, **settings())
    assert len(server.asked) == 121
    assert len(result.config.task.examples) == 50
    # other data in the same folder have other examples
    with data.open("w", encoding="utf-8") as file:
        file.write("id,text,gold\n0,a cup,sport\n1,a loan,money\n2,a match,\n")
    with pytest.warns(PcsWarning, match="the old results are kept"):
        result = run(data, tmp_path / "run", examples="gold:3", replace=True, **settings())
    assert sorted(server.shown("a match")) == ["a cup", "a loan"]


def test_a_rewrite_is_asked_about_with_the_examples_of_its_text(server: Copying, tmp_path: Path) -> None:
    data, texts = write_data(tmp_path / "data.csv", 60), written(60)[0]
    relations = ["original", "typo"]
    run(data, tmp_path / "run", examples="gold", **settings(relations=relations))
    for turns in server.asked:
        text = turns[-1]["content"].split("\n")[2]
        number = re.findall(r"\d+", text)[-1]
        shown = [turn["content"].split("\n")[2] for turn in turns[1:-1] if turn["role"] == "user"]
        assert len(shown) == 8
        assert f"item{number}" not in " ".join(shown).split()  # a text with a typo is most like itself
    assert len(server.asked) > len(texts)


def test_the_relation_asks_with_examples_and_the_others_without(server: Copying, tmp_path: Path) -> None:
    data, texts = write_data(tmp_path / "data.csv", 40), written(60)[0]
    relations = ["original", "order", "examples", "examples:2"]
    result = run(data, tmp_path / "run", **settings(relations=relations))
    turns = sorted(len(one) for one in server.asked)
    assert turns == [2] * 120 + [18] * 120
    with_examples = [one for one in server.asked if len(one) == 18 and f"\n{texts[0]}\n" in one[-1]["content"]]
    first, second = ({turn["content"] for turn in one[1:-1] if turn["role"] == "user"} for one in with_examples)
    assert not first & second
    assert result.config.task.nearest == 8
    questions = asked_questions(result.config)
    assert "8 of 40 examples, chosen for it (set 2)" in questions["examples:2"]
    assert "examples" not in questions["order"]
    assert "Examples under the relation examples: the 8 of 40 that are most like its text" in methods_of(result)


def test_gold_that_cannot_be_examples_is_refused_before_any_call(server: Copying, tmp_path: Path) -> None:
    none, one = write_data(tmp_path / "none.csv", 0), write_data(tmp_path / "one.csv", 1)
    for data, given, message in [
        (none, {"examples": "gold", "labels": LABELS}, "--examples gold: none.csv has no gold rows: label some"),
        (
            one,
            {"examples": "gold", "labels": LABELS},
            "--examples gold: all 1 gold rows are 'money', which models would repeat: label rows",
        ),
        (none, {"relations": ["original", "examples"], "labels": LABELS}, "relation 'examples': none.csv has no gold"),
        (one, {"examples": "gold:0"}, "write gold, or gold:4"),
    ]:
        with pytest.raises((GoldError, ConfigError), match=message):
            run(data, tmp_path / "run", **settings(**given))  # type: ignore[arg-type]
    assert not server.asked


def test_a_plan_counts_the_examples(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data.csv", 50)

    def planned(**given: Any) -> Any:
        config = settings_of({"models": ["scripted:hash"], **given})
        return plan(RunRequest(data=data, folder=tmp_path / "run", config=config))

    plain, shown = (planned(relations=["original"], **more) for more in ({}, {"examples": "gold"}))
    assert shown.plan.models[0].input_tokens > 3 * plain.plan.models[0].input_tokens
    assert (plain.examples, shown.examples) == (
        "",
        "Examples in each prompt: the 8 of 50 that are most like its text, never the text itself.",
    )


class Blind(ScriptedModel):
    """A model that gets no examples."""

    without_examples = True


def test_a_model_that_gets_no_examples_is_not_asked_under_the_relation() -> None:
    ask._say_without_examples.cache_clear()
    task = Task("About?", LABELS, examples=[Example("A goal.", "sport"), Example("A loan.", "money")])
    blind, other = Blind(lambda _: "sport", name="blind"), ScriptedModel(lambda _: "sport", name="other")
    with pytest.warns(PcsWarning, match="blind gets no examples, because it repeats their labels"):
        job = open_job(task, [blind, other], ["original", "examples"], CollectSettings())
    assert [job.asked_under(0), job.asked_under(1)] == [[0, 1], [1]]
    asked = Annotator(blind).question(task, "A text.", blind)
    assert len(asked.request.messages) == 2  # type: ignore[union-attr]
    for models, relations in (([blind], ["original", "examples"]), ([blind, other], ["examples"])):
        with pytest.raises(ConfigError, match="relation 'examples': blind gets no examples"):
            open_job(task, models, relations, CollectSettings())


@pytest.mark.parametrize(
    ("nearest", "number", "message"),
    [
        (0, 2, "relation 'examples:2': of 4 examples, all of them are in every prompt"),
        (2, 3, "relation 'examples:3': of 4 examples, that is one set of 2"),
    ],
)
def test_there_are_only_as_many_sets_as_there_are_examples(nearest: int, number: int, message: str) -> None:
    examples = [Example(f"Text {at}.", LABELS[at % 2]) for at in range(4)]
    task = Task("About?", LABELS, examples=examples, nearest=nearest)
    model = ScriptedModel(lambda _: "sport")
    with pytest.raises(ConfigError, match=message):
        open_job(task, [model], ["original", f"examples:{number}"], CollectSettings())
    with pytest.raises(ConfigError, match="there are no examples: label rows"):
        open_job(Task("About?", LABELS), [model], ["original", "examples"], CollectSettings())
    with pytest.raises(UserError, match="numbers start at 2"):
        open_job(task, [model], ["examples:1"], CollectSettings())


def test_a_plan_for_many_texts_chooses_examples_for_the_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcs_annotator.asking.engine.job.CHOSEN_FOR", 2)
    examples = [Example(f"Text number {at}.", LABELS[at % 2]) for at in range(6)]
    model = ScriptedModel(lambda _: "sport")
    task = Task("About?", LABELS, examples=examples, nearest=2)
    job = Job(task=task, annotators=[(Annotator(model), model)], relations=[Original(), WithExamples()])
    planned = make_plan(job, [Item(id=str(at), text=f"Text {at} is new.") for at in range(9)], lambda *_: 0.0)
    assert (planned.rows, planned.calls) == (9, 18)


def test_a_follow_up_question_shows_the_same_examples(tmp_path: Path) -> None:
    examples = [Example(f"Text number {at}.", LABELS[at % 2]) for at in range(6)]
    task = Task("About?", LABELS, examples=examples, nearest=2)
    asked: list[Request] = []

    def answer(request: Request) -> str:
        asked.append(request)
        last = request.messages[-1].content
        return "P1: 0.7\nP2: 0.2" if "What is the probability" in last else "G1: sport\nG2: money"

    annotators = [Annotator(ScriptedModel(answer), elicitation="2s-top-2")]
    votes = asyncio.run(collect(task, ["Text number 3."], annotators, ledger=tmp_path / "ledger.db"))
    assert (votes.codes == 0).all()
    first, second = (one.messages for one in asked)
    assert len(first) == 6
    assert first == second[:6]
    assert "Text number 3." not in "".join(turn.content for turn in first[:5])


def copied(texts: Sequence[str], gold: Codes, bank: int, votes: int = 5) -> Votes:
    """Return the votes of models that copy the label of the nearest example, of the second, and so on."""
    labels = [LABELS[code] for code in gold[:bank].tolist()]
    found = NearestExamples([Example(*pair) for pair in zip(texts[:bank], labels, strict=True)])
    codes = np.array([[LABELS.index(one.label) for one in found.of(text, votes)] for text in texts], dtype=np.int8)
    return Votes(
        codes=codes[:, :, None, None],
        ids=[str(row) for row in range(len(texts))],
        annotators=[f"copies {place}" for place in range(votes)],
        relations=["original"],
        labels=LABELS,
    )


@pytest.mark.system
def test_models_that_copy_the_nearest_gold_label_are_as_good_on_gold_as_on_new_rows_and_the_promise_holds() -> None:
    repetitions, bank, most = 20, 150, 0.1
    broken = accepted = 0
    gaps = []
    for seed in range(repetitions):
        texts, gold = written(400, seed, telling=0.76)
        votes = copied(texts, gold, bank)
        right = votes.codes[:, 0, 0, 0] == gold
        gaps.append(right[:bank].mean() - right[bank:].mean())
        known = np.where(np.arange(400) < bank, gold, UNLABELLED)
        how = Learning(optimiser="uniform", promise=Promise(max_error=most))
        model = learn_model(votes, [LABELS[code] if code != UNLABELLED else None for code in known.tolist()], how)
        verdicts = model.judged(votes)
        taken = the(verdicts.accepted)[bank:]
        accepted += int(taken.sum())
        broken += bool(taken.any() and (verdicts.best != gold)[bank:][taken].mean() > most)
    assert abs(np.mean(gaps)) < 3 * np.std(gaps) / math.sqrt(repetitions)
    assert broken / repetitions <= 0.1 + 2 * math.sqrt(0.1 * 0.9 / repetitions)
    assert accepted > 0.1 * 250 * repetitions


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
        first, again = run_request(request_of()), run_request(request_of())
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
        result = run_request(request_of())
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
        result = run_request(request_of())
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
        result = run_request(request_of(definitions=own, relations=("original", "definitions")))
    assert (result.config.task.definitions, result.config.task.defined_by) == (own, ())
    assert sum(bill.calls for bill in result.bills) == 200


def silent(text: str) -> str:
    """Answer with a label, whatever is asked."""
    return ("good", "bad")[len(text) % 2]


def test_a_model_that_writes_no_definitions_is_asked_without_them(tmp_path: Path) -> None:
    data = write_texts(tmp_path / "data.csv", range(20), 0)
    with pytest.warns(PcsWarning, match="wrote no definitions of the labels"):
        result = run(data, tmp_path / "run", models=[silent], labels=["good", "bad"])
    assert result.votes.relations == ("original", "suggestion", "suggestion:2")
    named: dict[str, Any] = {"labels": ["good", "bad"], "relations": ["original", "definitions"]}
    with pytest.raises(ConfigError, match=r"write them into \[task.definitions\]"):
        run(data, tmp_path / "other", models=[silent], **named)


def repeating(text: str) -> str:
    """Write definitions that repeat the texts that are shown, or good ones if none are shown."""
    if "LABEL: SENTENCE" not in text:
        return silent(text)
    return "good: looks good\nbad: looks bad" if "between tags" in text else "good: Praise.\nbad: A complaint."


def test_a_model_that_repeats_gold_rows_is_asked_without_them(tmp_path: Path) -> None:
    data = write_texts(tmp_path / "data.csv", range(100), 60)
    result = run(data, tmp_path / "run", models=[repeating], labels=["good", "bad"], relations=list(DEFINED))
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
        run_request(request)
    together = replace(
        request_of().config,
        variables={name: TaskSettings(labels=("good", "bad")) for name in ("mood", "tone")},
        relations=RelationSettings(use=("original", "definitions")),
    )
    data = tmp_path / "texts.csv"
    data.write_text("text\nA fine day.\nA bad day.\n", encoding="utf-8")
    with simulated_models(), pytest.raises(ConfigError, match="ask --separately"):
        run_request(replace(request, data=data, config=together))
