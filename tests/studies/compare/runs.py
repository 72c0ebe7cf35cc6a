"""Two runs on the same rows with a shared ledger, asked for once per session of tests."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator import PcsWarning, RunResult, run

LABELS = ("fine", "late", "متأخر")
ROWS = 60
ATTACK = "<script>document.title='pwned'</script>"
ARABIC = "وصل القطار إلى المحطة متأخرا"
ASK: dict[str, Any] = {
    "labels": LABELS,
    "relations": ["original", "order"],
    "optimiser": "lr",
    "models": ["scripted:hash:a", "scripted:hash:b"],
    "prices": {"scripted:hash:a": (1.0, 2.0), "scripted:hash:b": (1.0, 2.0)},
}


class Runs(NamedTuple):
    """Folders of two runs: A asks two models, B the second of them, with another instruction."""

    folder: Path

    @property
    def a(self) -> str:
        """The first."""
        return str(self.folder / "a")

    @property
    def b(self) -> str:
        """The second."""
        return str(self.folder / "b")


def texts() -> list[str]:
    """Texts about buses; one attacks a page, one is written from right to left."""
    return [ATTACK, ARABIC, *(f"Bus {number} came at {number % 24} o'clock." for number in range(2, ROWS))]


def write_table(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    """Write rows of id, text and gold."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "text", "gold"), *rows])
    return path


def make(folder: Path, name: str, rows: Sequence[Sequence[object]], **changes: Any) -> RunResult:
    """Run these rows in a folder of this name."""
    data = write_table(folder / f"{name}.csv", rows)
    quick = folder / "quick.toml"
    quick.write_text("[learn]\nresamples = 20\nfolds = 3\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        settings = {**ASK, "ledger": str(folder / "ledger.db"), **changes}
        return run(data, folder / name, config=quick, **settings)


def two_runs(folder: Path) -> Runs:
    """Make two runs whose gold is nearly always what the first model says of the unchanged text."""
    plain = [(f"r{row:02d}", text, "") for row, text in enumerate(texts())]
    first = make(folder, "first", plain, models=["scripted:hash:a"], relations=["original"])
    said = [LABELS[code] for code in first.votes.codes[:, 0, 0, 0].tolist()]
    rows = [
        (name, text, label if row % 7 else LABELS[row % 3])
        for row, ((name, text, _), label) in enumerate(zip(plain, said, strict=True))
    ]
    make(folder, "a", rows)
    make(folder, "b", rows, models=["scripted:hash:b"], instruction="Was it late?")
    return Runs(folder)
