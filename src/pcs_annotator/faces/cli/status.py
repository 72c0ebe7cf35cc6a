"""`pcs status`: how far a running command is, or how the last one ended."""

import json
import time
from pathlib import Path

import click

from pcs_annotator.faces.cli import options
from pcs_annotator.faces.cli.ending import ExitCode
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.watch import EVERY, read_status, status_lines


@click.command("status")
@click.argument("folder", metavar="RUN", type=options.PATH)
@click.option("--watch", is_flag=True, help="Print again every second, with --json in one line, until nothing runs.")
@options.JSON
def command(folder: Path, watch: bool) -> ExitCode:
    """Show rows, pace, calls, retries, cost, budget and time left of the command that works in the folder RUN.

    Any process that can read the folder may ask. After the end, it shows how the last command ended.
    """
    while True:
        jobs = read_status(RunFolder(folder))
        running = any(job["state"] == "running" for job in jobs)
        if watch and options.wanted("json"):
            click.echo(json.dumps({"jobs": jobs}, ensure_ascii=False))
        else:
            if watch:
                click.clear()  # does nothing unless it is a terminal
            options.tell({"jobs": jobs}, *(line for job in jobs for line in status_lines(job)))
        if not (watch and running):
            ended = running or all(job["state"] in ("running", "finished") for job in jobs)
            return ExitCode.DONE if ended else ExitCode.UNLABELLED
        time.sleep(EVERY)
