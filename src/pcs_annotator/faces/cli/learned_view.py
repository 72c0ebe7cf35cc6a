"""What was learned, for a person and as JSON: weights as bars, figures as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Interval
from pcs_annotator.pipeline.certificate_text import promised
from pcs_annotator.pipeline.fit_table import FitFiles, FittedTable
from pcs_annotator.pipeline.label import Labelled
from pcs_annotator.pipeline.learn import Learned

BAR_WIDTH = 30
METRICS = (
    ("auroc", "AUROC"),
    ("accuracy", "accuracy"),
    ("ece_score", "ECE of PCS"),
    ("ece_confidence", "ECE calibrated"),
)


def learned_json(learned: Learned) -> dict[str, Any]:
    """Return everything that `print_learned` shows as plain values."""
    weights = learned.model.weights
    told = weights.diagnostics
    return {
        "gold_rows": told.gold_rows,
        "optimiser": told.optimiser,
        "candidates": dict(told.candidates),
        "weights": {
            "by_annotator": weights.by_annotator,
            "by_relation": weights.by_relation,
            "annotator_intervals": {name: list(ends) for name, ends in told.annotator_intervals.items()},
            "relation_intervals": {name: list(ends) for name, ends in told.relation_intervals.items()},
        },
        "cross_validation": [_figures_json(figures) for figures in learned.figures],
        "no_cross_validation": learned.no_figures,
        "flags": [flag._asdict() for flag in told.flags],
        **promise_json(learned),
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
    for name, metric in (("behind", "auroc"), ("accuracy_behind", "accuracy")):
        test = getattr(figures, name)
        if test:
            result[name] = {metric: test.difference, **test.interval._asdict(), "p_value": test.p_value}
    return result


def print_learned(learned: Learned, votes: Votes, console: Console) -> None:
    """Print what every annotator and relation is worth, and how good that is."""
    weights = learned.model.weights
    told = weights.diagnostics
    console.print(
        f"[bold]{len(votes):,}[/] items × {len(votes.annotators)} annotators × {len(votes.relations)} relations, "
        f"[bold]{told.gold_rows:,}[/] with gold, labels {', '.join(votes.labels)}"
    )
    console.print()
    console.print(_bars("annotator", weights.by_annotator, told.annotator_intervals))
    console.print()
    console.print(_bars("relation", weights.by_relation, told.relation_intervals))
    console.print(f"\nlearned by [bold]{told.optimiser}[/]{_candidates(told.candidates)}")
    if learned.figures:
        gold_rows = learned.figures[0].auroc.n
        console.print(f"\ncross-validated on the {gold_rows:,} gold rows, with 95 % intervals")
        console.print(_figures_table(learned.figures))
        console.print(_verdict(learned.figures), style="dim")
    else:
        console.print(Text(f"not cross-validated: {learned.no_figures}", style="yellow"))
    print_promise(learned, len(votes), console)


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
    lines = [f"AUROC, {first.method} above {other.method}: {_difference(other.behind)}" for other in others]
    for other in others:
        if other.method.startswith("zero-shot"):
            # a single answer has no grades, so that AUROC alone would flatter ours
            lines.append(f"accuracy, {first.method} above {other.method}: {_difference(other.accuracy_behind)}")
    return Text("\n".join(lines))


def _difference(test: Any) -> str:
    low, high = test.interval
    return f"{test.difference:+.3f} ({low:+.3f} to {high:+.3f}, p = {test.p_value:.3f})"


def promise_json(judged: Learned | Labelled) -> dict[str, Any]:
    """Return certificate and decisions as plain values."""
    model = judged.model
    return {
        "certificate": None if model.certificate is None else model.certificate.to_dict(),
        "calibrated": model.calibrator is not None,
        "decided_by": model.decided_by,
    }


def print_promise(judged: Learned | Labelled, rows: int, console: Console) -> None:
    """Print the certificate: what is promised, for how many rows; or why nothing is."""
    certificate = judged.model.certificate
    if judged.model.by_agreement:
        told = "uncalibrated: labels are accepted where every answer agrees, and nobody knows how often those are wrong"
        console.print(Text(f"\n{told}", style="yellow"))
    if certificate is None:
        return
    sentences = promised(certificate)
    console.print(Text(f"\n{sentences.headline}", style="bold green" if certificate.holds else "bold yellow"))
    for detail in sentences.details:
        console.print(Text(f"  {detail}", style="dim"))
    if certificate.holds:
        console.print(
            f"  accepted {rows - certificate.review_rows:,} of {rows:,} rows, {certificate.review_rows:,} for review"
        )


def as_json(fitted: FittedTable, files: FitFiles, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_fit` shows as plain values."""
    return {
        "rows": len(fitted.outcomes),
        "rows_without_label": fitted.unlabelled,
        "labels": list(fitted.table.votes.labels),
        "decisions": dict(Counter(one.decision for one in fitted.outcomes if one.decision is not None)),
        **learned_json(fitted.learned),
        "warnings": list(notes),
        "model": str(files.model),
        "out": str(files.labels_out) if files.labels_out else None,
    }


def print_fit(fitted: FittedTable, files: FitFiles, notes: Sequence[str], console: Console | None = None) -> None:
    """Print the fit for a person."""
    console = console or Console(highlight=False)
    print_learned(fitted.learned, fitted.table.votes, console)
    print_notes(notes, fitted.unlabelled, console)
    console.print(f"\nwrote {files.model}" + (f" and {files.labels_out}" if files.labels_out else ""))


def print_notes(notes: Sequence[str], unlabelled: int, console: Console) -> None:
    """Print what a person should know before believing the rest."""
    for note in notes:
        console.print(Text(f"note: {note}", style="yellow"))
    if unlabelled:
        rows = "1 row has" if unlabelled == 1 else f"{unlabelled:,} rows have"
        console.print(f"{rows} no label, because nobody voted", style="yellow")
