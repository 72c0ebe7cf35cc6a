"""Everything needed to repeat the run: settings, seeds, version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pcs_annotator.runs.files.config import config_to_dict
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import DASH, count
from pcs_annotator.showing.report.view import View

LONGEST = 400
MOST_TABLES = 8
_PASSWORD = re.compile(r"(?<=//)[^/\s@#]+@")


def settings(view: View) -> b.Folded:
    """Return the settings of the run, one list per part."""
    parts = [_part("run", {"version": view.origin.version, "data": view.data_name, "rows": len(view.result.votes)})]
    if view.graded_answers is not None:
        parts.append(_part("answers", _answers(view.graded_answers)))
    parts += [_part(part, values) for part, values in config_to_dict(view.result.config).items()]
    rebuilt = b.note("pcs report FOLDER rebuilds this page from the run folder.")
    return b.Folded("Settings, versions and seeds", [b.Group(parts, kind="settings"), rebuilt])


def _answers(graded: Mapping[str, int]) -> dict[str, Any]:
    """Return which models gave log-probabilities, with the number of such answers, and which gave labels only."""
    return {
        "graded": [f"{model} ({count(times)} with log-probabilities)" for model, times in graded.items() if times],
        "hard": [model for model, times in graded.items() if not times],
    }


def _part(title: str, values: Mapping[str, Any]) -> b.Group:
    pairs = [(key.replace("_", " "), b.name(setting_text(value))) for key, value in flat_settings(values)]
    return b.Group([b.KeyValues(pairs)], title, kind="")


def flat_settings(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of every setting, those of nested tables included."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat_settings(value, f"{prefix}{key} · ")
        else:
            yield f"{prefix}{key}", value


def setting_text(value: Any) -> str:
    """Return a setting as it is shown, without passwords; a dash if it is not set."""
    if value is None or value == "" or (isinstance(value, Mapping | Sequence) and not value):
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple) and len(value) > MOST_TABLES and isinstance(value[0], Mapping):
        return f"{count(len(value))}, such as {setting_text(value[0])}"
    if isinstance(value, list | tuple):
        return ", ".join(map(setting_text, value))
    text = _PASSWORD.sub("", str(value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
