"""`pcs demo`: a tour of the whole method on invented news."""

from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from shlex import quote

import click

from pcs_annotator.faces.cli import models, options, run_view
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.verbs import run

LABELS = ("world", "sports", "business", "technology")
INSTRUCTION = "What is this news item about?"
STYLES = ("embedded:smollm2", "embedded:smollm2/plain")
FOLDER = Path("pcs-demo")
# A model this small and sixty gold rows are not enough for the usual promise of 5 %.
MAX_ERROR = 0.2
NEXT = "pcs run your.csv --labels a,b,c --model embedded:smollm2"
NOT_A_BENCHMARK = "A tour: the news items are invented, and the model is a thousandth of a large one."
ASKED = {"original": "as it is", "order": "labels in reverse order"}


def run_tour(folder: Path, *, progress: bool, limit: int | None = None) -> RunResult:
    """Run the whole method on the invented news, or on its first `limit` rows."""
    settings = {"labels": LABELS, "instruction": INSTRUCTION, "models": STYLES, "max_error": MAX_ERROR}
    settings |= {"gold_column": "topic", "text_column": "text"}
    with as_file(files("pcs_annotator.faces.demo") / "news.csv") as data:
        config = resolve_config.settings_of(settings)
        request = RunRequest(data=data, folder=folder, config=config, limit=limit, progress=progress, replace=True)
        return run.run(request).only


@click.command("demo")
@click.option("-o", "--out", type=options.PATH, default=FOLDER, show_default=True, help="Run folder.")
@options.JSON
@options.QUIET
def command(out: Path) -> None:
    """Label 60 invented news items with a small model on this computer, and explain the result.

    Needs no key and, once the model is downloaded (about 100 MB), no network.
    """
    shown = options.shown()
    models.pull_missing(STYLES, shown=shown)
    if shown:
        items = "60 invented news items, 45 of them with their topic"
        click.echo(f"{items}; 2 prompts for a small model, each asked twice\n")
    result = run_tour(out, progress=shown)
    options.show(lambda: run_view.run_json(result, []), lambda: tour_shown(result))


def tour_shown(result: RunResult) -> list[b.Block]:
    """Explain a run to a newcomer: one text, the answer, and what to try next."""
    lines = [line for line in answer.of_run(result).lines if line[0] not in ("gold", "look at", "")]
    folder = quote(str(result.folder.home))
    then = [("then", f"pcs fit {folder}, pcs estimate {folder}"), ("your data", NEXT)]
    return [_one_text(result), b.note(NOT_A_BENCHMARK), b.Answer([*lines, *then])]


def _one_text(result: RunResult) -> b.Section:
    row = most_telling(result)
    outcome, gold = result.outcomes[row], result.dataset.gold[row]
    models = [b.Column(annotator.removeprefix("embedded:")) for annotator in result.votes.annotators]
    rows: list[b.Row] = [
        [ASKED.get(relation, relation), *_votes(result, row, position)]
        for position, relation in enumerate(result.votes.relations)
    ]
    scores = ", ".join(f"{label} {value:.2f}" for label, value in outcome.scores.items())
    sure = "" if outcome.confidence is None else f", with a confidence of {100 * outcome.confidence:.0f} %"
    return b.section(
        "one-text",
        "One text, and how each prompt answered",
        b.text(b.Styled(result.dataset.items[row].text, "em")),
        b.Table(columns=[b.Column("question"), *models], rows=rows),
        b.text(b.strong(f"{outcome.label}{sure}")),
        f"PCS: {scores}",
        f"gold: {gold}",
    )


def most_telling(result: RunResult) -> int:
    """Return the most instructive row: a correct label with most but not all answers for it, and many rewrites."""
    codes = result.votes.codes[..., 0]

    def interest(row: int) -> tuple[bool, bool, int]:
        votes = [result.votes.labels[code] for code in codes[row].flat if code >= 0]
        label = result.outcomes[row].label or ""
        return len(votes) / 2 < votes.count(label) < len(votes), label == result.dataset.gold[row], len(votes)

    return max(range(len(codes)), key=lambda row: (*interest(row), -row))


def _votes(result: RunResult, row: int, relation: int) -> Iterator[str]:
    votes, gold = result.votes, result.dataset.gold[row]
    for annotator, code in enumerate(votes.codes[row, :, relation, 0]):
        if code < 0:
            yield "–"
            continue
        sure = "" if votes.grades is None else f" {100 * votes.grades[row, annotator, relation, 0, code]:.0f} %"
        yield f"{'✓' if votes.labels[code] == gold else '✗'} {votes.labels[code]}{sure}"
