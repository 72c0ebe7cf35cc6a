"""`pcs merge`: the answers of several run folders in one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from pcs_annotator.faces.cli import exit_codes, options, run_view
from pcs_annotator.verbs import merge


@click.command("merge")
@click.argument("out", type=options.PATH)
@click.argument("folders", type=options.PATH, nargs=-1, required=True)
@click.option("--data", type=options.TABLE, help="The whole table, if it is no longer where the runs read it.")
@options.SPREADSHEET_SAFE
@options.REPLACE
@options.NO_WAIT
@options.JSON
@options.QUIET
def command(
    *, out: Path, folders: tuple[Path, ...], data: Path | str | None, to_json: bool, quiet: bool, **given: Any
) -> int:
    """Put the answers of run FOLDERS, such as those of `pcs run --shard`, together in the run folder OUT.

    Then the whole table is learned from and labelled there. No model is called.
    """
    shown = not (to_json or quiet)
    with options.gathered_warnings() as notes:
        result = merge.merge(out, folders, data, progress=shown, say=partial(options.say, shown=shown), **given)
    options.show(run_view.run_json, run_view.print_run, result, notes, to_json=to_json, quiet=quiet)
    return exit_codes.exit_code(result.counts.unanswered, result.tally.failed)
