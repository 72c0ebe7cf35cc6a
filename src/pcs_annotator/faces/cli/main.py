"""The `pcs` command itself: finds the verb, and turns every error into one clear sentence."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from pcs_annotator.errors import PcsError
from pcs_annotator.faces.cli.exit_codes import ExitCode
from pcs_annotator.version import __version__

VERBS = {
    "demo": "the whole tour on the embedded model, offline",
    "init": "look at a file and write a commented pcs.toml",
    "plan": "calls, tokens and price of a run; asks nobody",
    "run": "rewrite, ask, learn and label; goes on after any stop",
    "fit": "learn again from recorded votes, free of charge",
    "label": "label new texts with a fitted run",
    "evaluate": "PCS against every other method, on the same votes and splits",
    "experiment": "the paper's tables and figures, on your own votes or texts",
    "report": "one self-contained HTML file of a run",
    "relations": "list rewrites, try one on a text, or measure them on a file",
    "models": "list models, pull one, or check that they answer",
    "ledger": "see, copy or clean the record of paid calls",
}


class LazyGroup(click.Group):
    """Loads a verb only when it is used, so that `pcs --help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order a user meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb's command, or None when there is no such verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"pcs_annotator.faces.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pcs")
def pcs() -> None:
    """Label texts with language models, and know which labels to believe."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        return pcs.main(args=arguments, prog_name="pcs", standalone_mode=False) or 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("stopped; what was paid for is kept, and the same command goes on from there", err=True)
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
        click.echo("       PCS_DEBUG=1 shows where it happened", err=True)
        return ExitCode.BUG


def run() -> None:
    """Entry point of the `pcs` script."""
    sys.exit(main())
