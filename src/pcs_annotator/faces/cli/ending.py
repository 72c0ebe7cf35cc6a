"""How a command ends: its exit code, and what goes to stderr, in lines as wide as the terminal."""

import os
import shutil
import sys
from collections.abc import Mapping
from enum import IntEnum
from textwrap import TextWrapper

import click


class ExitCode(IntEnum):
    """What a command ends with; `scripts/cli_docs.py` has the meanings."""

    DONE = 0
    UNLABELLED = 1
    USER = 2
    BUDGET = 3
    DRIFT = 4
    BUG = 70
    INTERRUPTED = 130


def exit_code(unlabelled: int, unanswered: Mapping[str, int] | None = None, *, differ: bool = False) -> ExitCode:
    """Return the exit code of a finished command, given its unlabelled texts and its unanswered questions by reason.

    `differ` is whether new texts differ from the gold rows, so that none is accepted.
    """
    if unanswered and unanswered.get("budget reached"):
        return ExitCode.BUDGET
    if differ:
        return ExitCode.DRIFT
    return ExitCode.UNLABELLED if unlabelled else ExitCode.DONE


def complain(text: str) -> None:
    """Print a sentence, wrapped at words; whole if a file or another program reads it."""
    if sys.stderr.isatty() or "COLUMNS" in os.environ:
        width = max(shutil.get_terminal_size().columns, 20)
        lines = TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        text = "\n".join(map(lines.fill, text.splitlines()))
    click.echo(text, err=True)
