"""A small chat server on this machine, and requests to send to it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import web

from pcs_annotator.core.chat import ChatModel, Constraint, Message, Reply, Request

KEY = "sk-test-0123456789abcdef"
T = TypeVar("T")


@dataclass
class Seen:
    """A request as the server received it."""

    path: str
    headers: Mapping[str, str]
    body: Any
    peer: object


@dataclass
class Stub:
    port: int = 0
    seen: list[Seen] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def opens(self, provider: str) -> dict[str, str]:
        """An environment that redirects a provider to this server."""
        return {f"{provider.upper()}_BASE_URL": self.url, f"{provider.upper()}_API_KEY": KEY}


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def completion(content: object = "positive", **more: Any) -> dict[str, Any]:
    """A response body of the OpenAI protocol."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    choice.update(more.pop("choice", {}))
    return {"choices": [choice], "usage": {"prompt_tokens": 11, "completion_tokens": 2}, **more}


def says(body: object = None, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A handler that always gives the same answer; bytes and text are sent as they are."""
    data = completion() if body is None else body
    raw = data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else json.dumps(data).encode()

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=raw, status=status, headers=headers, content_type="application/json")

    return handle


@asynccontextmanager
async def serving(answer: Answer | None = None) -> AsyncIterator[Stub]:
    """Run a server that answers every path."""
    stub = Stub()
    handler = answer or says()

    async def note(request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        peer = request.transport.get_extra_info("peername") if request.transport else None
        stub.seen.append(Seen(request.path_qs, request.headers.copy(), json.loads(raw) if raw else None, peer))
        return await handler(request)

    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", note)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    stub.port = runner.addresses[0][1]
    try:
        yield stub
    finally:
        await runner.cleanup()


def question(
    text: str = "Nice!",
    *,
    system: str | None = "Label it.",
    max_tokens: int | None = None,
    constraint: Constraint | None = None,
    logprobs: int = 0,
) -> Request:
    head = (Message("system", system),) if system is not None else ()
    messages = (*head, Message("user", text))
    return Request(messages=messages, max_tokens=max_tokens, constraint=constraint, logprobs=logprobs)


async def ask_once(model: ChatModel, request: Request | None = None) -> Reply:
    try:
        return await model.ask(request or question())
    finally:
        await model.close()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)
