"""`pcs demo`: a tour of the method with the embedded model, offline."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from pcs_annotator.core.result_names import LABEL
from pcs_annotator.faces.cli import learned_view, models, options, result_view, run_view
from pcs_annotator.faces.demo import tour
from pcs_annotator.runs.run_result import RunResult

ASKED = {"original": "as it is", "order": "labels in reverse order"}


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
    models.pull_missing(tour.STYLES, shown=shown)
    if shown:
        console.print("60 invented news items, 4 topics; 2 prompts for a small model, each asked twice\n")
    result = tour.run_tour(out, progress=shown)
    if to_json:
        options.echo_json(run_view.run_json(result, []))
    elif shown:
        print_tour(result, console)


def print_tour(result: RunResult, console: Console) -> None:
    """Explain a run to a newcomer: one text, the weights, the gain, and what to try next."""
    _print_one_text(result, console)
    console.print()
    console.rule("The weight of each prompt and each question", align="left")
    learned_view.print_learned(result.learned, result.votes, result.counts, console)
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
            ("pcs run your.csv --model groq:llama-3.1-8b-instant --relations original,order,voice\n", "bold"),
            "    for models without log-probabilities: ask about rewrites too (pcs relations list)\n",
        )
    )
    labels, report = result.folder.labels, result.folder.report
    console.print(Text(f"labels  {labels} (column {LABEL})\nreport  {report}", style="bold"))


def _print_one_text(result: RunResult, console: Console) -> None:
    row = most_telling(result)
    item = result.dataset.items[row]
    console.rule("One text, and how each prompt answered", align="left")
    console.print(Text(f"{item.text}\n", style="italic"))
    table = result_view.plain_table()
    table.add_column("question", style="bold")
    for annotator in result.votes.annotators:
        table.add_column(annotator.removeprefix("embedded:"))
    for place, relation in enumerate(result.votes.relations):
        table.add_row(ASKED.get(relation, relation), *_votes(result, row, place))
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
    votes, gold, cells = result.votes, result.dataset.gold[row], []
    for annotator, code in enumerate(votes.codes[row, :, relation, 0]):
        name = votes.labels[code] if code >= 0 else "–"
        sure = "" if votes.grades is None else f" {100 * votes.grades[row, annotator, relation, 0, code]:.0f} %"
        cells.append(Text(name + sure, "green" if name == gold else "red" if code >= 0 else "dim"))
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
    ours = figures[0]
    single = next(one for one in figures if one.method.startswith("zero-shot"))
    test = single.accuracy_behind
    assert test is not None, "only the first method has none"
    low, high = test.interval.rounded(2)
    cells = result.votes.codes.shape[1] * result.votes.codes.shape[2]
    return Text(
        f"A single question to the better prompt labels {100 * single.accuracy.value:.0f} % of the rows right, with "
        f"a class AUROC of {single.auroc.value:.2f}. Asking both prompts twice and keeping the probability of every "
        f"label, with weights from other rows, labels {100 * ours.accuracy.value:.0f} %: "
        f"{test.difference * 100:+.0f} points ({low * 100:+.0f} to {high * 100:+.0f}, {test.n} rows), with a class "
        f"AUROC of {ours.auroc.value:.2f}, for {cells} questions instead of one. A higher class AUROC means that texts "
        "of a label score higher for it than other texts do, more often.\n"
        "This model has 135 million weights, a thousandth of a large one: treat this as a tour, not a benchmark. "
        f"The {test.n} news items are invented, and short ones like these are easy.",
    )
