"""`pcs serve`: label texts over HTTP with a fitted run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.faces.web import need_web
from pcs_annotator.runs.labelling.labeller import LoadOptions
from pcs_annotator.runs.settings import Saving

DEFAULT_PORT = 8080


@click.command("serve", cls=options.ManyOptions)
@click.argument("folder", metavar="RUN", type=options.PATH)
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: any free one.")
@options.listening_options
@click.option(
    "--max-queue", type=click.IntRange(1), default=1024, show_default=True, metavar="N", help="Most texts at a time."
)
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest time for a request; answers that come later are kept for the next one.",
)
@click.option("--concurrency", type=click.IntRange(1), metavar="N", help="At most N calls in flight per model.")
@options.MOVED_LEDGER
@options.saving_options
@options.options_for("on_drift")
@click.option("-v", "--verbose", is_flag=True, help="Print a line per request, without texts.")
def command(
    *,
    folder: Path,
    host: str,
    port: int,
    token: str,
    names: tuple[str, ...],
    max_queue: int,
    timeout: float,
    concurrency: int | None,
    ledger: str,
    verbose: bool,
    **given: Any,
) -> int:
    """Label texts over HTTP with the models, rewrites and weights of the fitted run in the folder RUN.

    POST /v1/classify takes a text or a list of texts; the page at its address has an example to run, all fields and
    errors. Ctrl-C finishes what is in progress and stops.
    """
    need_web("pcs serve")
    from pcs_annotator.faces.serve.app import Limits, serve_run
    from pcs_annotator.faces.web.server import listen
    from pcs_annotator.runs.labelling.service import Service

    saving = options.take(Saving, given)
    service = Service(folder, LoadOptions(saving=saving, ledger=ledger, in_flight=concurrency), options.say)
    service.check()
    door = listen(host, port, token, names)
    with door.socket:
        asyncio.run(
            serve_run(service, door, Limits(max_queue=max_queue, seconds=timeout), options.say, verbose=verbose)
        )
    options.say("stopped; all answers are kept")
    return 0
