"""What the calls cost, and everything needed to repeat the run: settings, seeds, version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pcs_annotator.base.text import counted
from pcs_annotator.runs.files.config import config_to_dict
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import DASH, count, total_cost
from pcs_annotator.showing.report.view import View

if TYPE_CHECKING:  # it imports the code that learns, and `pcs plan` shows bills too
    from pcs_annotator.runs.run_result import RunResult
LONGEST = 400
MOST_TABLES = 8
_PASSWORD = re.compile(r"(?<=//)[^/\s@#]+@")


def cost(result: RunResult) -> b.Folded | None:
    """Return calls, tokens and cost per model; None if no call is known."""
    bills = result.bills
    rows = [*b.bill_rows(bills), *([b.bill_total("total", bills)] if len(bills) > 1 else [])]
    table = b.Table(columns=b.bill_columns(), rows=rows) if bills else None
    shown = [table, _elsewhere(result), _last_run(result)]
    return b.Folded("Cost, by model", shown) if any(shown) else None


def _elsewhere(result: RunResult) -> b.Paragraph | None:
    """Return what was taken from a shared ledger that others had paid for; None if nothing was."""
    bills = result.paid_elsewhere
    if not bills:
        return None
    paid, all_ = (counted(sum(bill.calls for bill in some), "answer") for some in (bills, result.used))
    price = total_cost([bill.usd for bill in bills])
    return b.note(
        f"The ledger is shared: {paid} of the {all_} behind these labels had been paid for in other folders ({price})."
    )


def _last_run(result: RunResult) -> b.Paragraph | None:
    tally = result.tally
    if not tally.calls and not tally.from_ledger:
        return None
    parts = [f"Last run: {counted(tally.calls, 'call')}"]
    if tally.from_ledger:
        parts.append(f"{counted(tally.from_ledger, 'answer')} reused from the ledger at no cost")
    if tally.retries:
        parts.append(tally.retries_by_cause())
    return b.note("; ".join(parts) + ".")


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
