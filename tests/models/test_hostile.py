"""What hostile servers cost; `benchmarks/hostile.py` measures more of it."""

import asyncio
import errno
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pcs_annotator import Annotator, CollectSettings, Item, PcsWarning, Task, collect
from pcs_annotator.asking.engine.budget import Budget, BudgetTracker
from pcs_annotator.asking.engine.call import Asker
from pcs_annotator.asking.engine.collect import run_job
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.base.errors import BadRequest, RateLimited, TooManyFiles
from pcs_annotator.core.chat import LONGEST_ANSWER
from pcs_annotator.models.failures import CallSite, parse_retry_after, unreachable
from pcs_annotator.models.resolve import resolve_model
from pcs_annotator.models.scripted import ScriptedModel
from tests.asking.virtual_time import run_virtually
from tests.models.hostile import CASES, SILENT, WAITING, WAITS, ask, packed, serving
from tests.models.stub import KEY, ask_once, run, says
from tests.models.stub import serving as serving_stub

TASK = Task("Is it so?", ["yes", "no"])
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.seen != WAITING])
def test_a_hostile_server_costs_little_and_its_paid_answers_are_kept(name: str) -> None:
    case = CASES[name]

    async def go() -> str:
        async with serving(case.serve()) as url:
            deadline = 0.2 if case.seen == SILENT else 20.0
            return (await ask(url, answers=case.answers, rows=2, deadline=deadline, longest=30)).text

    assert re.search(case.seen, run(go()))


def test_a_gigabyte_in_a_small_packet_takes_little_memory() -> None:
    code = (
        "import asyncio, resource, sys; from tests.models.hostile import *\n"
        "async def go():\n"
        "    async with serving(CASES['gzip bomb of 1 GB'].serve()) as url:\n"
        "        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "        seen = await ask(url, answers='hard', rows=12, deadline=20, longest=30)\n"
        "        print(seen.text); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
        "asyncio.run(go())"
    )
    environment = {"PYTHONPATH": ":".join([str(ROOT), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    seen, grown = done.stdout.splitlines()
    assert "larger than 4 MB" in seen
    assert int(grown) < 150 * (2**20 if sys.platform == "darwin" else 2**10)


def test_the_same_holds_for_anthropic() -> None:
    async def bombed() -> str:
        async with serving(packed("gzip", 31)) as url:
            variables = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url.partition("#")[0]}
            return (await ask_once(resolve_model("anthropic:claude-x", variables))).text

    async def counted(usage: object) -> str:
        body = {"content": [{"type": "text", "text": "yes"}], "usage": usage, "stop_reason": {}, "model": "claude-x-1"}
        async with serving_stub(says(body)) as stub:
            return (await ask_once(resolve_model("anthropic:claude-x", stub.opens("anthropic")))).text

    with pytest.raises(BadRequest, match="larger than 4 MB"):
        run(bombed())
    few, odd = {"input_tokens": 10**30, "output_tokens": "7"}, {"input_tokens": 5, "cache_read_input_tokens": {}}
    for usage in (few, [1], odd):
        with pytest.warns(PcsWarning, match="answers as 'claude-x-1'"):
            assert run(counted(usage)) == "yes"


@pytest.mark.parametrize("wait", WAITS)
def test_any_wait_can_be_read(wait: str) -> None:
    assert (parse_retry_after({"Retry-After": wait}) or 0.0) >= 0.0


def asked(model: ScriptedModel, folder: Path, *, in_flight: int = 64) -> tuple[Tally, float]:
    """Ask about twenty rows in virtual time, and return what happened and how long it took."""
    items = [Item(id=str(row), text=f"Text {row}.") for row in range(20)]

    async def go() -> tuple[Tally, float]:
        with Ledger(folder / "l.db") as ledger:
            asker = Asker(ledger, BudgetTracker(Budget()), Tally(), lambda *_: 0.0, max_in_flight=in_flight)
            await run_job(Job(task=TASK, annotators=[(Annotator(model), model)]), items, asker)
            return asker.tally, asyncio.get_running_loop().time()

    return run_virtually(go)


@pytest.mark.filterwarnings("ignore:.*only answered 429")  # which is said where a long wait is asked for
@pytest.mark.parametrize("wait", [1e9, float("inf"), float("nan"), -5.0])
def test_no_server_can_ask_for_more_than_a_minute(wait: float, tmp_path: Path) -> None:
    tally, seconds = asked(ScriptedModel([RateLimited("slow down", wait), *["yes"] * 100]), tmp_path)
    assert (tally.calls, tally.retries.total()) == (20, 1)
    assert seconds < 62


def test_too_many_open_files_lower_the_number_of_calls_at_once(tmp_path: Path) -> None:
    place = CallSite(name="m", model="m", url="http://h")
    error = unreachable(place, OSError(errno.EMFILE, "Too many open files"))
    assert type(error) is TooManyFiles
    with pytest.warns(PcsWarning, match=r"asked 8 questions at once.*ulimit -n") as caught:
        tally, _ = asked(ScriptedModel([error, error, *["yes"] * 100], latency=1.0), tmp_path)
    assert (tally.calls, tally.retries["TooManyFiles"], len(caught)) == (20, 2, 1)


def test_a_rewrite_that_is_too_long_is_none(tmp_path: Path) -> None:
    settings = CollectSettings(environment={}, rewriter=ScriptedModel(["long " * LONGEST_ANSWER]))
    items = [Item(id="1", text="The dog chased the cat.")]
    votes = asyncio.run(
        collect(TASK, items, ["scripted:hash"], ["llm:voice"], ledger=tmp_path / "l.db", settings=settings)
    )
    assert (votes.codes < 0).all()
    assert json.dumps(settings.tally.not_applicable).count("reply too long to read") == 1
