"""A client for the stub's own tests."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import Any, NamedTuple

import aiohttp

from tests.stub import Behaviour, Stub, StubServer

SYSTEM = "Choose one: <label>good</label>, <label>bad</label>, <label>so-so</label>. Answer <label>…</label>."
LABELS = {"good", "bad", "so-so"}
PATH = "/v1/chat/completions"
LOST = (aiohttp.ClientError, TimeoutError)


class Got(NamedTuple):
    """A response; status 0 if none was complete."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def text(self) -> str:
        content: str = json.loads(self.body)["choices"][0]["message"]["content"]
        return content

    @property
    def code(self) -> str:
        code: str = json.loads(self.body)["error"]["code"]
        return code


Ask = Callable[..., Awaitable[Got]]


def question(text: str = "hello", system: str = SYSTEM, **extra: Any) -> dict[str, Any]:
    """Return the body of a request; `extra` are further fields."""
    messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    return {"model": "m", "messages": messages, **extra}


async def post(session: aiohttp.ClientSession, url: str, body: Any, patience: float = 10, **headers: str) -> Got:
    """Post once; a broken connection or a timeout gives status 0."""
    data = BytesIO(json.dumps(body).encode())  # aiohttp warns about long bodies given as bytes
    timeout = aiohttp.ClientTimeout(total=patience)
    try:
        async with session.post(url, data=data, headers=headers, timeout=timeout) as response:
            return Got(response.status, {k.lower(): v for k, v in response.headers.items()}, await response.text())
    except LOST:
        return Got(0, {}, "")


def talk(behaviour: Behaviour, test: Callable[[Stub, Ask], Awaitable[None]]) -> None:
    """Run a test against a stub in this process; `ask(body)` posts to the OpenAI path by default."""

    async def run() -> None:
        async with StubServer(behaviour) as stub, aiohttp.ClientSession() as session:

            async def ask(body: Any = None, path: str = PATH, patience: float = 10, **headers: str) -> Got:
                body = question() if body is None else body
                return await post(session, stub.root + path, body, patience, **headers)

            await test(stub, ask)

    asyncio.run(run())


async def ask_many(ask: Ask, count: int) -> list[Got]:
    return await asyncio.gather(*(ask(question(f"text {number}")) for number in range(count)))
