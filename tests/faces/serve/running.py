"""The service on a real socket, in this process."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from pcs_annotator.faces.serve import Limits
from pcs_annotator.faces.serve.service_app import OPEN_PATHS, App
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.labeller import LoadOptions
from pcs_annotator.runs.service import Service
from pcs_annotator.runs.settings import Saving
from tests.faces.web.serving import serving


@dataclass(frozen=True)
class Running:
    """A service, and a client of it."""

    service: Service
    app: App
    client: aiohttp.ClientSession
    lines: list[str]

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        """Return status and body of an answer."""
        async with self.client.request(method, path, **more) as answer:
            body = await answer.json() if answer.content_type == "application/json" else await answer.text()
            return answer.status, body

    async def classify(self, texts: str | list[str], **headers: str) -> tuple[int, Any]:
        return await self.ask("POST", "/v1/classify", json={"input": texts}, headers=headers)


@asynccontextmanager
async def running(
    folder: Path,
    *,
    max_queue: int = 100,
    seconds: float = 60,
    saving: Saving | None = None,
    token: str = "",
    ledger: str = "",
) -> AsyncIterator[Running]:
    """Serve a run until the block ends."""
    lines: list[str] = []
    options, book = LoadOptions(saving=saving or Saving(), ledger=ledger, environment={}), Book.open(folder)
    services = book.each(lambda path: Service(path, options, lines.append))
    async with AsyncExitStack() as stack:
        for service in services.values():
            await stack.enter_async_context(service)
        limits, variables = Limits(max_queue=max_queue, seconds=seconds), book.variables if book.named else {}
        app = App(services, limits, variables=variables)
        try:
            async with (
                serving(app.asgi, token=token, say=lines.append, on_stop=app.stopping, open_paths=OPEN_PATHS) as door,
                aiohttp.ClientSession(door.url) as client,
            ):
                yield Running(app.service, app, client, lines)
        finally:
            await app.stop()


@contextmanager
def running_in_thread(folder: Path, token: str = "") -> Iterator[str]:
    """Serve a run from another thread, for clients that are synchronous; yields its address."""
    ready, found = threading.Event(), list[str]()
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def served() -> None:
        async with running(folder, token=token) as one:
            end = asyncio.Event()
            stop.append((asyncio.get_running_loop(), end))
            found.append(str(one.client._base_url).rstrip("/"))
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(served()))
    thread.start()
    assert ready.wait(30)
    yield found[0]
    stop[0][0].call_soon_threadsafe(stop[0][1].set)
    thread.join(30)
