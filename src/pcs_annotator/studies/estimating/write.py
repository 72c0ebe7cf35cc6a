"""Estimates as files: tables for a paper, plain values, and a page with plots."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pcs_annotator.showing import result_tables
from pcs_annotator.studies.estimating.answers import Estimated
from pcs_annotator.studies.estimating.page import page, robust_page
from pcs_annotator.studies.estimating.robust import Robust
from pcs_annotator.studies.estimating.shown import sentences, tables
from pcs_annotator.tables.files import check_ending, write_page


def write_estimates(found: Estimated, path: Path) -> None:
    """Write estimates to a file; its extension says how."""
    check_ending(path, tuple(_FORMATS))
    write_page(path, _FORMATS[path.suffix.lower()](found))


def write_robust(found: Sequence[Robust], path: Path) -> None:
    """Write a specification curve as a page."""
    check_ending(path, (".html", ".htm"))
    write_page(path, robust_page(found))


def _markdown(found: Estimated) -> str:
    said = "\n".join(f"- {sentence}" for sentence in sentences(found))
    return "\n".join([*map(result_tables.to_markdown, tables(found)), said, ""])


def _json(found: Estimated) -> str:
    return json.dumps({**found.to_dict(), "sentences": sentences(found)}, ensure_ascii=False, indent=2) + "\n"


_FORMATS: Mapping[str, Callable[[Estimated], str]] = {
    ".html": page,
    ".htm": page,
    ".md": _markdown,
    ".tex": lambda found: "\n".join(result_tables.to_latex(one, intervals=True) for one in tables(found)),
    ".csv": lambda found: "\n".join(map(result_tables.to_csv, tables(found))),
    ".json": _json,
}
