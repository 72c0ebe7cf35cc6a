"""`pcs demo`: a tour of the method with the embedded model, offline."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.faces.cli import learned_view, models, options, result_view, run_view
from pcs_annotator.faces.demo import tour
from pcs_annotator.pipeline.run_folder import RunResult, read_variants


@click.command("demo")
@click.option("-o", "--out", type=options.PATH, default=tour.FOLDER, show_default=True, help="Run folder.")
@options.JSON
@options.QUIET
def command(out: Path, to_json: bool, quiet: bool) -> None:
    """Label 60 invented news items with a small model on this computer, and explain the result.

    Needs no key and, once the model is downloaded (about 100 MB), no network.
    """
    shown = not (to_json or quiet)
    console = Console(highlight=False)
    if shown:
        console.print("60 invented news items, 4 topics; 2 prompts for a small model; rewrites by rule\n")
    models.pull_missing(tour.STYLES, shown=shown)
    result = tour.run_tour(out, progress=shown)
    if to_json:
        options.echo_json(run_view.run_json(result, []))
    elif shown:
        print_tour(result, console)


def print_tour(result: RunResult, console: Console) -> None:
    """Explain a run to a newcomer: one text, the weights, the gain, and what to try next."""
    _print_one_text(result, console)
    console.print()
    console.rule("The weight of each prompt and each rewrite", align="left")
    learned_view.print_learned(result.learned, result.votes, console)
    console.print()
    console.rule("What it gained", align="left")
    console.print(_gain(result))
    console.print()
    console.rule("What to try next", align="left")
    console.print(
        Text.assemble(
            ("pcs run your.csv --labels a,b,c --model embedded:smollm2\n", "bold"),
            "    your own texts; weights are learned from a column gold or label, if any\n",
            ("pcs models list\n", "bold"),
            "    larger models: set GROQ_API_KEY and use --model groq:llama-3.1-8b-instant\n",
            ('pcs relations try voice "The city bought five buses."\n', "bold"),
            "    what a rewrite does to a text, and which checks it passes\n",
        )
    )
    console.print(Text(f"labels  {result.folder.labels}\nreport  {result.folder.report}", style="bold"))


def _print_one_text(result: RunResult, console: Console) -> None:
    row = most_telling(result)
    item = result.dataset.items[row]
    console.rule("One text, as the models saw it", align="left")
    variants = read_variants(result.folder)
    table = result_view.plain_table()
    table.add_column("relation", style="bold")
    table.add_column("text", ratio=1)
    for annotator in result.votes.annotators:
        table.add_column(annotator.removeprefix("embedded:"), justify="center")
    for place, relation in enumerate(result.votes.relations):
        variant = variants.get((item.id, relation))
        text = item.text if relation == ORIGINAL else (variant.text if variant else None)
        why = "" if variant is None else variant.reason
        table.add_row(relation, Text(text) if text else Text(f"– {why}", "dim"), *_votes(result, row, place))
    console.print(table)
    console.print(_verdict(result, row))


def most_telling(result: RunResult) -> int:
    """Return the most instructive row: a correct label with most but not all answers for it, and many rewrites."""
    codes = result.votes.codes[..., 0]

    def interest(row: int) -> tuple[bool, bool, int]:
        given = [result.votes.labels[code] for code in codes[row].flat if code >= 0]
        label = result.outcomes[row].label or ""
        return len(given) / 2 < given.count(label) < len(given), label == result.dataset.gold[row], len(given)

    return max(range(len(codes)), key=lambda row: (*interest(row), -row))


def _votes(result: RunResult, row: int, relation: int) -> list[Text]:
    codes = result.votes.codes[row, :, relation, 0]
    gold = result.dataset.gold[row]
    cells = []
    for code in codes:
        name = result.votes.labels[code] if code >= 0 else "–"
        cells.append(Text(name, "green" if name == gold else "red" if code >= 0 else "dim"))
    return cells


def _verdict(result: RunResult, row: int) -> Panel:
    outcome, gold = result.outcomes[row], result.dataset.gold[row]
    scores = ", ".join(f"{label} {value:.2f}" for label, value in outcome.scores.items())
    sure = "" if outcome.confidence is None else f", with a confidence of {100 * outcome.confidence:.0f} %"
    return Panel(Text(f"{outcome.label}{sure}\nPCS: {scores}\ngold: {gold}"), expand=False)


def _gain(result: RunResult) -> Text:
    figures = result.learned.figures
    if not figures:
        return Text(result.learned.no_figures, "yellow")
    ours, single = figures[0], figures[-1]
    test = single.accuracy_behind
    assert test is not None, "only the first method has none"
    low, high = test.interval
    cells = result.votes.codes.shape[1] * result.votes.codes.shape[2]
    return Text(
        f"A single question to the better prompt labels {100 * single.accuracy.value:.0f} % of the rows correctly. "
        "Asking both prompts about the text and its rewrites, with weights learned on other rows, labels "
        f"{100 * ours.accuracy.value:.0f} %: {test.difference * 100:+.0f} points ({low * 100:+.0f} to "
        f"{high * 100:+.0f}, {test.n} rows), for up to {cells} questions instead of one.\n"
        "This model has 135 million weights, a thousandth of a large one: treat this as a tour, not a benchmark. "
        f"The {test.n} news items are invented, and short ones like these are easy.",
    )
