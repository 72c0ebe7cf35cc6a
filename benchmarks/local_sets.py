"""Recorded answers of models that a person has on this machine, recognised by the layout of their folder.

Nothing is downloaded and nothing is copied. A folder may hold tables `id, text, gold` with a column per model (as made
from TextClass-Benchmark), `items.csv` with `votes.csv` (BABE), `human_annotations.json` with `llm_annotations.json`
(AltTest), files `answer-MODEL` (LLMs_for_CSS), `tasks.csv` with a Parquet file and panels of models for each task, or
tables of votes as `pcs fit` reads them.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.development_data import PAPER_RELATIONS
from benchmarks.public_tasks import PANELS, panel_of, read_task
from pcs_annotator import ABSTAINED, Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.tables.vote_tables import read_vote_table

FEWEST_ROWS = 120
MOST_LABELS = 30
REWRITTEN = frozenset(PAPER_RELATIONS[1:])


class LocalSet(NamedTuple):
    """Answers with gold; rows without gold are left out."""

    name: str
    votes: Votes  # what all methods see, with the texts where they are known
    truth: Codes
    draws: Votes | None = None  # repeated answers to the unchanged text, if they were recorded
    rewritten: frozenset[str] = frozenset()  # relations for which a model wrote a variant, which is a call


def local_sets(folder: Path, texts: Mapping[str, str]) -> Iterator[LocalSet]:
    """Yield what is recognised in a folder and those below it; `texts` are those known by id."""
    for path in sorted([folder, *folder.rglob("*")]):
        found: list[LocalSet] = []
        if path.is_dir():
            found = [*_babe(path), *_alt_test(path), *_css(path), *_listed(path)]
        elif path.name.removesuffix(".gz").endswith(".csv") and path.name not in ("items.csv", "votes.csv.gz"):
            found = [*_table(path, texts)]
        yield from (one for one in found if len(one.truth) >= FEWEST_ROWS and len(one.votes.labels) <= MOST_LABELS)


def texts_in(folder: Path) -> dict[str, str]:
    """Return the texts of tables with `id` and `text`, and by the number of the row as `FILE-NUMBER`."""
    import pandas as pd

    found: dict[str, str] = {}
    titles = {"multiclass_sentiment": "sentiment", "tweets_sentiment": "tweets", "fakenews_titles": "gossipcop"}
    for path in sorted(folder.glob("*.csv")):
        table = pd.read_csv(path, dtype=str).rename(columns={"gold": "label"}).dropna(subset=["text", "label"])
        if path.stem.startswith("asked_"):  # its ids are those of other texts, too
            found |= {f"{path.stem}/{name}": text for name, text in zip(table["id"], table["text"], strict=True)}
            continue
        found |= dict(zip(table["id"], table["text"], strict=True))
        found |= {f"{titles.get(path.stem, path.stem)}-{place}": text for place, text in enumerate(table["text"])}
    return found


def _of_answers(
    name: str, answers: Mapping[str, Mapping[str, str]], gold: Mapping[str, str], texts: Mapping[str, str]
) -> LocalSet:
    """Return a set from one answer per model: model → id → label."""
    ids, models, labels = list(gold), list(answers), sorted(set(gold.values()))
    code = {label: place for place, label in enumerate(labels)}
    codes = [[[code.get(answers[model].get(row, ""), ABSTAINED)] for model in models] for row in ids]
    known = [texts[row] for row in ids] if all(texts.get(row) for row in ids) else None
    votes = Votes(
        codes=np.array(codes, dtype=np.int8).reshape(len(ids), len(models), 1, 1),
        ids=ids,
        annotators=models,
        relations=["original"],
        labels=labels,
        texts=known,
    )
    return LocalSet(name, votes, np.array([code[gold[row]] for row in ids], dtype=np.int8))


def _table(path: Path, texts: Mapping[str, str]) -> Iterator[LocalSet]:
    name = path.name.partition(".")[0]
    rows = read_task(path)
    columns = list(rows[0]) if rows else []
    if {"id", "text", "gold"} <= {*columns} and not any("|" in one for one in columns):
        models = [one for one in columns if one not in ("id", "text", "gold")]
        gold, own = ({row["id"]: row[one] for row in rows if row["gold"]} for one in ("gold", "text"))
        panels = {title: panel_of(models, wanted) for title, wanted in PANELS.items()}
        for title, panel in panels.items() if all(map(len, panels.values())) else [("all models", models)]:
            answers = {model: {row["id"]: row[model] for row in rows} for model in panel}
            yield _of_answers(f"{name}, {title}", answers, gold, own)
    elif any("|" in one for one in columns) or {"annotator", "relation", "gold"} <= {*columns}:
        yield _votes(name, path, texts)


def _listed(folder: Path) -> Iterator[LocalSet]:
    """Yield the sets that `tasks.csv` lists, each with its panels; the two texts of a pair are read as one."""
    if not (folder / "tasks.csv").exists():
        return
    import pandas as pd

    for task in pd.read_csv(folder / "tasks.csv", dtype=str).fillna("").to_dict("records"):
        table = pd.read_parquet(folder / f"{task['source']}__{task['task']}.parquet").astype(str)
        table = table[table.gold != ""].reset_index(drop=True)
        rows = table.index.astype(str)
        texts = dict(zip(rows, table.text if "text" in table else table.text_a + "\n" + table.text_b, strict=True))
        for panel in ("panel_a", "panel_b"):
            models = [name for name in task[panel].split(";") if name]
            answers = {model: dict(zip(rows, table[model], strict=True)) for model in models}
            if models:
                gold = dict(zip(rows, table.gold, strict=True))
                yield _of_answers(f"{task['task']}, {panel[-1]}", answers, gold, texts)


def _votes(name: str, path: Path, texts: Mapping[str, str]) -> LocalSet:
    """Return a set from a table of votes: of graded ones the default questions, of others the paper's relations."""
    table = read_vote_table(path)
    truth = gold_codes(table.votes, list(table.gold))
    votes = table.votes.take(truth != UNLABELLED)
    of_rows = [texts.get(f"{name}/{row}") or texts.get(row, "") for row in votes.ids]
    if all(of_rows):
        votes = replace(votes, texts=of_rows)
    first = votes.select(relations=[votes.original])
    often = {
        model: int((first.select(annotators=[model]).codes >= 0).any(axis=(0, 1, 2)).sum()) > 1
        for model in votes.annotators
    }
    wanted = [votes.original, *(one for one in votes.relations if one.startswith("order"))][:2]
    if votes.grades is None:
        wanted = [one for one in PAPER_RELATIONS if one in votes.relations] or list(votes.relations)
    once = [model for model in votes.annotators if not often[model]] or list(votes.annotators)
    drawn = (
        first.select(annotators=[model for model in votes.annotators if often[model]]) if any(often.values()) else None
    )
    asked = votes.select(annotators=once, relations=wanted, draws=1)
    return LocalSet(name, asked, truth[truth != UNLABELLED], drawn, REWRITTEN if votes.grades is None else frozenset())


