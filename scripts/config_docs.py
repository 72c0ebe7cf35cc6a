"""Write docs/reference/config.md from the classes behind pcs.toml; with --check, fail if it is out of date."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pcs_annotator.core.variant import Expectation
from pcs_annotator.runs.files.config import Config, OwnRelation

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "config.md"
INTRODUCTION = """# Every key of `pcs.toml`

`scripts/config_docs.py` writes this page from `runs/files/config.py`.

`pcs init DATA` writes a `pcs.toml` with comments. `pcs` reads the one in the working folder, or the file given with
`-c`. Every key is optional. Command-line options override the file. A key that does not exist or has the wrong type is
an error that names the line.
"""
OWN = """
## `[relations.NAME]`

Your own relation, made from a prompt. It is used when `relations.use` lists its name.
"""
PLAIN_TYPES = {str: "string", bool: "true or false", int: "integer", float: "number"}


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for name, kind in get_type_hints(Config).items():
        known = [entry for entry in fields(kind) if entry.name != "own"]
        parts.append(f"\n## `[{name}]`\n\n{table(kind, known)}")
    own = [entry for entry in fields(OwnRelation) if entry.name != "expects"]
    parts.append(f"{OWN}\n{table(OwnRelation, own)}{''.join(rows(Expectation, fields(Expectation)))}")
    return "".join(parts)


def table(kind: type, entries: Iterable[Field[Any]]) -> str:
    """Return the keys of a section as a table."""
    return "| key | type | default | meaning |\n|---|---|---|---|\n" + "".join(rows(kind, entries))


def rows(kind: type, entries: Iterable[Field[Any]]) -> Iterable[str]:
    """Yield a table row for every key; a key that the docstring does not explain is an error."""
    hints, meanings = get_type_hints(kind), attribute_meanings(kind)
    for entry in entries:
        cells = (f"`{entry.name}`", type_name(hints[entry.name]), default_of(entry), meanings[entry.name])
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def attribute_meanings(kind: type) -> dict[str, str]:
    """Return attribute → meaning, from the `Attributes:` section of a class's docstring."""
    _, _, section = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def type_name(hint: Any) -> str:
    """Return what to write in the file for a type.

    >>> type_name(tuple[str, ...]), type_name(int | None), type_name(Mapping[str, tuple[float, float]])
    ('list of strings', 'integer', 'table of pairs of numbers')
    """
    if isinstance(hint, UnionType):
        hint = next(part for part in get_args(hint) if part is not NoneType)
    inner = get_args(hint)
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(f"`{toml(choice)}`" for choice in inner)
    if get_origin(hint) is Mapping:
        return "table of " + ("pairs of numbers" if get_origin(inner[1]) is tuple else "strings")
    return "list of strings" if get_origin(hint) is tuple else PLAIN_TYPES[hint]


def default_of(entry: Field[Any]) -> str:
    """Return a key's default as it would be written in the file."""
    if entry.default is MISSING and entry.default_factory is MISSING:
        return "required"
    value = entry.default if entry.default_factory is MISSING else entry.default_factory()
    return "none" if value is None else f"`{toml(value)}`"


def toml(value: Any) -> str:
    """Return a value as TOML; for the few types that settings have, JSON looks the same."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def main() -> int:
    """Write or check the page."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is out of date: run python scripts/config_docs.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
