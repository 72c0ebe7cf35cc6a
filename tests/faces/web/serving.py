"""A web app on a real socket, for tests."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from starlette.types import ASGIApp

from pcs_annotator.faces.web.server import Listening, listen, serve


@asynccontextmanager
async def serving(
    app: ASGIApp,
    *,
    token: str = "",
    say: Callable[[str], None] = lambda line: None,
    on_stop: Callable[[], None] = lambda: None,
    **rules: Any,
) -> AsyncIterator[Listening]:
    """Serve an app at a free port of this machine until the block ends; `rules` are changes of the guard's rules."""
    door = listen("127.0.0.1", 0, token)
    door = replace(door, rules=replace(door.rules, **rules))
    task = asyncio.create_task(serve(app, door, say, verbose=True, on_stop=on_stop))
    try:
        yield door
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
