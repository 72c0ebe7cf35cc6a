import asyncio
import signal
import socket
import subprocess
import sys

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from pcs_annotator.base.errors import ConfigError, MissingPackage
from pcs_annotator.faces import web
from pcs_annotator.faces.web.server import listen
from tests.faces.web.serving import serving

pytestmark = pytest.mark.system

TOKEN = "a-token-of-some-length"

PROGRAM = """
import asyncio
import signal
from pcs_annotator.faces.web.server import listen, serve

async def app(scope, receive, send):
    print("asked", flush=True)
    await asyncio.sleep(0.5)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"done"})

async def main():
    await serve(app, listen("127.0.0.1", 0), lambda line: print(line, flush=True), on_stop=lambda: print("stopping"))

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
asyncio.run(main())
print("stopped")
"""


def test_a_port_in_use_is_named_with_a_remedy() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"port {port} of 127.0.0.1 is in use: .*--port 0"):
            listen("127.0.0.1", port)


def test_an_unknown_host_is_a_sentence() -> None:
    with pytest.raises(ConfigError, match="correct --host"):
        listen("no such host", 0)
    with pytest.raises(ConfigError, match="no such address"):
        listen("203.0.113.7", 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_public_address_needs_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match=r"(?s)token is needed.*--token-env.*TLS"):
        listen(host, 0)
    door = listen(host, 0, TOKEN)
    door.socket.close()
    assert not door.rules.names
    named = listen(host, 0, TOKEN, ["Labels.Example:443"])
    named.socket.close()
    assert "labels.example" in named.rules.names
    assert "localhost" in named.rules.names


@pytest.mark.parametrize("token", ["short", "with a space in the middle", "ümlaute-sind-zu-ungewöhnlich"])
def test_a_weak_token_is_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="16 or more"):
        listen("127.0.0.1", 0, token)


def test_a_secret_is_not_shown() -> None:
    door = listen("127.0.0.1", 0, TOKEN)
    door.socket.close()
    assert TOKEN not in repr(door)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_requests_in_flight_finish(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=20) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert process.stdout.readline() == "asked\n"
            process.send_signal(number)
            with client.makefile("rb") as answer:
                assert answer.read().endswith(b"done")  # until the server closes the connection
        assert process.wait(timeout=20) == 0
        assert process.stdout.read() == "stopping\nstopped\n"


def test_clients_on_keep_alive_do_not_delay_the_end() -> None:
    async def ok(request: Request) -> Response:
        return PlainTextResponse("ok")

    async def visit() -> None:
        async with aiohttp.ClientSession() as client, serving(Starlette(routes=[Route("/", ok)])) as door:
            assert await (await client.get(door.url)).text() == "ok"

    asyncio.run(asyncio.wait_for(visit(), 20))


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    web.need_web("pcs review")
    monkeypatch.setattr(web, "find_spec", lambda name: None)
    with pytest.raises(
        MissingPackage, match=r"pcs review needs the extra web: pip install 'perceived-confidence\[web\]'"
    ):
        web.need_web("pcs review")
