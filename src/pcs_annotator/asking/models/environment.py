"""Keys and base URLs: the environment, over a `.env` file."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pcs_annotator.errors import ConfigError

LINE = re.compile(
    r"""\s*(?:export\s+)?
        (?P<name>[A-Za-z_][A-Za-z0-9_.]*)\s*=\s*
        (?:'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s'"\#](?:[^\n]*?[^\s])??)?)
        \s*(?:(?<=[\s'"=])\#.*)?$""",
    re.VERBOSE,
)
ESCAPES = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\\": "\\"}


def read_environment(folder: Path) -> dict[str, str]:
    """Return the variables of the process over those of `folder/.env`, which need not exist.

    Raises:
        ConfigError: The file cannot be read; a bad line is named by its number, never by what it holds.
    """
    return {**_read_file(folder / ".env"), **os.environ}


def parse_environment(text: str, source: str = ".env") -> dict[str, str]:
    r"""Return the variables of a `.env` text: `KEY=value` lines, quotes, `export`, comments.

    >>> parse_environment('export GROQ_API_KEY="gsk"  # mine\nURL=http://localhost#model')
    {'GROQ_API_KEY': 'gsk', 'URL': 'http://localhost#model'}
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LINE.match(line)
        if match is None:
            raise ConfigError(f"{source}, line {number}: not of the form KEY=value; quote values that hold quotes")
        found[match["name"]] = _value(match)
    return found


def _read_file(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as UTF-8 text: {type(error).__name__}; repair or remove it") from None
    return parse_environment(text, str(path))


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(r"\\.", lambda escape: ESCAPES.get(escape[0], escape[0]), match["double"])
    return match["single"] or match["bare"] or ""
