import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.memory import create_connected_server_and_client_session

from pcs_annotator.faces.serve.mcp import tools_of
from tests.command_line import Pcs
from tests.faces.serve.running import Running, running
from tests.stub import StubProcess

CODE = "import sys; from pcs_annotator.faces.cli.main import main; sys.exit(main())"


@asynccontextmanager
async def connected(run: Path) -> AsyncIterator[tuple[Running, ClientSession]]:
    async with running(run) as service, create_connected_server_and_client_session(tools_of(service.app)) as client:
        yield service, client


async def called(client: ClientSession, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    answer = await client.call_tool(name, arguments)
    assert not answer.isError
    assert answer.structuredContent is not None
    return answer.structuredContent


@pytest.mark.asyncio
async def test_a_text_is_labelled_as_over_http(run: Path) -> None:
    async with connected(run) as (service, client):
        found = await called(client, "classify", {"input": ["A fine text."]})
        _, over_http = await service.classify("A fine text.")
    (item,), (other,) = found["data"], over_http["data"]
    assert (item["label"], item["decision"], item["probs"]) == (other["label"], other["decision"], other["probs"])


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("classify", {}, "Field required"),
        ("classify", {"input": []}, "at least 1 item"),
        ("classify", {"input": ["  "]}, "`input[0]` is empty"),
        ("classify", {"input": ["a"] * 101}, "at most 100"),
        ("review_queue", {"rows": 0}, "greater than or equal to 1"),
        ("delete", {}, "Unknown tool"),
    ],
)
async def test_what_an_assistant_can_put_right_is_said_in_a_result(
    run: Path, name: str, arguments: dict[str, Any], words: str
) -> None:
    async with connected(run) as (_, client):
        answer = await client.call_tool(name, arguments)
    assert answer.isError
    assert words in str(answer.content[0])


@pytest.mark.asyncio
async def test_the_queue_lists_rows_for_people_least_certain_first(run: Path) -> None:
    async with connected(run) as (_, client):
        first = await called(client, "review_queue", {"rows": 1})
        found = await called(client, "review_queue")
    sure = [row["confidence"] for row in found["rows"]]
    assert sure == sorted(sure)
    assert (len(sure), len(first["rows"]), found["total"]) == (2, 1, 2)
    assert found["rows"][0]["text"].startswith("Case ")
    assert found["next"] == f"a person runs: pcs review {run}"


@pytest.mark.asyncio
async def test_status_says_whether_texts_get_labels(run: Path) -> None:
    async with connected(run) as (service, client):
        found = await called(client, "status")
        service.app.stopping()
        later = await called(client, "status")
    assert (found["status"], later["status"]) == ("ready", "stopping")
    assert found["labels"] == [*service.service.names]
    assert {"kept_for_people", "figures", "model"} <= found.keys()


@pytest.mark.asyncio
async def test_an_error_of_ours_quotes_no_text(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(run) as (service, client):

        async def fail(*_: object) -> None:
            raise RuntimeError("about a secret text")

        monkeypatch.setattr(service.app, "labelled", fail)
        answer = await client.call_tool("classify", {"input": ["a secret text"]})
    assert answer.isError
    assert "the service failed: RuntimeError" in str(answer.content[0])
    assert "secret" not in str(answer.content[0])


@pytest.mark.system
@pytest.mark.asyncio
async def test_an_assistant_talks_to_a_process(stub_folder: Path, stub: StubProcess) -> None:
    process = StdioServerParameters(command=sys.executable, args=["-c", CODE, "serve", str(stub_folder), "--mcp"])
    async with stdio_client(process) as streams, ClientSession(*streams) as client:
        assert "never report them as settled" in ((await client.initialize()).instructions or "")
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["classify", "status", "review_queue"]
        found = await called(client, "classify", {"input": ["A text."]})
    assert found["data"][0]["label"] in ("positive", "negative")


@pytest.mark.system
def test_a_signal_ends_it(stub_folder: Path, stub: StubProcess) -> None:
    command, pipe = [sys.executable, "-c", CODE, "serve", str(stub_folder), "--mcp"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline().startswith('{"jsonrpc"')
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_a_folder_without_a_run_is_refused(tmp_path: Path, pcs: Pcs) -> None:
    assert "none" in pcs.refused("serve", tmp_path / "none", "--mcp")
