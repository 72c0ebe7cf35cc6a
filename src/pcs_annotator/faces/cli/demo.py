"""`pcs demo`: the whole tour on the embedded model, offline."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.faces.cli.learned_view import print_learned
from pcs_annotator.faces.cli.options import JSON, PATH, QUIET, echo_json
from pcs_annotator.faces.cli.pulling import pull_missing
from pcs_annotator.faces.cli.run_view import run_json
from pcs_annotator.faces.demo.tour import FOLDER, STYLES, run_tour
from pcs_annotator.pipeline.run_folder import RunResult, read_variants


@click.command("demo")
@click.option("-o", "--out", type=PATH, default=FOLDER, show_default=True, help="The run's folder.")
@JSON
@QUIET
def command(out: Path, to_json: bool, quiet: bool) -> None:
    """Label sixty invented news items with a small model on this computer, and look at what came of it.

    Needs no key and, once the model is fetched (about 100 MB), no network.
    """
    shown = not (to_json or quiet)
    console = Console(highlight=False)
    if shown:
        console.print("Sixty invented news items, four topics; two prompts of a small model; rewrites by rule.\n")
    pull_missing(STYLES, shown=shown)
    result = run_tour(out, progress=shown)
    if to_json:
        echo_json(run_json(result, []))
    elif shown:
        print_tour(result, console)


def print_tour(result: RunResult, console: Console) -> None:
    """Walk a newcomer through a run: one text, what everybody is worth, what it gained, what to type next."""
    _print_one_text(result, console)
    console.rule("What every prompt and every rewrite is worth", align="left")
    print_learned(result.learned, result.votes, console)
    console.print()
    console.rule("What it gained", align="left")
    console.print(_gain(result))
    console.print()
    console.rule("What to type next", align="left")
    console.print(
        Text.assemble(
            ("pcs run your.csv --labels a,b,c --model embedded:smollm2\n", "bold"),
            "    the same on your own texts; a column gold or label, partly filled, is learned from\n",
            ("pcs models list\n", "bold"),
            "    better models: a key in the environment, and --model groq:llama-3.1-8b-instant\n",
            ('pcs relations try voice "The city bought five buses."\n', "bold"),
            "    what a rewrite does, and what the checks say\n",
        )
    )
    console.print(Text(f"labels  {result.folder.labels}\nreport  {result.folder.report}", style="bold"))


def _print_one_text(result: RunResult, console: Console) -> None:
    row = most_telling(result)
    item, outcome = result.dataset.items[row], result.outcomes[row]
    console.rule("One text, as the models saw it", align="left")
    variants = read_variants(result.folder)
    table = Table(box=None, padding=(0, 1), show_edge=False)
    table.add_column("seen as", style="bold")
    table.add_column("text", ratio=1)
    for annotator in result.votes.annotators:
        table.add_column(annotator.removeprefix("embedded:"), justify="center")
    for place, relation in enumerate(result.votes.relations):
        variant = variants.get((item.id, relation))
        text = item.text if relation == ORIGINAL else (variant.text if variant else None)
        why = "" if variant is None else variant.reason
        table.add_row(relation, Text(text) if text else Text(f"– {why}", "dim"), *_votes(result, row, place))
    console.print(table)
    console.print(_verdict(outcome, result.dataset.gold[row]))


def most_telling(result: RunResult) -> int:
    """Return the row that shows most: most answers for the label, which is right, some against it, many rewrites."""
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


def _verdict(outcome: Outcome, gold: str | None) -> Panel:
    scores = ", ".join(f"{label} {value:.2f}" for label, value in outcome.scores.items())
    sure = "" if outcome.confidence is None else f", right with a probability of {100 * outcome.confidence:.0f} %"
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
        f"One question to the better prompt is right on {100 * single.accuracy.value:.0f} % of the rows; asking both "
        "prompts about the text and its rewrites, weighed by what was learned on other rows, on "
        f"{100 * ours.accuracy.value:.0f} %: "
        f"{test.difference * 100:+.0f} points ({low * 100:+.0f} to {high * 100:+.0f}, {test.n} rows), for up to "
        f"{cells} questions instead of one.\n"
        "This is a model of 135 million weights, a thousandth of a large one: take it as a tour, not as a measure. "
        f"The {test.n} news items are invented, and short ones like these are easy.",
    )
