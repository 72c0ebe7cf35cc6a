import asyncio
import json
import random
import signal
import socket
import sqlite3
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.watch import read_status
from tests.faces.serve.killing import check, kill_again_and_again, promising_stub_run
from tests.faces.serve.processes import ServiceProcess, service_process
from tests.stub import StubProcess

pytestmark = pytest.mark.system


async def _classify(url: str, text: str) -> int:
    async with aiohttp.ClientSession(url) as client, client.post("/v1/classify", json={"input": text}) as answer:
        await answer.read()
        return answer.status


@pytest.mark.slow
def test_a_signal_lets_requests_finish(stub_folder: Path, stub: StubProcess) -> None:
    stub.change(latency_s=0.3)

    async def talk(service: ServiceProcess) -> None:
        asked = asyncio.create_task(_classify(service.url, "A last text."))
        while stub.stats().in_flight == 0:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        service.process.send_signal(signal.SIGTERM)
        assert await asked == 200

    with service_process(stub_folder, "-v") as service:
        asyncio.run(asyncio.wait_for(talk(service), 60))
        assert service.process.wait(timeout=30) == 0
        assert service.process.stderr is not None
        log = service.process.stderr.read()
    (found,) = [one for one in read_status(RunFolder(stub_folder)) if one["command"] == "serve"]
    assert (found["command"], found["state"], found["rows"], found["calls"]) == ("serve", "finished", 1, 1)
    assert log.endswith("stopped; all answers are kept\n")
    assert "POST /v1/classify 200" in log
    assert "last text" not in log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_although_the_model_only_refuses(
    stub_folder: Path, stub: StubProcess, number: signal.Signals
) -> None:
    stub.change(share_429=1.0)

    async def talk(service: ServiceProcess) -> None:
        asked = asyncio.create_task(_classify(service.url, "A text that gets no answer."))
        while not stub.stats().requests:
            await asyncio.sleep(0.02)
        service.process.send_signal(number)
        assert await asked == 503

    with service_process(stub_folder, "--timeout", "4") as service:
        asyncio.run(asyncio.wait_for(talk(service), 60))
        assert service.process.wait(timeout=60) == 0  # a model is given up after 900 seconds of refusals


def test_every_answer_that_a_client_got_is_in_the_ledger_after_a_kill(stub_folder: Path, stub: StubProcess) -> None:
    stub.change(latency_s=0.02)
    todo = iter([f"Text {row} before the end." for row in range(200)])
    acknowledged = 0

    async def client(url: str) -> None:
        nonlocal acknowledged
        with suppress(aiohttp.ClientError):
            for text in todo:
                status = await _classify(url, text)
                acknowledged += status == 200

    async def talk(service: ServiceProcess) -> None:
        async def kill() -> None:
            moment = random.randint(20, 60)
            while acknowledged < moment:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(service.kill)

        await asyncio.gather(kill(), *(client(service.url) for _ in range(16)))

    def stored() -> int:
        with sqlite3.connect(RunFolder(stub_folder).ledger) as ledger:
            return int(ledger.execute("SELECT COUNT(*) FROM calls").fetchone()[0])

    before = stored()
    with service_process(stub_folder) as service:
        asyncio.run(asyncio.wait_for(talk(service), 60))
    assert 20 <= acknowledged < 200
    assert acknowledged <= stored() - before
    assert stub.stats().answered - (stored() - before) <= 16


@pytest.mark.slow
def test_what_a_killed_service_said_is_in_the_stream_with_the_version_that_decided(
    stub: StubProcess, tmp_path: Path
) -> None:
    stub.change(latency_s=0.05)
    folder = promising_stub_run(stub.url, tmp_path)
    found = check(folder, kill_again_and_again(folder, 4))
    assert found.replies > 100
    assert 0 < found.accepted < found.replies
    assert found.versions > 1
    assert (found.lost, found.misplaced, found.mixed) == (0, 0, 0)


@pytest.fixture
def taken() -> socket.socket:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    return listening


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["serve", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_bad_input_is_a_sentence(run: Path, taken: socket.socket, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not a run folder" in _refused(capsys, str(run / "nowhere"))
    with taken:
        port = str(taken.getsockname()[1])
        assert "is in use: choose another one with --port" in _refused(capsys, str(run), "--port", port)
    assert "a token is needed" in _refused(capsys, str(run), "--host", "0.0.0.0", "--port", "0")
    assert "NO_SUCH has no token" in _refused(capsys, str(run), "--port", "0", "--token-env", "NO_SUCH")
    assert "price" in _refused(capsys, str(run), "--port", "0", "--budget", "1")
    (run / "variables/label/model.json").write_text('{"weights"')
    assert "model.json cannot be read" in _refused(capsys, str(run), "--port", "0")
    (run / "variables/label/model.json").unlink()
    assert "fit first" in _refused(capsys, str(run), "--port", "0")
    (run / "book.json").write_text(json.dumps({"schema": 1}))
    assert "book.json" in _refused(capsys, str(run), "--port", "0")
