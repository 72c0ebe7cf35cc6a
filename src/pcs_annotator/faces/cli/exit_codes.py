"""Exit codes of `pcs`: what each means, and which one a command ends with."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class ExitCode(IntEnum):
    """The meaning of every exit code."""

    DONE = 0
    UNLABELLED = 1
    """Done, but some rows have no label; for `pcs relations try`, the text was not changed."""
    USER = 2
    """The user can fix it; the message says how."""
    BUDGET = 3
    """The budget was reached; everything paid for is kept."""
    BUG = 70
    INTERRUPTED = 130
    """Stopped by the user; everything paid for is kept."""


def exit_code(unlabelled: int, unanswered: Mapping[str, int] | None = None) -> ExitCode:
    """Return the exit code of a finished command, from its rows without a label and its questions without an answer."""
    if unanswered and unanswered.get("budget reached"):
        return ExitCode.BUDGET
    return ExitCode.UNLABELLED if unlabelled else ExitCode.DONE
