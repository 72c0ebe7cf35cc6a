"""Exit codes of `pcs`: what each means, and which one a command ends with."""

from collections.abc import Mapping
from enum import IntEnum


class ExitCode(IntEnum):
    """An exit code and its meaning, which `docs/reference/cli.md` is generated from."""

    DONE = 0, "done"
    UNLABELLED = (
        1,
        (
            "done, but some rows with a text have no label; for `pcs relations try`, the relation did not apply; for "
            "`pcs status`, the command failed, died or was interrupted"
        ),
    )
    USER = 2, "a problem that you can fix; the message says how. For `pcs models check`, a model does not answer"
    BUDGET = 3, "the budget or the limit on calls is used up; all answers are kept"
    DRIFT = (
        4,
        "`pcs label` found texts that differ from the gold rows: all are left for review or, with `fail`, unlabelled",
    )
    BUG = 70, "a bug in pcs; `PCS_DEBUG=1` shows the traceback"
    INTERRUPTED = 130, "interrupted by Ctrl-C, SIGTERM or SIGHUP; all answers are kept, and the same command resumes"

    meaning: str

    def __new__(cls, value: int, meaning: str) -> "ExitCode":
        """Return the member with this value."""
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        return code


def exit_code(unlabelled: int, unanswered: Mapping[str, int] | None = None, *, differ: bool = False) -> ExitCode:
    """Return the exit code of a finished command, given its unlabelled texts and its unanswered questions by reason.

    `differ` is whether new texts differ from the gold rows, so that none is accepted.
    """
    if unanswered and unanswered.get("budget reached"):
        return ExitCode.BUDGET
    if differ:
        return ExitCode.DRIFT
    return ExitCode.UNLABELLED if unlabelled else ExitCode.DONE
