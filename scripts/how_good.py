"""Write the record benchmarks/results/how-good.md from real votes, and docs/how-good.md from the record.

Votes are those of the embedded model on the tour's news, and development data if present.

    python scripts/how_good.py

The model is called only for news items that are not in the ledger of the folder PCS_DEMO (pcs-demo by default).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pcs_annotator.core.result_table import Content, ResultTable
from pcs_annotator.core.votes import NOT_ASKED, Votes
from pcs_annotator.faces.cli.demo import run_tour
from pcs_annotator.judging.evaluate.methods import OnCells
from pcs_annotator.judging.evaluate.scored import Splitting
from pcs_annotator.runs.recorded_votes import RecordedVotes
from pcs_annotator.showing.result_tables import to_markdown
from pcs_annotator.verbs.evaluate import Evaluated, EvaluateRequest, evaluate_source, evaluate_votes

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "benchmarks" / "results" / "how-good.md"
DATA = Path(os.environ.get("PCS_SHARED_DATA", ROOT.parent / "shared" / "data"))
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
### Three of the seven, on biased news

{models}: the same evaluation with fewer votes.
"""

EQUAL_CALLS = """
## Rewrites, other questions, or the same question again?

Each way asks each model up to four times and sees only the labels that it answers; `auto` learns from them. Calls per
item count the rewrites, too, where a model wrote them. Self-consistency repeats the unchanged question as often as
the first way of a table makes calls, and is shown by plain vote share and with `auto`. In short:

- **Putting the question differently** is best, or level with the best, of the ways that need no rewriter.
- **The paper's three by rule** applied to so few of these texts that what they add cannot be told from 0.
- **The paper's three by a model** add 4 to 6 points to the original question, although half of these rewrites were
  wrong. Repeating the question at the price of rewriting adds as much, as far as these rows can tell.
"""
BY_RULE = """
### By rule, {text}

{n} texts, the two Qwen models, labels only. *Question*: labels in reverse order, another wording, another layout.
*Rules for most texts*: lower case, typos, a lead-in. *The paper's three*: voice, double negation and synonym, by
earlier rules that changed 4 to 26 % of the texts, so that they also cost fewer calls. Self-consistency is drawn
from the recorded log-probabilities at temperature 1.
"""
BY_MODEL = """
### By a model, {text}

{n} texts, the same models. A model with 1.5 billion weights rewrote every text, and nothing checked the rewrites: of
30 each that a person read, 15 voice changes, 5 double negations and 26 synonym rewrites kept the meaning. *Dummy
tokens* (a line break, dots) are free. Self-consistency was recorded at temperature 0.7.
"""
NOT_MEASURED = """
### What these votes cannot tell

- How well checked rewrites by a model do: the recorded ones were not checked, and no large model wrote any.
- What today's rules do: the recorded rewrites are by earlier ones, which changed 4 to 26 % of the texts.
- What a model's rewrites add to graded votes: log-probabilities were recorded for rules and questions only. There, one
  more question adds 0.6 points at most, and mostly nothing that can be told from 0
  ([per relation](rewrites.md#what-relations-add)).
"""
ALONE = "original alone"
WAYS_BY_RULE = {
    "question": ("order-reversed", "ask-b", "plain-prompt"),
    "rules for most texts": ("lower", "typo", "frame"),
    "the paper's three, by rule": ("voice", "double-negation", "synonym"),
    ALONE: (),
}
WAYS_BY_MODEL = {
    "the paper's three, by a model": ("voice", "double-negation", "synonym"),
    "paraphrases, by a model": ("paraphrase-1", "paraphrase-2", "paraphrase-3"),
    "dummy tokens": ("dummy-1", "dummy-2", "dummy-3"),
    ALONE: (),
}
REWRITTEN = frozenset(name for way in WAYS_BY_MODEL.values() for name in way if not name.startswith("dummy"))
MOST_DRAWS = 8
AT_EQUAL_CALLS = ("Method", "Calls per item", "Class AUROC", "Accuracy")