def _babe(folder: Path) -> Iterator[LocalSet]:
    items, said = folder / "items.csv", folder / "votes.csv.gz"
    if not (items.exists() and said.exists()):
        return
    import pandas as pd

    answers = pd.read_csv(said, dtype=str).rename(columns={"model": "annotator", "setting": "relation"})
    rows = pd.read_csv(items, dtype=str).set_index("id")
    votes = Votes.from_table(answers)
    votes = replace(votes, texts=rows.text.reindex(list(votes.ids)).tolist())
    yield LocalSet(folder.name, votes, gold_codes(votes, rows.gold.reindex(list(votes.ids)).tolist()))


def _alt_test(folder: Path) -> Iterator[LocalSet]:
    """Yield a set whose gold is what most people said; rows on which they are divided equally are left out."""
    people, models = folder / "human_annotations.json", folder / "llm_annotations.json"
    if not (people.exists() and models.exists()):
        return
    said: dict[str, list[str]] = {}
    for given in json.loads(people.read_text(encoding="utf-8")).values():
        for row, label in given.items():
            said.setdefault(row, []).append(str(label))
    gold = {row: label for row, given in said.items() if (label := _most_said(given)) is not None}
    answers = json.loads(models.read_text(encoding="utf-8"))
    plain = {model: {row: str(label) for row, label in given.items()} for model, given in answers.items()}
    yield _of_answers(folder.name, plain, gold, {})


def _most_said(given: Sequence[str]) -> str | None:
    (label, most), *others = Counter(given).most_common(2)
    return None if others and others[0][1] == most else label


def _css(folder: Path) -> Iterator[LocalSet]:
    """Yield a set from lines `number, gold, answer` per model; the column on which all models agree is gold."""
    files = {path.name.removeprefix("answer-"): path for path in sorted(folder.glob("answer-*")) if path.is_file()}
    lines = {model: _lines(path) for model, path in files.items()}
    lines = {model: rows for model, rows in lines.items() if len(rows) >= FEWEST_ROWS}
    if len(lines) < 2:
        return
    shared = set.intersection(*(set(rows) for rows in lines.values()))
    column = next(
        (at for at in (0, 1) if all(len({rows[row][at] for rows in lines.values()}) == 1 for row in shared)), None
    )
    if column is None:
        return
    first = next(iter(lines.values()))
    gold = {row: first[row][column] for row in sorted(shared)}
    answers = {model: {row: cells[1 - column] for row, cells in rows.items()} for model, rows in lines.items()}
    test = folder / "test.json"
    texts = json.loads(test.read_text(encoding="utf-8")).get("context", {}) if test.exists() else {}
    yield _of_answers(folder.name, answers, gold, {str(row): str(text) for row, text in dict(texts).items()})


def _lines(path: Path) -> dict[str, tuple[str, str]]:
    cells = (line.split("\t") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    return {one[0]: (one[1].strip(), one[2].strip()) for one in cells if len(one) == 3}
