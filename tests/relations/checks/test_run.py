"""All checks together: on spoilt rewrites, on the rewrites of weak models, on bad input."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path

import pytest

from pcs_annotator import Expectation
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.relations.checks.reading import Rewrite
from pcs_annotator.relations.checks.run import CHECKS, check_rewrite, run_checks

EXPECTS = {
    "voice": Expectation(reorders=True),
    "double-negation": Expectation(negations="doubled", longest=2.5),
    "synonym": Expectation(),
}


def shares_rejected(path: Path) -> tuple[float, float]:
    """Return the shares of bad and of good rewrites that are rejected; an unchanged text is neither."""
    rejected: dict[str, list[bool]] = {"0": [], "1": []}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rewrite = row["original"], row["rewrite"], EXPECTS[row["relation"]]
            found = asyncio.run(check_rewrite(*rewrite))
            failed = [verdict.check for verdict in found if not verdict.passed]
            rejected[row["keeps_meaning"]].append(bool(failed) and failed[0] != "unchanged")
    return sum(rejected["0"]) / len(rejected["0"]), sum(rejected["1"]) / len(rejected["1"])


def test_good_and_bad_rewrites_by_a_weak_model_are_told_apart(shared_data: Path) -> None:
    bad, good = shares_rejected(shared_data / "recorded" / "rewrites_judged.csv")
    assert bad >= 0.85
    assert good <= 0.15


def test_invented_rewrites_of_that_kind_are_told_apart() -> None:
    bad, good = shares_rejected(Path(__file__).with_name("weak_rewrites.csv"))
    assert bad >= 0.85
    assert good <= 0.10


GOOD = [
    (
        "The council of Norwick did not raise the 40 new taxes that Mira Lindqvist wanted.",
        "The council of Norwick didn't raise the 40 new taxes that Mira Lindqvist wished for.",
    ),
    (
        "On Monday, Tova Quist told Odalys Brent that the bridge was safe for 12 buses.",
        "On Monday, Tova Quist informed Odalys Brent that the bridge was safe for twelve buses.",
    ),
    (
        "The river rose by 3 feet, and the people of Selby were taken to a school by Captain Orla Finch.",
        "The river went up by three feet, and the people of Selby were brought to a school by Captain Orla Finch.",
    ),
]
SPOILT = [
    (0, "The council of Norwick raised the 40 new taxes that Mira Lindqvist wished for."),
    (0, "The council of Norwick didn't raise the 41 new taxes that Mira Lindqvist wished for."),
    (0, "The council of Norwick didn't raise the 40 new taxes that Hanne Dahl wished for."),
    (0, "The council of Norwick didn't raise the 40"),
    (0, "The council of Lindqvist didn't raise the 40 new taxes that Norwick wished for."),
    (1, "On Monday, Tova Quist informed Odalys Brent that the bridge was not safe for twelve buses."),
    (1, "On Monday, Tova Quist informed Odalys Brent that the bridge was safe for twenty buses."),
    (1, "On Monday, Tova Quist informed Hanne Dahl that the bridge was safe for twelve buses."),
    (1, "On Monday, Tova Quist informed Odalys Brent that"),
    (1, "On Monday, Odalys Brent informed Tova Quist that the bridge was safe for twelve buses."),
    (
        2,
        "The river did not go up by three feet, and the people of Selby were led to a school by Captain Orla Finch.",
    ),
    (2, "The river went up by nine feet, and the people of Selby were brought to a school by Captain Orla Finch."),
    (2, "The river went up by three feet, and the people of Lisbon were brought to a school by Captain Orla Finch."),
    (2, "The river went up by three feet, and the people of Selby were"),
    (2, "The river went up by three feet, and the people of Finch were brought to a school by Captain Orla Selby."),
]


@pytest.mark.parametrize(("source", "text"), GOOD)
def test_good_rewrites_pass(source: str, text: str) -> None:
    found = asyncio.run(check_rewrite(source, text, Expectation()))
    assert [verdict.detail for verdict in found if not verdict.passed] == []


@pytest.mark.parametrize(("which", "text"), SPOILT)
def test_spoilt_rewrites_are_rejected(which: int, text: str) -> None:
    assert not all(verdict.passed for verdict in run_checks(Rewrite(GOOD[which][0], text)))


def test_every_check_gives_a_named_verdict_with_a_reason_when_it_fails() -> None:
    found = run_checks(Rewrite("He has 40 dogs.", "He has dogs."))
    assert [verdict.check for verdict in found] == list(CHECKS)
    assert all(verdict.passed == (verdict.detail == "") for verdict in found)
    assert "numbers" in [verdict.check for verdict in found if not verdict.passed]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a",
        "🙂🙂",
        "http://ex.am/ple",
        "def f(x): return x[0]",
        "1 2 3",
        "?!",
        "Ignore all of this.",
        "x" * 90_000,
    ],
)
def test_no_text_raises(text: str) -> None:
    for other in ("", "a", "The dog sleeps.", text + " b"):
        run_checks(Rewrite(text, other))
        run_checks(Rewrite(other, text, EXPECTS["double-negation"]))


def test_typos_may_be_allowed() -> None:
    source, text = "Mira Lindqvist did not buy 3 boats.", "Mira Lidnqvist did nto buy 3 baots."
    assert not all(verdict.passed for verdict in run_checks(Rewrite(source, text)))
    allowed = Expectation(misspells=True)
    assert all(verdict.passed for verdict in run_checks(Rewrite(source, text, allowed)))
    assert not all(
        verdict.passed for verdict in run_checks(Rewrite(source, "Mira Lidnqvist did buy 3 boats.", allowed))
    )


@pytest.mark.asyncio
async def test_roles_are_checked() -> None:
    found = await check_rewrite("I deleted the app.", "The app deleted me.", EXPECTS["voice"])
    assert [verdict.check for verdict in found if not verdict.passed] == ["roles"]


@pytest.mark.asyncio
async def test_the_judge_is_asked_only_about_what_passed() -> None:
    asked: list[str] = []

    async def ask(request: Request) -> Reply:
        asked.append(request.messages[-1].content)
        return Reply(text="DIFFERENT: no" if "is asleep" in asked[-1] else "It depends.")

    async def last(text: str) -> str:
        return (await check_rewrite("The dog sleeps.", text, Expectation(), ask))[-1].check

    assert await last("The dog is asleep.") == "judge"
    assert await last("The dog slept.") == "roles"  # a reply that cannot be read is no verdict
    await last("The dog does not sleep.")
    assert len(asked) == 2
