"""`run`, `label` and `evaluate` from Python leave and return what the commands do."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from inspect import signature
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pcs_annotator import (
    Annotator,
    RunResult,
    UserError,
    aevaluate,
    alabel,
    arun,
    evaluate,
    label,
    load_run,
    relation,
    run,
)
from pcs_annotator.base.errors import ConfigError, GoldError, TableError, UnknownNameError
from pcs_annotator.runs.paths import read_start
from pcs_annotator.runs.settings import all_settings
from tests.builders import simulated_votes

pytestmark = pytest.mark.system  # whole runs, one after the other

RELATIONS = ["original", "case", "frame"]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "posts.csv"
    rows = [f"{row},I'm at post number {row}.,{('good', 'bad')[row % 2]}" for row in range(30)]
    path.write_text("\n".join(["id,text,gold", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A run that several tests only read and label with."""
    table = {"text": [f"I'm at post number {row}." for row in range(30)], "gold": ["good", "bad"] * 15}
    folder = tmp_path_factory.mktemp("fitted") / "run"
    return run(table, folder, models=["scripted:hash"], relations=RELATIONS, optimiser="lr")


def test_a_run_from_python_leaves_labels_model_and_report(data: Path) -> None:
    result = run(str(data), models=["scripted:hash"], relations=RELATIONS, optimiser="lr", limit=28)
    assert result.folder.path == Path("runs/posts")
    assert len(result.outcomes) == 28
    for path in (result.folder.labels, result.folder.model, result.folder.report):
        assert path.stat().st_size
    again = run(data, models=["scripted:hash"], relations=RELATIONS, optimiser="lr", limit=28)
    assert again.tally.calls == 0
    assert again.tally.from_ledger == result.tally.calls


def test_a_config_file_is_read_where_named_and_arguments_win(data: Path) -> None:
    Path("pcs.toml").write_text('[ask]\nmodels = ["scripted:hash"]\n[relations]\nuse = ["original"]\n')
    with pytest.raises(ConfigError, match="model"):
        run(data)
    result = run(data, "here", config="pcs.toml", relations=["original", "frame"])
    assert result.votes.relations == ("original", "frame")
    assert result.folder.path == Path("here")


def test_new_texts_are_labelled_with_a_fitted_run(data: Path, fitted: RunResult) -> None:
    found = label(data, fitted.folder.path, ask="all", limit=5)
    assert len(found.outcomes) == 5
    assert found.out == data.with_name("posts-labels.csv")
    assert found.out.exists()


def test_votes_are_evaluated_with_the_methods_named() -> None:
    votes, gold = simulated_votes([0.9, 0.7], items=60)
    found = evaluate(votes, gold, ["lr", "majority"], repeats=1, resamples=50)
    assert [one.method for one in found.evaluation.methods] == ["lr", "majority"]
    with pytest.raises(GoldError, match="no gold"):
        evaluate(votes, [None] * 60, ["lr"])


@pytest.mark.parametrize("call", [run, lambda data, **wrong: label(data, "here", **wrong)])
def test_an_unknown_setting_is_refused_with_those_that_exist(call: object, data: Path) -> None:
    with pytest.raises(ConfigError, match="modles"):
        call(data, modles=["scripted:hash"])  # type: ignore[operator]  # either of two functions


def test_a_single_text_is_no_list_of_labels(data: Path) -> None:
    with pytest.raises(ConfigError, match="labels"):
        run(data, labels="good", models=["scripted:hash"])


@pytest.mark.parametrize(("call", "names"), [(run, "max_error limit"), (label, "ask audit"), (load_run, "ask")])
def test_settings_are_in_signature_and_documentation_as_the_table_has_them(call: object, names: str) -> None:
    listed = signature(call).parameters  # type: ignore[arg-type]  # a function
    for name in [*names.split(), "models", "prices"]:
        setting = all_settings()[name][1]
        assert f"`{name}`: {setting.help}" in str(call.__doc__)
        assert listed[name].default == setting.default


TEXTS = [f"I'm at post number {row}." for row in range(12)]
IN_MEMORY: dict[str, Callable[[], object]] = {
    "list": lambda: list(TEXTS),
    "tuple": lambda: tuple(TEXTS),
    "dict": lambda: {"text": TEXTS},
    "arrow": lambda: pa.table({"text": TEXTS}),
    "pandas": lambda: pd.DataFrame({"text": TEXTS}, index=range(100, 112)),
    "column": lambda: pd.Series(TEXTS),
    "polars": lambda: pl.DataFrame({"text": TEXTS}),
    "polars column": lambda: pl.Series(TEXTS),
    "array": lambda: np.array(TEXTS),
    "arrow column": lambda: pa.chunked_array([TEXTS]),
    "iterator": lambda: iter(TEXTS),
}


def run_hash(data: object, **more: object) -> object:
    usual = {"labels": ["good", "bad"], "models": ["scripted:hash"], "relations": ["original"]}
    return run(data, **{**usual, **more})  # type: ignore[arg-type]  # passed on


