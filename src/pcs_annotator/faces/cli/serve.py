"""`pcs serve`: labels over HTTP."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.faces.serve import Limits
from pcs_annotator.faces.web import need_web
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.labeller import LoadOptions
from pcs_annotator.runs.settings import Saving

DEFAULT_PORT = 8080


@click.command("serve", cls=options.ManyOptions)
@click.argument("folder", metavar="RUN", type=options.PATH)
@options.listening_options(DEFAULT_PORT)
@options.options_in(Limits)
@click.option(
    "--concurrency", "in_flight", type=click.IntRange(1), metavar="N", help="At most N calls in flight per model."
)
@options.MOVED_LEDGER
@options.saving_options
@options.options_for("on_drift", "audit", "keep_texts", "keep_days")
@click.option(
    "--mcp", is_flag=True, help="Be a tool of an assistant (Model Context Protocol) instead; no port is open."
)
@click.option("-v", "--verbose", is_flag=True, help="Print a line per request, without texts.")
def command(*, folder: Path, mcp: bool, verbose: bool, **choices: Any) -> int:
    """Label texts over HTTP with the models, rewrites and weights of the fitted run in the folder RUN.

    POST /v1/classify takes a text or a list of texts; /openapi.json describes all fields and errors. Ctrl-C finishes
    what is in progress and stops.
    """
    need_web("pcs serve")
    from pcs_annotator.faces.serve.service_app import opened_app, serve_run
    from pcs_annotator.faces.web.server import listen
    from pcs_annotator.runs.service import Service

    choices["saving"] = options.take(Saving, choices)
    how, book = options.take(LoadOptions, choices), Book.open(folder)
    limits = options.take(Limits, choices)
    say = partial(click.echo, err=True) if mcp else options.say  # an assistant reads standard output
    services = book.each(lambda path: Service(path, how, say, limits.refit_every))
    if mcp:
        need_web("pcs serve --mcp", "mcp")
        from pcs_annotator.faces.serve.mcp import serve_mcp

        asyncio.run(serve_mcp(opened_app(services, limits, book)))
        return 0
    door = options.take(listen, choices)
    with door.socket:
        asyncio.run(serve_run(services, door, limits, options.say, book=book, verbose=verbose))
    options.say("stopped; all answers are kept")
    return 0
