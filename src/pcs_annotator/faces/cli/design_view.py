"""What `pcs plan --design` shows."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pcs_annotator.pipeline.designing import PanelDesign


def design_json(found: PanelDesign) -> dict[str, Any]:
    """Return a design as plain values."""
    return {
        "budget": found.designed.budget,
        "gold_rows": found.gold_rows,
        "optimiser": found.designed.optimiser,
        "panel": _cells_json(found, found.designed.chosen),
        "curve": [
            {
                "cost": panel.cost,
                "auroc": panel.auroc.value,
                "low": panel.auroc.interval.low,
                "high": panel.auroc.interval.high,
                "n": panel.auroc.n,
                "panel": _cells_json(found, panel),
            }
            for panel in found.designed.curve
        ],
    }


def _cells_json(found: PanelDesign, panel: Any) -> list[dict[str, Any]]:
    return [
        {"annotator": annotator, "relation": relation, "draws": draws}
        for (annotator, relation), draws in found.cells(panel).items()
    ]


def print_design(found: PanelDesign, console: Console | None = None) -> None:
    """Print the quality–cost curve and the panel to ask."""
    console = console or Console(highlight=False)
    curve = Table(box=None, padding=(0, 1), show_edge=False)
    for title in ("cost of a text", "AUROC", "95 % interval", "questions"):
        curve.add_column(title, justify="right")
    for panel in found.designed.curve:
        low, high = panel.auroc.interval
        curve.add_row(f"{panel.cost:g}", f"{panel.auroc.value:.3f}", f"{low:.2f} – {high:.2f}", str(len(panel.cells)))
    console.print(f"designed on {found.gold_rows:,} gold rows; AUROC on rows that the design did not see")
    console.print(curve)
    console.print(f"\n[bold]ask about each text[/], and learn by {found.designed.optimiser}:")
    for (annotator, relation), draws in found.cells(found.designed.chosen).items():
        console.print(Text(f"  {annotator}  {relation}" + (f"  × {draws}" if draws > 1 else "")))
