"""What was learned, as text and as JSON: weights as bars, figures as a table, the promise in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pcs_annotator.core.outcome import Counts
from pcs_annotator.core.result_names import LABEL
from pcs_annotator.core.result_table import Figure, ResultTable
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Interval, Share
from pcs_annotator.faces.cli.result_view import DASH, ShortNames, plain_table, print_rows, room_for_names
from pcs_annotator.runs import certificate_text, learn
from pcs_annotator.showing.findings.facts import Facts
from pcs_annotator.showing.findings.look_at import what_to_look_at
from pcs_annotator.verbs import fit_table

if TYPE_CHECKING:  # this module imports the code that asks models
    from pcs_annotator.verbs import label

NO_ROWS = Counts()
BAR_WIDTH = 30
BARS_TAKE = 27  # the columns beside a name and its bar, and the gaps
LEGEND = "* uses the log-probabilities of answers, which not every provider gives; the others use labels only"
SHOWN = (
    ("auroc", "class AUROC"),
    ("auroc_confidence", "confidence AUROC"),
    ("accuracy", "accuracy"),
    ("ece_confidence", "ECE of confidence"),
)


def learned_json(learned: learn.Learned, votes: Votes) -> dict[str, Any]:
    """Return everything that `print_learned` shows, and the calibration error of the raw score, as plain values."""
    weights = learned.model.weights
    details = weights.diagnostics
    annotators, relations = weights.shares(votes)
    return {
        "gold_rows": details.gold_rows,
        "optimiser": details.optimiser,
        "candidates": dict(details.candidates),
        "weights": {
            "by_annotator": {name: share and share.weight for name, share in annotators.items()},
            "by_relation": {name: share and share.weight for name, share in relations.items()},
            "annotator_intervals": _intervals(annotators),
            "relation_intervals": _intervals(relations),
        },
        "cross_validation": [_figures_json(figures) for figures in learned.figures],
        "no_cross_validation": learned.no_figures,
        "flags": [flag._asdict() for flag in details.flags],
        **promise_json(learned),
    }


def _intervals(shares: Mapping[str, Share | None]) -> dict[str, list[float]]:
    return {name: list(share.interval) for name, share in shares.items() if share and share.interval}


def _figures_json(figures: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"method": figures.method}
    for name in (*(name for name, _ in SHOWN), "ece_score"):
        estimate = getattr(figures, name)
        result[name] = estimate and {
            "value": estimate.value,
            "low": estimate.interval.low,
            "high": estimate.interval.high,
            "n": estimate.n,
        }
    result |= {"questions": figures.questions, "uses_log_probabilities": figures.graded}
    for name, metric, adjusted in (("behind", "auroc", "holm"), ("accuracy_behind", "accuracy", "holm_accuracy")):
        test = getattr(figures, name)
        if test:
            p_values = {"p_value": test.p_value, "p_holm": getattr(figures, adjusted)}
            result[name] = {metric: test.difference, **test.interval._asdict(), **p_values}
    return result


def print_learned(learned: learn.Learned, votes: Votes, counted: Counts, console: Console) -> None:
    """Print the weight of each annotator and relation, how good the weights are, and what is promised."""
    weights = learned.model.weights
    details = weights.diagnostics
    console.print(
        f"[bold]{len(votes):,}[/] items × {len(votes.annotators)} annotators × {len(votes.relations)} relations; "
        f"[bold]{details.gold_rows:,}[/] items have gold labels"
    )
    console.print(Text(f"labels: {', '.join(votes.labels)}"))
    console.print()
    annotators, relations = weights.shares(votes)
    names = ShortNames([*votes.annotators, *votes.relations], room_for_names(console))
    console.print(_bars("annotator", annotators, names, console))
    console.print()
    console.print(_bars("relation", relations, names, console))
    names.explain(console)
    if details.gold_rows:  # without gold, the reason for missing figures says it
        console.print(f"\n{certificate_text.about_weights(weights)}", markup=False)
    if learned.figures:
        gold_rows = learned.figures[0].auroc.n
        console.print(f"\ncross-validated on the {gold_rows:,} gold rows, with 95 % intervals")
        print_rows(_figures_table(learned.figures, names), console)
        if any(row.graded for row in learned.figures):
            console.print(Text(LEGEND, style="dim"))
        console.print(Text(certificate_text.about_auroc(learned.figures), style="dim"))
        console.print(Text(certificate_text.about_ece(learned.figures), style="dim"))
        console.print()
        print_rows(_comparisons(learned.figures, names), console)
        console.print(Text(certificate_text.about_tests(learned.figures), style="dim"))
        if found := certificate_text.what_more_questions_bought(learned.figures):
            console.print(f"\n{found}", markup=False)
    else:
        console.print(Text(f"quality not measured: {learned.no_figures}", style="yellow"))
    print_promise(learned, counted, console)


def _bars(title: str, shares: Mapping[str, Share | None], names: ShortNames, console: Console) -> Table:
    room = max([len(title), *(len(names(name)) for name in shares)])
    bar_width = max(1, min(BAR_WIDTH, console.width - room - BARS_TAKE))
    table = plain_table()
    table.add_column(title, style="bold", no_wrap=True)
    table.add_column("weight", justify="right", no_wrap=True)
    table.add_column("stability\nrange", justify="center", style="dim", no_wrap=True)
    table.add_column("")
    for name, share in sorted(shares.items(), key=lambda pair: -pair[1].weight if pair[1] else 1):
        if share is None:
            table.add_row(Text(names(name)), DASH, "no votes", "")
            continue
        bar = Text("█" * round(share.weight * bar_width) or "▏", style="cyan")
        table.add_row(Text(names(name)), f"{share.weight:.3f}", _span(share.interval) if share.interval else "", bar)
    return table


def _figures_table(figures: Sequence[Any], names: ShortNames) -> ResultTable:
    rows = [
        [
            f"{names(row.method)} *" if row.graded else names(row.method),
            *(_figure(getattr(row, name)) for name, _ in SHOWN),
        ]
        for row in figures
    ]
    titles = [title for _, title in SHOWN]
    digits = dict.fromkeys(titles, 3)
    return ResultTable(name="", title="", columns=("method", *titles), rows=rows, digits=digits)


def _figure(estimate: Any) -> Figure | None:
    return estimate and Figure(estimate.value, estimate.interval)


def _span(interval: Interval) -> str:
    low, high = interval.rounded(2)
    return f"{low:.2f} – {high:.2f}"


def _comparisons(figures: Sequence[Any], names: ShortNames) -> ResultTable:
    first, *others = figures
    tests = [(other.method, "class AUROC", other.behind, other.holm) for other in others]
    for other in others:
        if other.method.startswith("zero-shot"):
            # a single answer has only one score per label, so class AUROC alone would flatter PCS
            tests.append((other.method, "accuracy", other.accuracy_behind, other.holm_accuracy))
    rows = []
    for method, metric, test, adjusted in tests:
        low, high = test.interval.rounded(3)
        p_value = "<0.001" if adjusted < 0.001 else f"{adjusted:.3f}"
        rows.append([names(method), metric, f"{test.difference:+.3f}", f"{low:+.3f} to {high:+.3f}", p_value])
    columns = (f"{first.method} against", "in", "gain", "95 % interval", "p (Holm)")
    return ResultTable(name="", title="", columns=columns, rows=rows)


def promise_json(judged: learn.Learned | label.Labelled) -> dict[str, Any]:
    """Return the certificate, what decisions are based on, and how the answers compare, as plain values."""
    model = judged.model
    return {
        "certificate": None if model.certificate is None else model.certificate.to_dict(),
        "calibrated": model.calibrated,
        "confidence_margin": model.margin,
        "decided_by": model.decided_by,
        "drift": judged.drift and {**judged.drift._asdict(), "unseen": judged.drift.unseen},
    }


def print_promise(judged: learn.Learned | label.Labelled, counted: Counts, console: Console) -> None:
    """Print how rough confidence is, what is promised for how many rows or why not, and whether texts look alike."""
    certificate = judged.model.certificate
    if rough := certificate_text.about_confidence(judged.model):
        console.print(Text(f"\n{rough}", style="yellow"))
    if judged.model.by_agreement:
        _print_promised(certificate_text.without_gold(counted), "bold yellow", console)
    if certificate is not None:
        style = "bold cyan" if certificate.holds else "bold yellow"  # green would read as proof
        _print_promised(certificate_text.promised(certificate), style, console)
        if certificate.holds:
            accepted, rows = counted.decisions.get("accept", 0), counted.rows
            console.print(f"  accepted {accepted:,} of {rows:,} rows, {rows - accepted:,} for review")
    if judged.drift is not None:
        _print_details([judged.drift.sentence, judged.drift.unseen], console)


def _print_promised(said: certificate_text.Promised, style: str, console: Console) -> None:
    console.print(Text(f"\n{said.headline}", style=style))
    _print_details(said.details, console)


def _print_details(details: Iterable[str], console: Console) -> None:
    for detail in details:
        console.print(Padding(Text(detail, style="dim"), (0, 0, 0, 2), expand=False))


def fit_json(fitted: fit_table.FittedTable, files: fit_table.FitFiles, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `print_fit` shows as plain values."""
    return {
        "rows": len(fitted.outcomes),
        "rows_without_label": fitted.unlabelled,
        "labels": list(fitted.table.votes.labels),
        "decisions": counts(one.decision for one in fitted.outcomes),
        **learned_json(fitted.learned, fitted.table.votes),
        "look_at": look_at_json(fitted.facts),
        "warnings": list(notes),
        "model": str(files.model),
        "out": str(files.labels_out) if files.labels_out else None,
    }


