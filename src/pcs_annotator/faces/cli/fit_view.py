"""What `pcs fit` shows: weights as bars, figures as a table, and the same as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pcs_annotator.core.weights import Interval
from pcs_annotator.pipeline.project import FitFiles, FittedTable

BAR_WIDTH = 30
METRICS = (
    ("auroc", "AUROC"),
    ("accuracy", "accuracy"),
    ("ece_score", "ECE of PCS"),
    ("ece_confidence", "ECE calibrated"),
)


def as_json(fitted: FittedTable, files: FitFiles, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_fit` shows as plain values."""
    weights = fitted.learned.model.weights
    told = weights.diagnostics
    return {
        "rows": len(fitted.outcomes),
        "gold_rows": told.gold_rows,
        "rows_without_label": fitted.unlabelled,
        "labels": list(fitted.table.votes.labels),
        "optimiser": told.optimiser,
        "candidates": dict(told.candidates),
        "weights": {
            "by_annotator": weights.by_annotator,
            "by_relation": weights.by_relation,
            "annotator_intervals": {name: list(ends) for name, ends in told.annotator_intervals.items()},
            "relation_intervals": {name: list(ends) for name, ends in told.relation_intervals.items()},
        },
        "cross_validation": [_figures_json(figures) for figures in fitted.learned.figures],
        "no_cross_validation": fitted.learned.no_figures,
        "flags": [flag._asdict() for flag in told.flags],
        "warnings": list(notes),
        "model": str(files.model),
        "out": str(files.labels_out) if files.labels_out else None,
    }


def _figures_json(figures: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"method": figures.method}
    for name, _ in METRICS:
        estimate = getattr(figures, name)
        result[name] = {
            "value": estimate.value,
            "low": estimate.interval.low,
            "high": estimate.interval.high,
            "n": estimate.n,
        }
    if figures.behind:
        test = figures.behind
        result["behind"] = {
            "auroc": test.difference,
            "low": test.interval.low,
            "high": test.interval.high,
            "p_value": test.p_value,
        }
    return result


def print_fit(fitted: FittedTable, files: FitFiles, notes: Sequence[str], console: Console | None = None) -> None:
    """Print the fit for a person."""
    console = console or Console(highlight=False)
    weights = fitted.learned.model.weights
    told = weights.diagnostics
    votes = fitted.table.votes
    console.print(
        f"[bold]{len(votes):,}[/] items × {len(votes.annotators)} annotators × {len(votes.relations)} relations, "
        f"[bold]{told.gold_rows:,}[/] with gold, labels {', '.join(votes.labels)}"
    )
    console.print()
    console.print(_bars("annotator", weights.by_annotator, told.annotator_intervals))
    console.print()
    console.print(_bars("relation", weights.by_relation, told.relation_intervals))
    console.print(f"\nlearned by [bold]{told.optimiser}[/]{_candidates(told.candidates)}")
    if fitted.learned.figures:
        gold_rows = fitted.learned.figures[0].auroc.n
        console.print(f"\ncross-validated on the {gold_rows:,} gold rows, with 95 % intervals")
        console.print(_figures_table(fitted.learned.figures))
        console.print(_verdict(fitted.learned.figures), style="dim")
    else:
        console.print(f"not cross-validated: {fitted.learned.no_figures}", style="yellow")
    for note in notes:
        console.print(Text(f"note: {note}", style="yellow"))
    if fitted.unlabelled:
        rows = "1 row has" if fitted.unlabelled == 1 else f"{fitted.unlabelled:,} rows have"
        console.print(f"{rows} no label, because nobody voted", style="yellow")
    console.print(f"\nwrote {files.model}" + (f" and {files.labels_out}" if files.labels_out else ""))


def _candidates(losses: Mapping[str, float]) -> str:
    if not losses:
        return ""
    listed = ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items())
    return f", the lowest log-loss in cross-validation: {listed}"


def _bars(title: str, weights: Mapping[str, float], intervals: Mapping[str, Interval]) -> Table:
    table = Table(box=None, padding=(0, 1), show_edge=False)
    table.add_column(title, style="bold", no_wrap=True)
    table.add_column("weight", justify="right")
    table.add_column("95 % interval", justify="center", style="dim")
    table.add_column("")
    for name, weight in sorted(weights.items(), key=lambda pair: -pair[1]):
        interval = intervals.get(name)
        span = f"{interval.low:.2f} – {interval.high:.2f}" if interval else ""
        table.add_row(Text(name), f"{weight:.3f}", span, Text("█" * round(weight * BAR_WIDTH) or "▏", style="cyan"))
    return table


def _figures_table(figures: Sequence[Any]) -> Table:
    table = Table(box=None, padding=(0, 1), show_edge=False)
    table.add_column("method", style="bold", no_wrap=True)
    for _, title in METRICS:
        table.add_column(title, justify="right")
    for row in figures:
        cells = (getattr(row, name) for name, _ in METRICS)
        table.add_row(
            row.method,
            *(f"{cell.value:.3f} [dim]{cell.interval.low:.2f}–{cell.interval.high:.2f}[/]" for cell in cells),
        )
    return table


def _verdict(figures: Sequence[Any]) -> Text:
    first, *others = figures
    lines = [
        f"AUROC, {first.method} above {other.method}: {other.behind.difference:+.3f} "
        f"({other.behind.interval.low:+.3f} to {other.behind.interval.high:+.3f}, p = {other.behind.p_value:.3f})"
        for other in others
    ]
    return Text("\n".join(lines))
