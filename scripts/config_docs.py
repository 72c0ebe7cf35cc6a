"""Write docs/reference/config.md from the table of settings; with --check, fail if it is out of date."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pcs_annotator.base.fields import Setting, settings_in
from pcs_annotator.core.variant import Expectation
from pcs_annotator.runs.settings import OwnRelation, sections

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "config.md"
INTRODUCTION = """# Every key of `pcs.toml`

`scripts/config_docs.py` writes this page from `runs/settings.py`.

`pcs init DATA` writes a `pcs.toml` with comments. `pcs` reads the one in the working folder, or the file given with
`-c`. Every key is optional. Command-line options override the file. A key that does not exist or has the wrong type is
an error that names the line.
"""
HEADER = "| key | type | default | meaning |\n|---|---|---|---|\n"
OWN = """
## `[relations.NAME]`

Your own relation, made from a prompt, which it must have. It is used when `relations.use` lists its name.

"""
VARIABLES = """
## `[variables.NAME]`

A variable of a [codebook](../limits.md#codebooks), with the keys of `[task]`, which is then not used. It needs labels,
unless it is a [value](../passages.md); then it needs an instruction.
"""
PLAIN_TYPES = {str: "string", bool: "true or false", int: "integer", float: "number"}


def page() -> str:
    """Return the page."""
    parts = [f"\n## `[{name}]`\n\n{HEADER}{rows(settings_in(kind))}" for name, kind in sections().items()]
    own = rows([*settings_in(OwnRelation), *settings_in(Expectation)])
    return "".join([INTRODUCTION, *parts, OWN, HEADER, own, VARIABLES])


def rows(settings: Iterable[Setting]) -> str:
    """Return a table row for every setting; one that the docstring does not explain is an error."""
    found = ""
    for one in settings:
        assert one.meaning, one.key
        default = "none" if one.default is None else f"`{toml(one.default)}`"
        cells = (f"`{one.key}`", type_name(one.kind), default, one.meaning)
        found += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return found


def type_name(kind: Any) -> str:
    """Return what to write in the file for a type.

    >>> type_name(tuple[str, ...]), type_name(int), type_name(Mapping[str, tuple[float, float]])
    ('list of strings', 'integer', 'table of pairs of numbers')
    """
    inner = get_args(kind)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(f"`{toml(choice)}`" for choice in inner)
    if get_origin(kind) is Mapping:
        return "table of " + re.sub(r"^(list|string)", r"\1s", type_name(inner[1]))
    if get_origin(kind) is tuple:
        return "list of strings" if inner[-1] is Ellipsis else "pairs of numbers"
    return PLAIN_TYPES[kind]


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
