"""A codebook under limits, asked again, and with other settings: one command for all variables."""

from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import PCSClassifier
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.models.provider import providers
from pcs_annotator.runs.ledgers import paid_bills
from tests.command_line import Pcs
from tests.verbs.test_variables import CONFIG, CoderProvider, write

pytestmark = pytest.mark.system


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(providers._factories, "coder", CoderProvider)
    monkeypatch.chdir(tmp_path)
    Path("pcs.toml").write_text(CONFIG)
    write("data.csv", range(20), gold=0)


def found(pcs: Pcs, *options: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """Run, and return part → what is said about it."""
    parts: dict[str, dict[str, Any]] = pcs.json("run", "data.csv", *options, code=code)["variables"]
    return parts


def calls(parts: dict[str, dict[str, Any]]) -> int:
    return sum(one["calls"] for one in parts.values())


def left(parts: dict[str, dict[str, Any]]) -> dict[str, int]:
    return {part: one["unanswered"]["budget reached"] for part, one in parts.items()}


def test_a_limit_on_calls_is_one_for_all_variables_and_each_command_has_its_own(pcs: Pcs) -> None:
    first = found(pcs, "--max-calls", "50", code=3)
    assert calls(first) == 50
    assert {*left(first).values()} == {30}  # of 20 texts, two models, two questions; one call is about all variables
    again = found(pcs, "--max-calls", "10", code=3)
    assert (calls(again), {*left(again).values()}) == (10, {20})
    said = pcs("run", "data.csv", "--max-calls", "5", code=3)
    assert "30 questions unanswered: budget reached; to ask them, run again with a higher --budget" in said
    assert "next the same command with a higher limit: it asks only what is missing" in said
    assert calls(found(pcs)) == 15
    assert "next pcs review runs/data" in pcs("run", "data.csv")


def test_variables_asked_separately_share_a_limit_and_the_first_comes_first(pcs: Pcs) -> None:
    parts = found(pcs, "--separately", "--max-calls", "100", code=3)
    assert (calls(parts), parts["topic"]["calls"], parts["topic"]["unanswered"]) == (100, 80, {})
    assert {part: one.get("budget reached") for part, one in ((n, p["unanswered"]) for n, p in parts.items())} == {
        "topic": None,
        **dict.fromkeys(["frames=conflict", "frames=human interest", "frames=morality"], 60),
    }
    assert calls(found(pcs, "--separately")) == 60


PRICES = ["--price", "coder:good@90=1,1", "--price", "coder:fair@75=1,1"]


@pytest.mark.parametrize(("option", "limit"), [("--max-tokens", "9000"), ("--budget", "0.009")])
def test_a_limit_on_tokens_and_one_in_dollars_are_for_all_variables(option: str, limit: str, pcs: Pcs) -> None:
    found(pcs, "--separately", *PRICES, option, limit, code=3)
    tokens = sum(bill.input_tokens + bill.output_tokens for bill in paid_bills("runs/data/ledger.db"))
    assert 8_800 < tokens <= 9_000  # of about 17,000; a call has about 95


def test_rewrites_count_for_the_limit_of_the_command(pcs: Pcs) -> None:
    rewritten = ["--relations", "original,llm:voice", "--rewriter", "coder:good@90", "-o", "runs/rewritten"]
    assert calls(found(pcs, *rewritten, "--max-calls", "50", code=3)) == 50
    assert {bill.purpose for bill in paid_bills("runs/rewritten/ledger.db")} == {"label", "rewrite"}


def test_new_texts_have_one_limit_for_all_variables(pcs: Pcs) -> None:
    found(pcs, "--separately")
    write("new.csv", range(500, 520), gold=0)
    label = ["label", "new.csv", "--run", "runs/data", "--json", "--ask", "all", "--max-calls", "100"]
    assert calls(pcs.json(*label, code=3)["variables"]) == 100


def paid(folder: str = "runs/data") -> int:
    return sum(bill.calls for bill in paid_bills(f"{folder}/ledger.db"))


def test_fresh_asks_all_variables_again_once_and_keeps_the_old_ledger(pcs: Pcs) -> None:
    assert calls(found(pcs, "--fresh")) == 80  # also where nothing was asked yet
    again = found(pcs, "--fresh", "--max-calls", "60", code=3)
    (kept,) = Path("runs/data").glob("ledger-*.db")
    assert sum(bill.calls for bill in paid_bills(kept)) == 80
    assert calls(again) == 60
    assert calls(found(pcs)) == 20  # goes on with the new answers
    assert "leave one of --fresh and --ledger out" in pcs.refused("run", "data.csv", "--fresh", "--ledger", "mine.db")


def test_a_variable_that_is_another_now_is_refused_before_any_call(pcs: Pcs) -> None:
    found(pcs)
    Path("pcs.toml").write_text(CONFIG.replace("Which frames does the text use?", "Which frames are used?"))
    before, ledger = Path("runs/data/book.json").read_bytes(), paid()
    for more in ([], ["--fresh"]):
        assert "runs/data/variables/frames/conflict has results of another instruction" in pcs.refused(
            "run", "data.csv", *more
        )
    assert (paid(), Path("runs/data/book.json").read_bytes()) == (ledger, before)
    assert not [*Path("runs/data").glob("ledger-*.db")]
    assert calls(found(pcs, "--replace")) == 80
    assert len([*Path("runs/data").glob("earlier-*")]) == 1


def test_a_classifier_is_of_one_variable() -> None:
    assert main(["run", "data.csv", "-q"]) == 0
    with pytest.raises(
        ConfigError, match="runs/data has several variables: name one of them, runs/data/variables/topic,"
    ):
        PCSClassifier.from_run("runs/data")
    assert PCSClassifier.from_run("runs/data/variables/topic").get_params()["task"].labels == ("economy", "health")
