"""`pcs plan`: what a run would ask and cost; asks nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pcs_annotator.faces.cli.options import JSON, LIMIT, PATH, flags_of, settings_options
from pcs_annotator.faces.cli.run import default_folder
from pcs_annotator.faces.cli.run_view import plan_json, print_plan
from pcs_annotator.pipeline.run import RunRequest, plan
from pcs_annotator.pipeline.settling import read_settings


@click.command("plan")
@click.argument("data", type=PATH)
@settings_options
@LIMIT
@JSON
def command(*, data: Path, config: Path | None, limit: int | None, to_json: bool, **options: Any) -> None:
    """Show calls, tokens and price of a run over DATA; asks nobody."""
    settings = read_settings(config, Path.cwd(), flags_of(options))
    planned = plan(RunRequest(data=data, folder=default_folder(data), config=settings, limit=limit))
    if to_json:
        click.echo(json.dumps(plan_json(planned), indent=2))
    else:
        print_plan(planned)