def test_texts_in_memory_are_run_like_those_of_a_file_and_a_second_run_asks_nothing(data: Path) -> None:
    first = run(IN_MEMORY["list"](), labels=["good", "bad"], models=["scripted:hash"], relations=["original"])
    assert first.tally.calls == 12
    assert first.folder.path == Path("runs/table")
    noted = read_start(first.folder)
    assert noted["data"] == "the table of 12 rows"
    assert noted["data_hash"]
    for kind, make in IN_MEMORY.items():
        again = run(make(), labels=["good", "bad"], models=["scripted:hash"], relations=["original"])
        assert again.tally.calls == 0, kind
        assert again.outcomes == first.outcomes, kind


def test_other_texts_do_not_replace_results_unasked(data: Path) -> None:
    run_hash(TEXTS)
    with pytest.raises(ConfigError, match="runs/table has results of other data"):
        run_hash(TEXTS[::-1])


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"answers": "logprobs"}, "answers is 'logprobs', must be one of 'auto', 'graded', 'hard'"),
        ({"calibration": "platt"}, "calibration is 'platt', must be one of"),
    ],
)
def test_a_value_that_no_run_folder_could_be_opened_with_is_refused(
    setting: dict[str, Any], words: str, data: Path
) -> None:
    with pytest.raises(ConfigError, match=words):
        run(data, "new", labels=["good", "bad"], models=["scripted:hash"], **setting)
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("wrong", "words"), [([*TEXTS, 3.5], "number 13 of the list is a float"), (7, "cannot read a int as a table")]
)
def test_what_is_no_table_is_refused_by_name(wrong: object, words: str, data: Path) -> None:
    with pytest.raises(TableError, match=words):
        run_hash(wrong)


def test_a_table_in_memory_is_labelled_without_a_file(data: Path, fitted: RunResult) -> None:
    found = label(pd.DataFrame({"text": TEXTS}), fitted.folder.path)
    assert found.out is None
    assert len(found.outcomes) == 12
    assert label(TEXTS, fitted.folder.path, "labels.csv").out == Path("labels.csv")
    assert Path("labels.csv").exists()


def answer(question: str) -> str:
    return f"<label>{('good', 'bad')[crc32(question.encode()) % 2]}</label>"


def loudly_said(text: str) -> str | None:
    return text.upper() if "1" in text else None


def test_functions_stand_where_names_do(data: Path) -> None:
    given = [answer, lambda question: answer(question + "!"), lambda question: answer(question + "!!"), "scripted:hash"]
    softly = lambda text: text.lower()  # noqa: E731  # a lambda is what is tested
    usual: dict[str, Any] = {"labels": ["good", "bad"], "models": given, "relations": ["original", loudly_said, softly]}
    result = run(TEXTS, "here", **usual)
    names = result.votes.annotators
    assert names[0] == "answer"
    assert names[3] == "scripted:hash"
    assert len(set(names)) == 4
    assert all(name.startswith("lambda_") for name in names[1:3])
    assert result.votes.relations[:2] == ("original", "loudly_said")
    assert result.votes.relations[2].startswith("lambda_")
    assert run(TEXTS, "here", **usual).tally.calls == 0
    with load_run(result) as loaded:
        assert loaded.label("It's a new post 1.").label in ("good", "bad")
    with load_run("here") as loaded, pytest.raises(ConfigError, match=r"'answer'.*load_run\(folder, models=\["):
        loaded.label("It's a new post.")
    with (
        load_run("here", models=given) as loaded,
        pytest.raises(UnknownNameError, match=r"'loudly_said'.*relations=\["),
    ):
        loaded.label("It's a new post.")
    with load_run("here", models=given, relations=[loudly_said, softly]) as loaded:
        assert loaded.label(["It's a new post 1.", "Another one."])[0] == load_run(result).label("It's a new post 1.")
    assert label(TEXTS, "here", models=given, relations=[loudly_said, softly]).outcomes[0].label


def test_a_function_with_the_name_of_a_model_is_never_taken_for_it(data: Path) -> None:
    named = Annotator(answer, name="gpt-4o-mini")
    run(TEXTS[:4], "out", labels=["good", "bad"], models=[named], relations=["original"])
    with pytest.raises(ConfigError, match="'gpt-4o-mini' was a Python function or object when this run was made"):
        label(["New."], "out", environment={"OPENAI_API_KEY": "sk-x"})
    assert label(["New."], "out", models=[named])


