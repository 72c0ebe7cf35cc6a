"""What goes to stderr, in lines as wide as the terminal."""

import os
import shutil
import sys
from textwrap import TextWrapper

import click


def complain(text: str) -> None:
    """Print a sentence, wrapped at words; whole if a file or another program reads it."""
    if sys.stderr.isatty() or "COLUMNS" in os.environ:
        width = max(shutil.get_terminal_size().columns, 20)
        lines = TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        text = "\n".join(map(lines.fill, text.splitlines()))
    click.echo(text, err=True)
