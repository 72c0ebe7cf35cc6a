"""Runs the service: from the open run folder to the open port, and back."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace

from pcs_annotator.faces.serve.app import OPEN_PATHS, App
from pcs_annotator.faces.web.server import Listening, serve
from pcs_annotator.runs.labelling.service import Service

GARBAGE_THRESHOLD = (20_000, 20, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a service takes on.

    Attributes:
        max_queue: How many texts may be in progress and waiting.
        seconds: How long a request may take.
    """

    max_queue: int = 1024
    seconds: float = 120.0


async def serve_run(
    service: Service, door: Listening, limits: Limits, say: Callable[[str], None], *, verbose: bool = False
) -> None:
    """Open a run, and answer requests until a signal to stop."""
    rules = replace(door.rules, open_paths=OPEN_PATHS)
    async with service:
        app = App(service, max_queue=limits.max_queue, seconds=limits.seconds)
        # With hundreds of texts in progress, Python would look for garbage too often, even in what was loaded before.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLD)
        try:
            say(f"{service.version} is ready; {door.url}/docs describes all routes")
            await serve(app.asgi, replace(door, rules=rules), say, verbose=verbose, on_stop=app.stopping)
        finally:
            await app.stop()
