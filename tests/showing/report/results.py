"""Finished runs for tests, made without calling a model."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from pcs_annotator import ABSTAINED, NOT_ASKED, Item, PcsWarning, RunResult, Variant, Votes
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.book_result import BookResult
from pcs_annotator.runs.learn import Learned, learn_if_possible
from pcs_annotator.runs.paths import RunFolder, write_start
from pcs_annotator.runs.settings import AskSettings, Config, LearnSettings, RelationSettings, TaskSettings
from pcs_annotator.tables.chunks import Columns, Dataset
from pcs_annotator.tables.vote_files import count_variants, writing_variants

QUICK = LearnSettings(optimiser="lr", resamples=10, folds=3)
OF_THE_QUESTION = ("order", "wording")
QUICKER = replace(QUICK, folds=2)  # for many rows, labels or models


@dataclass(frozen=True, kw_only=True)
class Made:
    """The properties of a made-up run."""

    rows: int = 40
    labels: tuple[str, ...] = ("negative", "neutral", "positive")
    skills: tuple[float, ...] = (0.9, 0.7)
    names: tuple[str, ...] = ()
    relations: tuple[str, ...] = ("original", "voice", "synonym")
    gold: bool = True
    votes: bool = True
    draws: int = 1
    graded: tuple[bool, ...] = ()
    text: str = "The council approved the plan on Monday."
    instruction: str = "How does the writer feel?"
    prices: tuple[float | None, ...] = (0.25, None)
    tally: Tally = field(default_factory=Tally, hash=False)
    learn: LearnSettings = QUICK


def made_run(folder: Path, made: Made | None = None) -> RunResult:
    """Return a run of made-up votes, with its variants on disk; the fit is cached per process."""
    made = made or Made()
    names, rewriter = _names(made), "scripted:hash" if "synonym" in made.relations else ""
    items = tuple(Item(id=f"r{row}", text=f"{made.text} {row}") for row in range(made.rows))
    votes, gold, learned = made_learned(replace(made, text="", instruction="", prices=(), tally=Tally()))
    run = RunFolder(folder)
    write_start(run, {"version": "1.2.3", "data": "/home/user/tweets.csv"})
    run.own_folder.mkdir(parents=True, exist_ok=True)
    _write_variants(run, items, made.relations)
    return RunResult(
        folder=run,
        config=Config(
            task=TaskSettings(instruction=made.instruction, labels=made.labels),
            ask=AskSettings(models=names),
            relations=RelationSettings(use=made.relations, rewriter=rewriter),
            learn=made.learn,
        ),
        dataset=Dataset(
            name="items.parquet", table=pa.table({}), items=items, gold=gold, columns=Columns(text="text", gold="gold")
        ),
        votes=votes,
        gold=gold,
        texts=[item.text for item in items],
        learned=learned,
        outcomes=list(learned.model.judge(votes)),
        tally=made.tally,
        bills=_bills(names, made.prices),
        rewrites=tuple(count_variants(run.variants)),
    )


def book_of(result: RunResult) -> BookResult:
    """Return the result of a run whose only variable has this one."""
    book = Book(result.folder.path, {"": result.folder}, {"": result.config.task})
    return BookResult(book=book, results={"": result})


@cache
def made_learned(made: Made) -> tuple[Votes, tuple[str, ...], Learned]:
    """Return made-up votes, their gold labels, and the fit: all of it is frozen, so tests may share it."""
    rng = np.random.default_rng(0)
    truth = rng.integers(len(made.labels), size=made.rows)
    codes = _codes(made, truth, rng)
    votes = Votes(
        codes=codes,
        ids=[f"r{row}" for row in range(made.rows)],
        annotators=_names(made),
        relations=made.relations,
        labels=made.labels,
        grades=_grades(made, codes, rng),
    )
    gold = tuple(made.labels[code] for code in truth) if made.gold else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        return votes, gold, learn_if_possible(votes, gold, made.learn)


def _names(made: Made) -> tuple[str, ...]:
    return made.names or tuple(f"model-{index}" for index in range(len(made.skills)))


def _codes(made: Made, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    shape = (made.rows, len(made.skills), len(made.relations), made.draws)
    if not made.votes:
        return np.full(shape, ABSTAINED, dtype=np.int8)
    right = rng.random(shape) < np.array(made.skills)[:, np.newaxis, np.newaxis]
    guess = rng.integers(len(made.labels), size=shape)
    codes = np.where(right, truth[:, np.newaxis, np.newaxis, np.newaxis], guess).astype(np.int8)
    codes[rng.random(shape) < 0.02] = ABSTAINED
    rewritten = [place for place, name in enumerate(made.relations) if name not in (ORIGINAL, *OF_THE_QUESTION)]
    for place in rewritten:
        codes[1::3, :, place] = NOT_ASKED
    return codes


def _grades(made: Made, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """Probabilities of the models that are graded, with the most for the label that was answered."""
    if not made.graded:
        return None
    spread = rng.dirichlet(np.ones(len(made.labels)), codes.shape)
    grades = 0.39 * spread + 0.6 * np.eye(len(made.labels))[np.maximum(codes, 0)]
    grades[codes < 0] = np.nan
    grades[:, ~np.array(made.graded)] = np.nan
    return grades.astype(np.float32)


def _bills(names: Sequence[str], prices: Sequence[float | None]) -> list[Bill]:
    return [
        Bill(model=name, purpose="label", calls=120, input_tokens=9000, output_tokens=240, usd=price)
        for name, price in zip(names, prices, strict=False)
    ]


def _write_variants(run: RunFolder, items: Sequence[Item], relations: Sequence[str]) -> None:
    with writing_variants(run.variants) as note:
        for row, item in enumerate(items):
            for relation in relations:
                note(item, _variant(row, item, relation))


def _variant(row: int, item: Item, relation: str) -> Variant:
    if relation == ORIGINAL:
        return Variant(relation=relation, status="original", text=item.text)
    if relation in OF_THE_QUESTION:
        return Variant(relation=relation, status="original", text=item.text)
    if row % 3 == 1:
        reason = f"no subject in {item.text[:20]}"
        return Variant(relation=relation, status="not_applicable", reason=reason)
    if row % 7 == 2:
        refused = f"{item.text} Not so."
        return Variant(relation=relation, status="rejected", reason="a negation was added", refused=refused)
    return Variant(
        relation=relation,
        status="changed",
        text=f"It is said that {item.text.replace('approved', 'backed')} By {relation}.",
    )
