"""`pcs plan`: show the calls and the cost of a run, or of labelling new texts; no model is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pcs_annotator.faces.cli import label, options, run_view
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.labelling.fitted import Saving
from pcs_annotator.runs.run_request import RunRequest, default_folder
from pcs_annotator.verbs import plan as planning
from pcs_annotator.verbs.label import plan_labelling


@click.command("plan")
@click.argument("data", type=options.TABLE)
@options.settings_options
@click.option("--run", "folder", type=options.PATH, help="Plan to label DATA with this fitted run.")
@options.stopping_options
@options.LIMIT
@options.JSON
def command(*, data: Path | str, folder: Path | None, config: Path | None, limit: int | None, **given: Any) -> None:
    """Show calls, tokens and cost of a run over DATA; no model is called.

    With --run, the same for labelling DATA with a fitted run: asking all questions, and stopping when labels are
    settled.
    """
    to_json = given.pop("to_json")
    saving = options.take(Saving, dict(given))
    settings = resolve_config.read_settings(config, Path.cwd(), options.take(resolve_config.Flags, given))
    planned = RunRequest(data=data, folder=folder or default_folder(data), config=settings, limit=limit)
    if folder is not None:
        both = plan_labelling(planned, saving)
        options.show(label.label_plan_json, label.print_label_plan, both, to_json=to_json)
    else:
        options.show(run_view.plan_json, run_view.print_plan, planning.plan(planned), to_json=to_json)