def counts(values: Iterable[str | None]) -> Counter[str]:
    """Return how often each value occurs, apart from None."""
    return Counter(value for value in values if value is not None)


def print_fit(fitted: fit_table.FittedTable, files: fit_table.FitFiles, notes: Sequence[str]) -> None:
    """Print what was learned from a table of votes, and the files that were written."""
    console = Console(highlight=False)
    print_learned(fitted.learned, fitted.table.votes, Counts.of(fitted.outcomes), console)
    print_look_at(fitted.facts, notes, console)
    console.print(f"\nwrote {files.model}" + (f" and {files.labels_out} (column {LABEL})" if files.labels_out else ""))


def look_at_json(facts: Facts) -> list[dict[str, str]]:
    """Return what to look at as plain values."""
    return [flag._asdict() for flag in what_to_look_at(facts)]


def print_look_at(facts: Facts, notes: Sequence[str], console: Console) -> None:
    """Print warnings, and what is or may be wrong; a fit has also warned about some of it."""
    found = what_to_look_at(facts)
    print_notes([note for note in notes if note not in {flag.detail for flag in found}], console)
    if not found:
        return
    console.print("\n[bold]what to look at[/]")
    table = Table.grid(padding=(0, 1))
    for flag in found:
        table.add_row(" •", Text.assemble((f"{flag.kind}: ", "bold yellow"), flag.detail))
    console.print(table)


def print_notes(notes: Sequence[str], console: Console, counted: Counts = NO_ROWS) -> None:
    """Print warnings, and how many rows have no label."""
    for note in notes:
        console.print(Text(f"note: {note}", style="yellow"))
    for count, why in ((counted.unanswered, "no model gave a usable answer"), (counted.empty, "the text is empty")):
        if count:
            rows = "1 row has" if count == 1 else f"{count:,} rows have"
            console.print(f"{rows} no label, because {why}", style="yellow")
