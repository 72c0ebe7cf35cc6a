"""A service that learns from verdicts by itself (`--refit-every`)."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs import service as service_module
from pcs_annotator.runs.labeller import LoadOptions
from pcs_annotator.runs.service import Service
from pcs_annotator.runs.settings import Saving
from tests.reviewing.reviewing import judge
from tests.simulated import truth_of

SECONDS = 60.0
EVERY = 5


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "LOOK_EVERY", 0.01)


def judge_rows(run: Path, rows: int) -> None:
    with Review.open(run, ReviewOptions(refit_every=0)) as review:
        for _ in range(rows):
            judge(review, "random", lambda shown: truth_of(int(shown.id[1:])))


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not reached():
            await asyncio.sleep(0.01)


async def some_looks(service: Service) -> None:
    """Wait until the service has looked at the verdicts again."""
    service._seen[2:] = []
    await until(lambda: len(service._seen) > 2 and service._loading is None)


def served(run: Path, lines: list[str], fit: Callable[[], str]) -> Service:
    service = Service(run, LoadOptions(saving=Saving(), environment={}), lines.append, EVERY)
    service._fit.run = fit  # type: ignore[method-assign]  # a process of its own is tested elsewhere
    return service


@pytest.mark.asyncio
async def test_verdicts_are_learned_from_though_no_text_comes_and_those_that_come_during_a_fit_too(run: Path) -> None:
    fits: list[str] = []

    def fit() -> str:
        fits.append("")
        if len(fits) == 1:
            judge_rows(run, EVERY)  # nobody says anything after these
        return ""

    judge_rows(run, EVERY)  # before the service starts
    async with served(run, [], fit) as service:
        await until(lambda: len(fits) == 2)
        judge_rows(run, EVERY - 1)
        await some_looks(service)
        assert len(fits) == 2  # the same verdicts again would teach the same
        judge_rows(run, 1)
        await until(lambda: len(fits) == 3)


@pytest.mark.asyncio
async def test_the_log_says_why_a_fit_that_promises_less_is_not_in_use(run: Path) -> None:
    lines: list[str] = []

    def fit() -> str:
        values = json.loads((run / "variables/label/model.json").read_text())
        less = {**values["certificate"], "threshold": None, "accepted_share": 0.0, "why_not": "too few"}
        (run / "variables/label/models" / "2.json").write_text(json.dumps({**values, "certificate": less, "number": 2}))
        return ""

    judge_rows(run, EVERY)
    async with served(run, lines, fit) as service:
        await until(lambda: bool(lines))
        await some_looks(service)
        assert service.version == "run@1"
    (line,) = lines
    assert line.startswith("version 2 promises less than version 1, which stays in use: it would accept 0 % instead of")
    assert f"(too few); pcs versions {run} --use 2 puts it in use" in line
