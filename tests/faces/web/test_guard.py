import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pcs_annotator.base.errors import LedgerError, TableError
from pcs_annotator.faces.web.guard import ERROR_HANDLERS, host_name
from pcs_annotator.faces.web.server import listen
from tests.faces.web.serving import serving

TOKEN = "a-token-of-some-length"


async def _echo(request: Request) -> Response:
    return JSONResponse({"bytes": len(await request.body()), "query": request.url.query})


async def _fail(request: Request) -> Response:
    raise {"bug": ZeroDivisionError("SECRET"), "user": TableError("row 3: no text"), "busy": LedgerError("in use")}[
        request.path_params["how"]
    ]


APP = Starlette(
    routes=[Route("/echo", _echo, methods=["GET", "POST"]), Route("/health", _echo), Route("/fail/{how}", _fail)],
    exception_handlers=ERROR_HANDLERS,
)


async def _chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * 1000


async def _ask(method: str, path: str, rules: dict[str, Any] | None = None, **more: Any) -> tuple[int, Any, Any]:
    async with serving(APP, **(rules or {})) as door, aiohttp.ClientSession() as client:
        answer = await client.request(method, door.url + path, allow_redirects=False, **more)
        body = await answer.json() if answer.content_type == "application/json" else await answer.text()
        return answer.status, body, answer.headers


def ask(method: str, path: str, rules: dict[str, Any] | None = None, **more: Any) -> tuple[int, Any, Any]:
    return asyncio.run(_ask(method, path, rules, **more))


def test_every_answer_has_the_security_headers_and_a_request_id() -> None:
    for path in ("/echo", "/nowhere", "/fail/bug"):
        _, _, headers = ask("GET", path)
        assert headers["Content-Security-Policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Request-Id"]


@pytest.mark.parametrize(("given", "kept"), [("job-7:a.b", True), ("x" * 65, False), ("a b", False), ("<i>", False)])
def test_a_sane_request_id_is_kept(given: str, kept: bool) -> None:
    _, _, headers = ask("GET", "/echo", headers={"X-Request-Id": given})
    assert (headers["X-Request-Id"] == given) is kept


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:99", 200),
        ("LOCALHOST.", 200),
        ("[::1]:80", 200),
        ("evil.example", 403),
        ("", 403),
    ],
)
def test_only_requests_that_name_this_server_are_answered(host: str, status: int) -> None:
    assert ask("GET", "/echo", headers={"Host": host})[0] == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://localhost:1"}, 403),  # somebody else on this machine
        ({"Origin": "http://Labels.lan:8080", "Host": "labels.lan:8080"}, 200),
        ({"Origin": "http://labels.lan:3000", "Host": "labels.lan:8080"}, 403),
        ({"Origin": "http://labels.lan"}, 200),  # a proxy, which may name us otherwise
        ({"Origin": "http://labels.lan:3000"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[oops"}, 403),
    ],
)
def test_pages_of_other_sites_may_change_nothing(headers: dict[str, str], status: int) -> None:
    door = listen("127.0.0.1", 0, names=["Labels.lan"])
    door.socket.close()
    rules = {"names": door.rules.names, "origins": door.rules.origins}
    assert ask("POST", "/echo", rules, data=b"1", headers=headers)[0] == status
    assert ask("GET", "/echo", rules, headers=headers)[0] == 200  # reading is guarded by the browser


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer {TOKEN}", 200),
        (f"Basic {TOKEN}", 401),
        ("Bearer wrong", 401),
        ("Bearer ", 401),
        ("", 401),
    ],
)
def test_a_token_is_needed_where_one_is_set(authorization: str, status: int) -> None:
    given, body, headers = ask("GET", "/echo", {"token": TOKEN}, headers={"Authorization": authorization})
    assert given == status
    if status == 401:
        assert headers["WWW-Authenticate"] == "Bearer"
        assert "Authorization: Bearer" in body["error"]["message"]


def test_open_paths_need_no_token() -> None:
    rules = {"token": TOKEN, "open_paths": frozenset({"/health"})}
    assert ask("GET", "/health", rules)[0] == 200
    assert ask("GET", "/echo", rules)[0] == 401


