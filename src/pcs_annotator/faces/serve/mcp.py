"""`pcs serve --mcp`: the service as tools of an assistant (Model Context Protocol over standard input and output)."""

import asyncio
import os
import signal
from collections.abc import Mapping
from shlex import quote
from typing import Annotated, Any

from mcp.server.fastmcp import FastMCP
from pydantic import Field
from starlette.exceptions import HTTPException

from pcs_annotator.base.errors import PcsError
from pcs_annotator.faces.serve import Limits
from pcs_annotator.faces.serve.service_app import App, opened_app
from pcs_annotator.reviewing.session import Review
from pcs_annotator.runs.codebook import CodebookFolder
from pcs_annotator.runs.service import Service

INSTRUCTIONS = """Labels with decision `accept` keep the promised error rate. Labels with decision `review` are \
proposals: show them to a person, and never report them as settled. People decide in `pcs review`; no tool here gives \
a verdict."""


def tools_of(app: App, service: Service) -> FastMCP:
    """Return the tools of an open service."""
    server = FastMCP("pcs", instructions=INSTRUCTIONS)

    @server.tool()
    async def classify(input: Annotated[list[str | dict[str, str]], Field(min_length=1)]) -> dict[str, Any]:
        """Label texts, or pairs with the texts `a` and `b`: for each a label, its confidence, and `accept` or `review`.

        It may call paid models, within the budget of the service.
        """
        try:
            return await app.labelled({"input": input})
        except (HTTPException, PcsError) as error:
            raise ValueError(getattr(error, "detail", str(error))) from None
        except Exception as error:  # its message may quote a text
            raise ValueError(f"the service failed: {type(error).__name__}") from None

    @server.tool()
    async def status() -> dict[str, Any]:
        """Say whether texts get labels now, which labels there are, what was spent, and how many wait for people."""
        return {
            **app.state(),
            "labels": service.names,
            "kept_for_people": service.waiting,
            "figures": app.watch.figures(),
        }

    @server.tool()
    async def review_queue(rows: Annotated[int, Field(ge=1, le=50)] = 10) -> dict[str, Any]:
        """List rows that a person should look at, least certain first, with the proposed labels."""
        review, waiting = await asyncio.to_thread(Review.for_people, service.folder.path)
        listed = [review.listed(row) for row in waiting[:rows].tolist()]
        shown = [{"id": row.id, "text": row.text, "label": row.label, "confidence": row.confidence} for row in listed]
        command = f"a person runs: pcs review {quote(str(service.folder.path))}"
        return {"total": len(waiting), "rows": shown, "next": command}

    return server


async def serve_mcp(services: Mapping[str, Service], limits: Limits, book: CodebookFolder | None) -> None:
    """Open a run, or all parts of a codebook, and answer until standard input ends or a signal comes."""
    async with opened_app(services, limits, book) as app:

        async def end() -> None:  # nothing else ends the thread that waits for standard input
            await app.stop()
            os._exit(0)

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, lambda: asyncio.ensure_future(end()))
        await tools_of(app, next(iter(services.values()))).run_stdio_async()
