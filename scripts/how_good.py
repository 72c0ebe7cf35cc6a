"""Write docs/how-good.md from real votes: the embedded model on the tour's news, and development data if present.

    python scripts/how_good.py

The model is called only for news items that are not in the ledger of the folder PCS_DEMO (pcs-demo by default).
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.faces.demo.tour import run_tour
from pcs_annotator.files.result_tables import to_markdown
from pcs_annotator.pipeline.evaluate import Evaluated, EvaluateRequest, evaluate_source

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("PCS_SHARED_DATA", ROOT.parent / "shared" / "data"))
PAGE = ROOT / "docs" / "how-good.md"
FIGURES = (
    "Method",
    "Log-probs",
    "Calls per item",
    "Class AUROC",
    "Class AUROC hard",
    "Confidence AUROC",
    "Accuracy",
    "ECE calibrated",
    "Review for 90 %",
)
TESTS = ("Class AUROC difference", "p (Holm)", "Accuracy difference", "p accuracy (Holm)")
TRIPLE = ("flan_ul2", "gpt_3_5", "mistral_7b")

HEAD = """# How good is it?

<!-- written by scripts/how_good.py; do not edit -->

Votes from real models. Every method uses the same rows and the same splits. Every figure is measured on
rows that the fit did not see, with 95 % intervals over rows in brackets. `pcs evaluate` makes the same tables from
your own votes, and those are the ones that matter: what helps depends on the models and on the texts.

What to look for: *class AUROC*, the paper's, measures how well the scores separate each label from the others;
*confidence AUROC* measures how often a right label is more confident than a wrong one. A single label has no graded
score, so compare its *hard* class AUROC with the hard class AUROC of other methods, and *accuracy* with accuracy. Calls
cost money; more calls should buy something. *Log-probs* marks methods that need log-probabilities, which not every
provider gives.
"""

NEWS = """
## A very small model, on easy news

SmolLM2, 135 million weights, with two prompt styles, each asked twice with its log-probabilities kept; {n} short
invented news items on four topics, as in `pcs demo`. Sixty rows say little: look at the intervals. The model is a
thousandth the size of a large one, and nothing here says how well large ones do.
"""

GRADED = """
## Two small models, {text}

Qwen2.5-Coder with 0.5 and 1.5 billion weights, {n} texts, recorded and not part of this project. Each model was asked
twice, the second time with the labels in reverse order, and its log-probabilities were kept.
"""
SETS = {
    "sentiment": "the mood of short messages",
    "tweets": "the mood of tweets",
    "gossipcop": "fake or real headlines",
}
QWEN = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")

BABE = """
## Seven language models on biased news

BABE: is a news sentence biased? {n} sentences, each labelled by seven models with four prompt settings; recorded by
others and not part of this project. The settings are prompts, not rewrites, so this shows what it is worth to learn
which models to trust, and nothing about rewriting.
"""

THREE = """
### Three of them

{models}: the same evaluation with fewer votes.
"""


def section(text: str, found: Evaluated) -> str:
    """Return a section of the page: the figures that matter most, and the tests."""
    figures, tests = found.tables
    filled = text.replace("{n}", f"{found.evaluation.n:,}").replace("{models}", ", ".join(TRIPLE))
    return "\n".join(
        [filled, demoted(narrowed(figures, FIGURES)), demoted(narrowed(tests, [tests.columns[0], *TESTS]))]
    )


def narrowed(table: ResultTable, columns: Sequence[str]) -> ResultTable:
    """Return some columns of a table, where it has them, without the methods that these votes do not allow."""
    columns = [name for name in columns if name in table.columns]
    places = [table.columns.index(name) for name in columns]
    kept = [row for row, cells in enumerate(table.rows) if any(cell is not None for cell in cells[1:])]
    best = {(kept.index(row), places.index(place)) for row, place in table.best if row in kept and place in places}
    return replace(
        table,
        columns=columns,
        rows=[[table.rows[row][place] for place in places] for row in kept],
        best=frozenset(best),
        notes=[note for note in table.notes if "is not shown" not in note],
    )


def demoted(table: ResultTable) -> str:
    """Return the table in Markdown, with its title as a bold line, because it is part of a section."""
    lines = to_markdown(table).splitlines()
    return "\n".join(f"**{line.lstrip('# ')}**" if line.startswith("#") else line for line in lines) + "\n"


def graded(name: str, folder: Path) -> Evaluated:
    """Return figures on one of the recorded sets with log-probabilities."""
    import pandas as pd

    answers = pd.read_csv(DATA / f"recorded/graded_{name}.csv.gz", dtype={"id": str})
    answers = answers[answers.annotator.isin(QWEN) & answers.relation.isin(("original", "order-reversed"))]
    path = folder / f"graded-{name}.csv"
    answers.to_csv(path, index=False)
    return evaluate_source(EvaluateRequest(source=path))


def babe(models: tuple[str, ...], folder: Path) -> Evaluated:
    """Return figures on the votes of some models, of all when none is named."""
    import pandas as pd

    answers = pd.read_csv(DATA / "babe/votes.csv.gz", dtype=str).rename(
        columns={"model": "annotator", "setting": "relation"}
    )
    gold = pd.read_csv(DATA / "babe/items.csv", dtype=str)[["id", "gold"]]
    answers = answers[answers.annotator.isin(models)] if models else answers
    path = folder / f"babe-{len(models)}.csv"
    answers.merge(gold, on="id").to_csv(path, index=False)
    return evaluate_source(EvaluateRequest(source=path))


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    demo = Path(os.environ.get("PCS_DEMO", "pcs-demo"))
    run_tour(demo, progress=True)
    page = HEAD + section(NEWS, evaluate_source(EvaluateRequest(source=demo)))
    if DATA.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            for name, what in SETS.items():
                page += section(GRADED.replace("{text}", what), graded(name, Path(folder)))
            page += section(BABE, babe((), Path(folder))) + section(THREE, babe(TRIPLE, Path(folder)))
    PAGE.write_text(page, encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
