"""The `pcs` command: loads the verb, and turns every error into one clear sentence."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from pcs_annotator.errors import PcsError
from pcs_annotator.faces.cli.exit_codes import ExitCode
from pcs_annotator.version import __version__

VERBS = {
    "demo": "a tour with the embedded model, offline",
    "init": "inspect a data file and write a commented pcs.toml",
    "plan": "show calls, tokens and cost of a run; no model is called",
    "run": "rewrite, ask, learn and label; resumes after an interruption",
    "fit": "learn again from recorded votes; no model is called",
    "label": "label new texts with a fitted run",
    "evaluate": "compare PCS with other methods on the same votes",
    "experiment": "make the paper's tables and figures from your data",
    "report": "write the report of a run, one HTML file",
    "relations": "list relations, try one on a text, or measure them on a file",
    "models": "list models, download one, or check that they answer",
    "ledger": "inspect, copy or clean up the record of paid calls",
}


class LazyGroup(click.Group):
    """A group that imports a verb only when it is used, so that `pcs --help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which users need them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a verb, or None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"pcs_annotator.faces.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pcs")
def pcs() -> None:
    """Label texts with language models, and know which labels to trust."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        return pcs.main(args=arguments, prog_name="pcs", standalone_mode=False) or 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted; all answers are kept, and the same command resumes", err=True)
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return ExitCode.USER
    except PcsError as error:
        click.echo(f"error: {error}", err=True)
        return ExitCode.USER
    except Exception as error:
        if os.environ.get("PCS_DEBUG"):
            raise
        click.echo(f"error: a bug in pcs, please report it: {type(error).__name__}: {error}", err=True)
        click.echo("       set PCS_DEBUG=1 to see the traceback", err=True)
        return ExitCode.BUG


def run() -> None:
    """Entry point of the `pcs` script."""
    sys.exit(main())
