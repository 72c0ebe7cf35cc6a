"""Loaders for the development data, shared by benchmarks; the data is not part of the project."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.tables.vote_tables import read_vote_table

DATA = Path(os.environ.get("PCS_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
PAPER_RELATIONS = ("original", "voice", "double-negation", "synonym")
QWEN = ("qwen2.5-coder-0.5b@0", "qwen2.5-coder-1.5b@0")

Dataset = tuple[Votes, Codes, list[str | None]]


def development_sets() -> dict[str, Dataset]:
    """Return the datasets of the study: three simulated, BABE, and two recorded from small open models."""
    sets = {f"simulated {name}": load(f"simulated/{name}.csv.gz") for name in ("sentiment", "gossipcop", "politifact")}
    sets["babe"] = babe(("flan_ul2", "gpt_3_5", "mistral_7b"))
    for name in ("sentiment", "gossipcop"):
        votes, codes, gold = load(f"recorded/votes_{name}.csv.gz")
        sets[f"recorded {name}"] = (votes.select(annotators=QWEN, relations=PAPER_RELATIONS, draws=1), codes, gold)
    return sets


def load(name: str) -> Dataset:
    table = read_vote_table(DATA / name)
    gold = list(table.gold)
    return table.votes, gold_codes(table.votes, gold), gold


def babe(models: Sequence[str]) -> Dataset:
    import pandas as pd

    items = pd.read_csv(DATA / "babe/items.csv", dtype=str)
    said = pd.read_csv(DATA / "babe/votes.csv.gz", dtype=str)
    said = said[said.model.isin(models)].rename(columns={"model": "annotator", "setting": "relation"})
    votes = Votes.from_table(said)
    gold = items.set_index("id").gold.reindex(list(votes.ids)).tolist()
    return votes, gold_codes(votes, gold), gold


def read_models() -> list[str]:
    import pandas as pd

    return sorted(pd.read_csv(DATA / "babe/votes.csv.gz", usecols=["model"]).model.unique())
