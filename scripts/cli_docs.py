"""Write docs/reference/cli.md from the commands themselves; with --check, fail if it is out of date."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from pcs_annotator.faces.cli.ending import ExitCode
from pcs_annotator.faces.cli.main import pcs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"
WIDTH = 100
CRON = """
## From cron

```sh
cd /srv/news && pcs label new.csv --run runs/news --no-wait --budget-per-day 5 > pcs.out 2>> pcs.log
case $? in
  0 | 1) ;;   # done; 1: some texts have no label
  3 | 130) ;; # the budget is spent, or it was stopped: the next time it goes on, and nothing is paid for twice
  *) tail -n 3 pcs.log | mail -s "pcs label" me@example.org ;; # 2 says what to do; 4: drift; 70: a bug
esac
```

Meanwhile and afterwards, `pcs status runs/news` shows how far it is. Its exit code is 0 if the command runs or has
finished, 1 if it failed, died or was interrupted, and 2 if no command has worked in that folder.
"""
MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.UNLABELLED: "done, but some rows with a text have no label; for `pcs relations try`, the relation did not "
    "apply; for `pcs status`, the command failed, died or was interrupted",
    ExitCode.USER: "a problem that you can fix; the message says how. For `pcs models check`, a model does not answer",
    ExitCode.BUDGET: "the budget or the limit on calls is used up; all answers are kept",
    ExitCode.DRIFT: "`pcs label` found texts that differ from the gold rows: all are left for review or, with `fail`, "
    "unlabelled",
    ExitCode.BUG: "a bug in pcs; `PCS_DEBUG=1` shows the traceback",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C, SIGTERM or SIGHUP; all answers are kept, and the same command "
    "resumes",
}
INTRODUCTION = """# Command line

<!-- written by scripts/cli_docs.py; do not edit -->

| exit code | meaning |
|---|---|
"""


def page() -> str:
    """Return the page: the exit codes, then the help of every command."""
    codes = "".join(f"| {code.value} | {MEANINGS[code]} |\n" for code in ExitCode)
    root = click.Context(pcs, info_name="pcs", terminal_width=WIDTH, **pcs.context_settings)
    return "\n".join([INTRODUCTION + codes + CRON, *blocks(root)])


def blocks(context: click.Context) -> Iterator[str]:
    """Yield the help of a command and of all commands below it, each under its name."""
    command = context.command
    yield f"## `{context.command_path}`\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from blocks(click.Context(found, info_name=name, parent=context))


def main() -> int:
    """Write or check the page."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is out of date: run python scripts/cli_docs.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