@pytest.mark.asyncio
async def test_a_browser_gets_a_cookie_for_the_token_in_the_address() -> None:
    jar = aiohttp.CookieJar(unsafe=True)
    async with serving(APP, token=TOKEN) as door, aiohttp.ClientSession(cookie_jar=jar) as client:
        first = await client.get(f"{door.url}/echo?a=1&token={TOKEN}", allow_redirects=False)
        assert (first.status, first.headers["Location"]) == (303, "/echo?a=1")
        cookie = first.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert TOKEN not in cookie
        then = await client.get(f"{door.url}/echo?a=1")
        assert (await then.json())["query"] == "a=1"
        assert (await client.post(f"{door.url}/echo?token={TOKEN}", cookies={"x": "y"})).status == 200
    async with serving(APP, token=TOKEN) as door, aiohttp.ClientSession() as client:
        assert (await client.get(f"{door.url}/echo?token=wrong")).status == 401
        assert (await client.post(f"{door.url}/echo?token={TOKEN}")).status == 401
        # a path that looks like another site stays on this one
        odd = await client.get(f"{door.url}//evil.example/?token={TOKEN}", allow_redirects=False)
        assert odd.headers["Location"] == "/evil.example/"


def test_a_body_that_is_too_large_is_refused_with_or_without_its_length() -> None:
    rules = {"max_body": 5000}
    assert ask("POST", "/echo", rules, data=_chunks(5))[1] == {"bytes": 5000, "query": ""}
    for body in (b"x" * 5001, _chunks(6), BytesIO(b"x" * 3_000_000), _chunks(3000)):
        status, answer, _ = ask("POST", "/echo", rules, data=body)
        assert (status, answer["error"]["type"]) == (413, "too_large")


def test_the_bodies_of_all_requests_in_progress_have_a_limit_together() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"x" * 4000
        entered.set()
        await leave.wait()
        yield b"x"

    async def upload() -> None:
        async with serving(APP, max_body=5000, max_bodies=9000) as door, aiohttp.ClientSession(door.url) as client:
            first = asyncio.create_task(client.post("/echo", data=slow()))
            await entered.wait()
            answers = await asyncio.gather(*(client.post("/echo", data=_held(leave)) for _ in range(4)))
            refused = [answer for answer in answers if answer.status == 429]
            assert len(refused) == 3  # there is room for one more
            assert all(answer.headers["Retry-After"] for answer in refused)
            assert (await client.get("/echo")).status == 200
            assert (await first).status == 200
            again = await asyncio.gather(*(client.post("/echo", data=b"x" * 4000) for _ in range(2)))
            assert [answer.status for answer in again] == [200, 200]  # what has left does not count

    async def _held(until: asyncio.Event) -> AsyncIterator[bytes]:
        yield b"x" * 4000
        asyncio.get_running_loop().call_later(0.3, until.set)
        await until.wait()

    asyncio.run(upload())


def test_errors_are_json_and_say_no_more_than_they_should() -> None:
    assert ask("GET", "/nowhere")[1]["error"]["type"] == "not_found"
    assert ask("PUT", "/echo")[1]["error"]["type"] == "method_not_allowed"
    assert ask("GET", "/fail/user")[:2][1]["error"]["message"] == "row 3: no text"
    status, body, headers = ask("GET", "/fail/busy")
    assert (status, body["error"]["message"]) == (503, "in use")
    assert body["error"]["request_id"] == headers["X-Request-Id"]
    status, body, _ = ask("GET", "/fail/bug")
    assert (status, body["error"]["type"]) == (500, "internal_error")
    assert "SECRET" not in str(body)


def test_the_log_has_neither_texts_nor_queries() -> None:
    lines: list[str] = []
    asyncio.run(_ask("GET", "/fail/bug?text=SECRET", {"say": lines.append}, headers={"X-Request-Id": "one"}))
    here = Path(__file__).name
    assert lines[1].startswith(f"ZeroDivisionError at {here}:")
    assert lines[2].startswith("GET /fail/bug 500 ")
    assert lines[2].endswith(" ms one")
    assert "SECRET" not in "".join(lines)


def test_an_app_without_error_handlers_is_guarded_too() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        raise ValueError

    async def visit() -> int:
        async with serving(broken) as door, aiohttp.ClientSession() as client:
            return (await client.get(door.url)).status

    assert asyncio.run(visit()) == 500


@pytest.mark.parametrize(
    ("given", "name"),
    [("a.b:80", "a.b"), ("A.B.", "a.b"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("::1", ":"), ("", "")],
)
def test_the_name_in_a_host_header(given: str, name: str) -> None:
    assert host_name(given) == name
