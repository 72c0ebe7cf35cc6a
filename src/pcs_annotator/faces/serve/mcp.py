"""`pcs serve --mcp`: the service as tools of an assistant (Model Context Protocol over standard input and output)."""

import asyncio
import os
import signal
from contextlib import AbstractAsyncContextManager
from shlex import quote
from typing import Annotated, Any

from mcp.server.fastmcp import FastMCP
from pydantic import Field
from starlette.exceptions import HTTPException

from pcs_annotator.base.errors import PcsError
from pcs_annotator.faces.serve.service_app import App
from pcs_annotator.reviewing.session import Review

INSTRUCTIONS = """Labels with decision `accept` keep the promised error rate. Those with `review` are proposals: never \
report them as settled, but show them to a person, who decides in `pcs review`; no tool here gives a verdict."""


def tools_of(app: App) -> FastMCP:
    """Return the tools of an open service."""
    server, folder = FastMCP("pcs", instructions=INSTRUCTIONS), app.service.folder.path

    @server.tool()
    async def classify(input: Annotated[list[str | dict[str, str]], Field(min_length=1)]) -> dict[str, Any]:
        """Label texts, or pairs `a` and `b`, perhaps with paid models: label, confidence, and `accept` or `review`."""
        try:
            return await app.labelled({"input": input})
        except Exception as error:  # the message of one that is not ours may quote a text
            ours, name = isinstance(error, HTTPException | PcsError), type(error).__name__
            raise ValueError(getattr(error, "detail", str(error)) if ours else f"the service failed: {name}") from None

    @server.tool()
    async def status() -> dict[str, Any]:
        """Say whether texts get labels now, which labels there are, what was spent, and how many wait for people."""
        waiting, figures = app.service.waiting, app.watch.figures()
        return {**app.state(), "labels": app.service.names, "kept_for_people": waiting, "figures": figures}

    @server.tool()
    async def review_queue(rows: Annotated[int, Field(ge=1, le=50)] = 10) -> dict[str, Any]:
        """List rows that a person should look at, least certain first, with the proposed labels."""
        review, waiting = await asyncio.to_thread(Review.for_people, folder)
        listed, names = map(review.listed, waiting[:rows].tolist()), ("id", "text", "label", "confidence")
        shown = [{name: getattr(row, name) for name in names} for row in listed]
        return {"total": len(waiting), "rows": shown, "next": f"a person runs: pcs review {quote(str(folder))}"}

    return server


async def serve_mcp(opened: AbstractAsyncContextManager[App]) -> None:
    """Open a service, and answer until standard input ends or a signal comes."""
    async with opened as app:

        async def end() -> None:  # nothing else ends the thread that waits for standard input
            await app.stop()
            os._exit(0)

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, lambda: asyncio.ensure_future(end()))
        await tools_of(app).run_stdio_async()
