import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator.faces.cli.main import main
from pcs_annotator.faces.serve.mcp import Tools
from pcs_annotator.version import __version__
from tests.faces.serve.running import Running, running
from tests.stub import StubProcess


def asked(method: str, params: object = None, number: object = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}).encode()


async def called(one: Running, name: str, arguments: object, *, codebook: bool = False) -> Any:
    answer = await Tools(one.app, one.service, codebook=codebook).answer(
        asked("tools/call", {"name": name, "arguments": arguments})
    )
    assert answer is not None
    return answer.get("result") or answer["error"]


@pytest.mark.asyncio
async def test_a_text_is_labelled_as_over_http(run: Path) -> None:
    async with running(run) as one:
        found = await called(one, "classify", {"input": ["A fine text."]})
        _, over_http = await one.classify("A fine text.")
    assert found["isError"] is False
    assert found["content"][0]["type"] == "text"
    (item,) = json.loads(found["content"][0]["text"])["data"]
    (other,) = over_http["data"]
    assert (item["label"], item["decision"], item["probs"]) == (other["label"], other["decision"], other["probs"])


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("classify", {}, "`input` is missing"),
        ("classify", {"input": []}, "one or more texts"),
        ("classify", {"input": [3]}, "`input[0]` must be a text"),
        ("classify", {"input": ["  "]}, "`input[0]` is empty"),
        ("classify", {"input": ["a"] * 101}, "at most 100"),
        ("review_queue", {"rows": 0}, "from 1 to 50"),
        ("review_queue", {"rows": True}, "from 1 to 50"),
        ("review_queue", {"rows": "9"}, "from 1 to 50"),
    ],
)
async def test_what_an_assistant_can_put_right_is_said_in_a_result(
    run: Path, name: str, arguments: object, words: str
) -> None:
    async with running(run) as one:
        found = await called(one, name, arguments)
    assert found["isError"] is True
    assert words in found["content"][0]["text"]


@pytest.mark.asyncio
async def test_the_queue_lists_rows_for_people_least_certain_first(run: Path) -> None:
    async with running(run) as one:
        first = (await called(one, "review_queue", {"rows": 1}))["structuredContent"]
        found = (await called(one, "review_queue", {}))["structuredContent"]
        refused = await called(one, "review_queue", {}, codebook=True)
    sure = [row["confidence"] for row in found["rows"]]
    assert sure == sorted(sure)
    assert (len(sure), len(first["rows"])) == (2, 1)
    assert found["total"] == first["total"] == 2
    assert found["rows"][0]["text"].startswith("Case ")
    assert found["next"] == f"a person runs: pcs review {run}"
    assert "serve the folder of one of them" in refused["structuredContent"]["error"]


@pytest.mark.asyncio
async def test_status_says_whether_texts_get_labels(run: Path) -> None:
    async with running(run) as one:
        found = (await called(one, "status", {}))["structuredContent"]
        one.app.stopping()
        later = (await called(one, "status", {}))["structuredContent"]
    assert (found["status"], later["status"]) == ("ready", "stopping")
    assert found["labels"] == one.service.names
    assert {"kept_for_people", "figures", "model"} <= found.keys()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (b"{", -32700, "not valid JSON"),
        (b"[1, 2]", -32600, "a JSON object"),
        (b'{"id": 1}', -32600, "a JSON object"),
        (b'{"id": 1, "method": "ping", "params": [1]}', -32602, "`params` must be an object"),
        (asked("resources/list"), -32601, "there is no method 'resources/list'"),
        (asked("tools/call", {"name": "delete"}), -32602, "classify, status, review_queue"),
        (asked("tools/call", {"name": ["classify"]}), -32602, "classify, status, review_queue"),
        (asked("tools/call", {"name": "classify", "arguments": "all"}), -32602, "must be an object"),
    ],
)
async def test_a_broken_message_is_an_error_of_the_protocol(run: Path, line: bytes, code: int, words: str) -> None:
    async with running(run) as one:
        answer = await Tools(one.app, one.service, codebook=False).answer(line)
    assert answer is not None
    assert answer["error"]["code"] == code
    assert words in answer["error"]["message"]
    assert answer["id"] == (1 if code in (-32601, -32602) else None)


@pytest.mark.asyncio
async def test_an_error_of_ours_quotes_no_text(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(run) as one:

        async def fail(*_: object) -> None:
            raise RuntimeError("about a secret text")

        monkeypatch.setattr(one.app, "labelled", fail)
        found = await called(one, "classify", {"input": ["a secret text"]})
    assert found == {"code": -32603, "message": "the service failed: RuntimeError"}


@contextmanager
def talking(folder: Path) -> Iterator[subprocess.Popen[str]]:
    code = "import sys; from pcs_annotator.faces.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "serve", str(folder), "--mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str], *lines: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write("".join(f"{line.decode()}\n" for line in lines))
    process.stdin.flush()


def heard(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


@pytest.mark.system
def test_an_assistant_talks_to_a_process(stub_folder: Path, stub: StubProcess) -> None:
    with talking(stub_folder) as process:
        told(
            process, asked("initialize", {"protocolVersion": "2024-11-05"}), b'{"method": "notifications/initialized"}'
        )
        first = heard(process)["result"]
        assert (first["protocolVersion"], first["serverInfo"]) == (
            "2024-11-05",
            {"name": "pcs", "version": __version__},
        )
        told(process, b"", b"not json", asked("tools/list", number="list"))
        assert heard(process)["error"]["code"] == -32700
        listed = heard(process)
        assert (listed["id"], [one["name"] for one in listed["result"]["tools"]]) == (
            "list",
            ["classify", "status", "review_queue"],
        )
        told(process, asked("tools/call", {"name": "classify", "arguments": {"input": "A text."}}))
        (item,) = heard(process)["result"]["structuredContent"]["data"]
        assert item["label"] in ("positive", "negative")
        told(process, asked("initialize", {"protocolVersion": "1999-01-01"}), asked("ping", number=7))
        assert heard(process)["result"]["protocolVersion"] == "2025-06-18"
        assert heard(process) == {"jsonrpc": "2.0", "id": 7, "result": {}}
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (0, "")
        assert "Traceback" not in err


@pytest.mark.system
def test_what_was_asked_before_the_end_is_answered(stub_folder: Path, stub: StubProcess) -> None:
    stub.change(latency_s=0.3)
    with talking(stub_folder) as process:
        told(process, asked("tools/call", {"name": "classify", "arguments": {"input": ["Another text."]}}))
        out, _ = process.communicate(timeout=60)  # closes standard input at once
        assert json.loads(out)["result"]["isError"] is False
        assert process.returncode == 0


@pytest.mark.system
def test_a_signal_ends_it(stub_folder: Path, stub: StubProcess) -> None:
    with talking(stub_folder) as process:
        told(process, asked("ping"))
        heard(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert "Fatal" not in process.stderr.read()


def test_a_folder_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path / "none"), "--mcp"]) == 2
    assert "none" in capsys.readouterr().err
