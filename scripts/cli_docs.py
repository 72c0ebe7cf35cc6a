"""Write docs/reference/cli.md from the commands themselves; with --check, fail if it is out of date."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pcs_annotator.faces.cli.main import pcs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"
WIDTH = 100
INTRODUCTION = """# Command line

This page is written by `scripts/cli_docs.py` from the commands' own help.

Exit codes: 0 done · 1 done, but some rows have no label · 2 you can fix it, the message says how · 130 interrupted.
"""


def page() -> str:
    """Return the page."""
    root = click.Context(pcs, info_name="pcs", terminal_width=WIDTH, max_content_width=WIDTH)
    parts = [INTRODUCTION, block("pcs", pcs.get_help(root))]
    for name in pcs.list_commands(root):
        command = pcs.get_command(root, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=root, terminal_width=WIDTH, max_content_width=WIDTH)
        parts.append(block(f"pcs {name}", command.get_help(context)))
    return "\n".join(parts)


def block(title: str, text: str) -> str:
    """Return one command's help under its name."""
    return f"## `{title}`\n\n```text\n{text.rstrip()}\n```\n"


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