def test_a_function_rewrites_and_an_annotator_keeps_its_name(data: Path) -> None:
    def rewrite(question: str) -> str:
        return "Something else."

    mine = Annotator(answer, name="mine")
    relations = ["original", "llm:paraphrase"]
    result = run(TEXTS[:3], labels=["good", "bad"], models=[mine], relations=relations, rewriter=rewrite)
    assert result.votes.annotators == ("mine",)
    assert {bill.purpose for bill in result.bills} == {"label", "rewrite"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"models": [answer, answer]}, "'answer_[0-9a-f]{6}' is named twice.*name="),
        ({"relations": [loudly_said, lambda text: text, 3]}, "3 is not a relation: give a name, a function"),
        ({"relations": [str]}, "is not a relation"),
        ({"relations": ["original", lambda text: 1]}, "returned int, not a string"),
        ({"relations": ["original", lambda text: text.nothing]}, "raised AttributeError.*return None"),
        ({"relations": ["original", "shuoted"]}, "no relation is called 'shuoted'"),
    ],
)
def test_objects_that_cannot_be_used_are_named_with_the_remedy(
    wrong: dict[str, object], words: str, data: Path
) -> None:
    with pytest.raises(UserError, match=words):
        run_hash(TEXTS, **wrong)


def test_a_registered_function_may_be_given_itself_and_defined_again(data: Path) -> None:
    def define(ending: str) -> Callable[[str], str]:
        @relation("tests-ending")
        def ended(text: str) -> str:
            return f"{text[:-1]}{ending}"

        return ended

    define("?")
    ended = define("!")
    result = run(TEXTS, labels=["good", "bad"], models=["scripted:hash"], relations=["original", ended])
    assert result.votes.relations == ("original", "tests-ending")
    with pytest.raises(ValueError, match="already registered"):
        relation("tests-ending")(loudly_said)


def test_a_loaded_run_has_what_the_run_found_out(fitted: RunResult) -> None:
    result = fitted
    with load_run(result.folder.path) as loaded:
        assert loaded.outcomes() == result.outcomes
        assert loaded.votes.codes.tolist() == result.votes.codes.tolist()
        assert loaded.weights.by_relation == result.weights.by_relation == loaded.model.weights.by_relation
        assert loaded.certificate == result.certificate
        assert loaded.labels == ("bad", "good")
        one = loaded.label("I'm at post number 3.")
        assert (one.id, one.label) == ("1", loaded.label(["I'm at post number 3."], ids=["x"])[0].label)
        several = loaded.label(iter(TEXTS), ids=range(50, 62))
        assert [outcome.id for outcome in several][:2] == ["50", "51"]
        (silent,) = loaded.label([" "])
        assert (silent.label, silent.decision, silent.reason) == (None, "review", "no text")
        with pytest.raises(TableError, match="12 texts and 1 ids"):
            loaded.label(TEXTS, ids=[1])
        assert [one.reason for one in loaded.label(["I'm at post number 3.", None])][1] == "no text"
        assert loaded.label([]) == []
        result.folder.report.unlink()
        page = loaded.report()
        assert Path(page) == result.folder.report
        assert "<!DOCTYPE html>" in Path(page).read_text()
        assert str(result.report()) == str(page)


def test_async_twins_leave_the_loop_free(data: Path, fitted: RunResult) -> None:
    async def ticking(work: Coroutine[None, None, object]) -> object:
        ticks = 0
        waiting = asyncio.ensure_future(work)
        while not waiting.done():
            ticks += 1
            await asyncio.sleep(0)
        assert ticks > 10
        return waiting.result()

    async def main() -> None:
        result = await ticking(arun(TEXTS, labels=["good", "bad"], models=["scripted:hash"], relations=["original"]))
        assert isinstance(result, RunResult)
        found = await alabel(data, fitted.folder.path, ask="all", limit=5)
        assert len(found.outcomes) == 5
        with load_run(fitted) as loaded:
            several = await ticking(loaded.alabel(TEXTS))
            assert several == loaded.label(TEXTS)
            assert await loaded.alabel(TEXTS[0]) == loaded.label(TEXTS[0])
        votes, gold = simulated_votes([0.9, 0.7], items=40)
        assert (await aevaluate(votes, gold, ["lr"], repeats=1, resamples=10)).evaluation.methods

    asyncio.run(main())


@pytest.mark.asyncio
async def test_a_cancelled_run_keeps_its_answers_and_the_next_one_resumes(data: Path) -> None:
    asked: list[str] = []
    going_on = threading.Event()

    def slow(question: str) -> str:
        asked.append(question)
        if len(asked) > 7:
            going_on.wait(0.2)
        return answer(question)

    mine = Annotator(slow, name="slow", version="1")  # its version says that the list does not change what it answers

    usual: dict[str, Any] = {"labels": ["good", "bad"], "models": [mine], "relations": ["original"]}
    usual["concurrency"] = 1
    waiting = asyncio.ensure_future(arun(TEXTS, **usual))
    while len(asked) < 8:
        await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert 8 <= len(asked) < 12
    going_on.set()
    result = run(TEXTS, **usual)
    assert len(asked) <= 13  # at most the call that was under way is made again
    assert result.tally.from_ledger >= 7


def test_without_a_limit_of_errors_nothing_is_promised(data: Path) -> None:
    found = run(data, models=["scripted:hash"], labels=["good", "bad"], relations=["original"], max_error=None)
    assert found.learned.model.certificate is None
    assert found.config.learn.max_error is None
