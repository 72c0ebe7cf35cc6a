"""A run whose true shares are known: each row's text says its label, and machine labels are wrong in known groups."""

import random
from functools import partial
from pathlib import Path

import pytest

from pcs_annotator.runs import run_table
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, DataSettings, RelationSettings, TaskSettings
from tests.made_once import made_once
from tests.simulated import MODELS, QUICK, RELATIONS, run, simulated_models, write_csv

ROWS = 600
SHARES = {"a": 0.3, "b": 0.5, "c": 0.7}


def rows_with_groups(gold_rows: int = 200) -> list[dict[str, str]]:
    """Return texts with a party, followers and a date; the first ones have gold."""
    rng = random.Random(7)
    found = []
    for row in range(ROWS):
        party = rng.choice("abc")
        truth = "good" if rng.random() < SHARES[party] else "bad"
        followers = rng.randint(1, 900)
        day = f"2026-0{rng.randint(1, 3)}-1{row % 9}"
        found.append(
            {
                "id": f"t{row}",
                "text": f"Case {row} looks {truth}.",
                "gold": truth if row < gold_rows else "",
                "party": party if row != 5 else "",
                "followers": str(followers),
                "day": day,
                "tag": ".".join(reversed(day.split("-"))) + (" 09:30" if row % 2 else ""),
                "chance": "0.25" if row < gold_rows else "",
                "rare": f"{row}" if row % 10 == 0 else "",
                "odd": "yes" if row % 50 == 0 else "no",
                "zero": "0" if row == 3 else "0.5",
                "above": "1.5" if row == 3 else "0.5",
                "same": "7",
                "twice": str(2 * followers),
                "tells": str(row + 1000 * (truth == "good")),
                "ward": str(row % 7),
            }
        )
    return found


def make_run(
    folder: Path, gold_rows: int = 200, rows: int = ROWS, *, id_column: str = "id", twice: bool = False
) -> Path:
    """Label the rows, or the first of them, or each twice; return the run folder.
    Without a name of their column, ids are left out. Of rows that are there twice, the second has no gold.
    """
    found = rows_with_groups(gold_rows)[:rows]
    found += [{**row, "id": f"copy{row['id']}", "gold": ""} for row in found] if twice else []
    given = [{id_column: row.pop("id"), **row} for row in found]
    data = write_csv(folder / "data.csv", [{name: cell for name, cell in row.items() if name} for row in given])
    config = Config(
        task=TaskSettings(labels=("good", "bad")),
        data=DataSettings(id_column=id_column),
        ask=AskSettings(models=MODELS),
        relations=RelationSettings(use=RELATIONS),
        learn=QUICK,
    )
    with simulated_models():
        run(RunRequest(data=data, folder=folder / "run", config=config))
    return folder / "run"


def run_with_groups(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of 160 rows, 80 with gold, that is made once for all tests, which only read it."""
    return made_once(factory, "groups-160-80", partial(make_run, gold_rows=80, rows=160)) / "run"


def truth(row: dict[str, str]) -> str:
    """Return the true label of a row."""
    return "good" if "good" in row["text"] else "bad"


def keep_a_sample(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Treat tables with more rows than these as large."""
    monkeypatch.setattr(run_table, "IN_MEMORY_ROWS", rows)
    monkeypatch.setattr(run_table, "SAMPLE_ROWS", rows)
