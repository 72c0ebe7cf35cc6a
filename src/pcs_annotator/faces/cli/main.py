"""The `pcs` command itself: finds the verb, and turns every error into one clear sentence."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from pcs_annotator import __version__
from pcs_annotator.errors import PcsError

EXIT_USER = 2
EXIT_BUG = 70
EXIT_INTERRUPTED = 130

VERBS = {
    "fit": "learn from recorded votes and label every row",
    "relations": "list rewrites, try one on a text, or measure them on a file",
    "models": "list models, or check that they answer",
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
    except click.exceptions.Abort:
        click.echo("stopped", err=True)
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return EXIT_USER
    except PcsError as error:
        click.echo(f"error: {error}", err=True)
        return EXIT_USER
    except Exception as error:
        if os.environ.get("PCS_DEBUG"):
            raise
        click.echo(f"error: a bug in pcs, please report it: {type(error).__name__}: {error}", err=True)
        click.echo("       PCS_DEBUG=1 shows where it happened", err=True)
        return EXIT_BUG


def run() -> None:
    """Entry point of the `pcs` script."""
    sys.exit(main())