def section(text: str, found: Evaluated) -> str:
    """Return a section of the page: the figures that matter most, and the tests."""
    figures, tests, *_ = found.tables
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


def ways(relations: Mapping[str, Sequence[str]], models: Sequence[str]) -> list[OnCells]:
    """Return what to compare: these models on the original and some relations, labels only."""
    return [
        OnCells(name=name, optimiser="auto", annotators=models, relations=["original", *more], draws=1, hard=True)
        for name, more in relations.items()
    ]


def by_rule(name: str) -> Evaluated:
    """Return rules, questions and self-consistency at equal calls on one of the graded sets."""
    recorded = RecordedVotes.read(DATA / f"recorded/graded_{name}.csv.gz")
    votes = with_draws(recorded.votes.select(annotators=QWEN))
    return evaluate_votes(recorded._replace(votes=votes), ways(WAYS_BY_RULE, QWEN), Splitting())


def with_draws(votes: Votes) -> Votes:
    """Return labels only, and as further annotators the same models with answers drawn from their probabilities."""
    assert votes.grades is not None, "the recorded votes are graded"
    shares = votes.grades[:, :, votes.relations.index("original"), 0]
    upto = np.cumsum(shares / shares.sum(axis=-1, keepdims=True), axis=-1, dtype=np.float64)
    chance = np.random.default_rng(0).random((*upto.shape[:2], MOST_DRAWS, 1))
    drawn = np.minimum((upto[:, :, np.newaxis] < chance).sum(axis=-1), len(votes.labels) - 1)
    items, models, relations, _ = votes.codes.shape
    codes = np.full((items, 2 * models, relations, MOST_DRAWS), NOT_ASKED, dtype=np.int8)
    codes[:, :models, :, :1] = votes.codes
    codes[:, models:, votes.relations.index("original")] = drawn
    names = [*votes.annotators, *(f"{name} drawn" for name in votes.annotators)]
    return replace(votes, codes=codes, annotators=names, grades=None)


def by_model(name: str) -> Evaluated:
    """Return model rewrites, dummy tokens and self-consistency at equal calls on one of the sets with such rewrites."""
    recorded = RecordedVotes.read(DATA / f"recorded/votes_{name}.csv.gz")
    once, often = ([f"{model}@{degree}" for model in QWEN] for degree in ("0", "0.7"))
    votes = recorded.votes.select(annotators=[*once, *often])
    # the first of the list sets the calls that self-consistency gets
    found = recorded._replace(votes=votes, rewritten=REWRITTEN)
    return evaluate_votes(found, ways(WAYS_BY_MODEL, once), Splitting())


def compared(text: str, found: Evaluated) -> str:
    """Return a section with few figures, and how far the first way is ahead."""
    figures, tests, *_ = found.tables
    first = found.evaluation.methods[0].method

    def renamed(table: ResultTable) -> ResultTable:
        rows: list[list[Content]] = [
            [cell.replace(f", {first}", ", auto") if isinstance(cell, str) else cell for cell in row]
            for row in table.rows
        ]
        return replace(table, rows=rows, notes=())

    shown = [narrowed(figures, AT_EQUAL_CALLS), narrowed(tests, [tests.columns[0], *TESTS[:2]])]
    filled = text.replace("{n}", f"{found.evaluation.n:,}")
    return "\n".join([filled, *(demoted(renamed(table)) for table in shown)])


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
        page += EQUAL_CALLS
        page += "".join(compared(BY_RULE.replace("{text}", what), by_rule(name)) for name, what in SETS.items())
        rewritten = (name for name in SETS if (DATA / f"recorded/votes_{name}.csv.gz").exists())
        page += "".join(compared(BY_MODEL.replace("{text}", SETS[name]), by_model(name)) for name in rewritten)
        page += NOT_MEASURED
    RECORD.write_text(page, encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "scripts" / "how_good_docs.py"], check=True)
    print(f"wrote {RECORD}, and docs/how-good.md from it")


if __name__ == "__main__":
    main()
