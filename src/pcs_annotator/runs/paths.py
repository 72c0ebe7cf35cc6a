"""The files of a run folder: those of the run, and those of each of its variables."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.core.outcome import Counts
from pcs_annotator.tables.files import expecting, read_json, set_aside, write_json
from pcs_annotator.version import __version__

REMEDY = "pcs run writes it again, from the answers in the ledger"
SAMPLED = "rows"  # the key in `book.json` that says how many rows a large table has, of which there is a sample
IMPORTED = "imported"  # the key in `book.json` of a run that was made of a table of votes
VARIABLES = "variables"  # the folder with a folder for each variable
USUAL = "label"  # the name of the variable of a run that has one

BESIDE = ("stream.db-wal", "stream.db-shm", "figures", "finished.csv", "finished.certificate.json", "to_ask.csv")
"""Files and folders of a run folder that have no name in `RunFolder`."""


class _File:
    def __init__(self, name: str, within: str = "path") -> None:
        self._name, self.within = name, within  # the folder that it is in: of the run, for people, or of the variable

    def __get__(self, folder: "RunFolder", _: type) -> Path:
        there: Path = getattr(folder, self.within)
        return there / self._name


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The paths of a run's files; `part` is a variable, or one of its labels as in `frames=economy`; often empty."""

    path: Path
    part: str = ""
    version: int = 0  # which fit is meant, if not the one in use

    book = _File("book.json")  # for each variable: settings, annotators, and version of the package
    items = _File("items.parquet")  # texts and gold labels
    ledger = _File("ledger.db")  # every paid call
    status = _File("status.json")  # how far the last command is, or how it ended; a service has `status-PORT.json`
    batches = _File("batches.json")  # batches at their providers, open and ended
    draws = _File("draws.jsonl")  # which rows were drawn for people, and what they said; see `runs/draw_registry.py`
    levels = _File("levels.json")  # tests of the gold labels, and what they used; see `runs/levels.py`

    report = _File("report.html", "home")  # the report page
    to_label = _File("to_label.csv", "home")  # rows that a person should label next
    whole = _File("whole.json", "home")  # exact counts of a large table, of which the other files have a sample
    finish = _File("finish.json", "home")  # which rows people label so that the whole table keeps a promise
    stream = _File("stream.db", "home")  # texts that were labelled later and left for people; see `runs/stream.py`

    variants = _File("variants.parquet", "own_folder")  # every rewrite, or the reason why there is none
    votes = _File("votes.parquet", "own_folder")  # every vote
    all_votes = _File("all-votes.parquet", "own_folder")  # every vote on a large table; `votes` has those on a sample
    quotations = _File("quotations.parquet", "own_folder")  # what models quoted; see `runs/quotations.py`
    passages = _File("passages.csv", "home")  # the passages of the texts, with their confidence and decision
    versions = _File("models", "own_folder")  # every fit; see `runs/fits.py`
    methods = _File("evaluation-methods.json", "own_folder")  # how good other methods are on the same votes
    whole_set = _File(
        "whole-set.json", "own_folder"
    )  # what is known about all labels together, where any number may apply

    @classmethod
    def find(cls, path: Path, version: int = 0) -> "RunFolder":
        """Return the run in a folder, or the variable that has this folder in a run; none, or several, are an error."""
        within = next((each for each in (path, *path.parents) if cls(each).book.exists()), path)
        parts = parts_in(within)
        for part in parts:
            folder = cls(within, part, version)
            if path in (folder.home, folder.own_folder):
                return folder
        if not parts:
            raise ConfigError(f"{path} is not a run folder (it has no {cls(path).book.name}): pcs run creates one")
        places = ", ".join(str(cls(within, part).home) for part in parts)
        if "" in parts:
            raise ConfigError(f"{path} is not a run folder, but {places} is: name that one")
        other = "" if within == path else f", but no {path}"
        raise ConfigError(f"{within} has several variables{other}: name one of them, {places}")

    @property
    def own_folder(self) -> Path:
        """The folder of the variable."""
        return self.path / VARIABLES / (place_of(self.part) or USUAL)

    @property
    def home(self) -> Path:
        """The folder by which people name it: that of the run, where it has one variable."""
        return self.own_folder if self.part else self.path

    def of(self, part: str) -> "RunFolder":
        """Return another variable of the run."""
        return RunFolder(self.path, part)

    def at(self, version: int) -> "RunFolder":
        """Return the folder as it is with a version in use."""
        return RunFolder(self.path, self.part, version)

    def refuse_file(self) -> None:
        """Raise if there is a file in the place of the folder."""
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"{self.path} is a file: name a folder for the run with -o")

    @property
    def model(self) -> Path:
        """The fitted model."""
        return self.versions / f"{self.version}.json" if self.version else self.own_folder / "model.json"

    @property
    def evaluation(self) -> Path:
        """How good the labels are, on rows that the fit did not see."""
        name = "evaluation.json"
        return self.versions / f"{self.version}-{name}" if self.version else self.own_folder / name

    @property
    def labels(self) -> Path:
        """The user's rows with their labels; those of a large Parquet table are Parquet too."""
        packed = self.path / "labels.parquet"
        return packed if packed.exists() else self.path / "labels.csv"

    def set_results_aside(self) -> Path:
        """Move every file of a run into one dated folder within this one; what was paid for stays where it is."""
        run, stay, kept = self.of(""), ("ledger", "batches", "status", "book"), self.path / "earlier"
        if kept.exists():  # left by an interruption
            set_aside(kept)
        kept.mkdir()
        # What says that there are results, and of what data, moves last: an interruption must not look like no results.
        files = {name: file for name, file in vars(RunFolder).items() if isinstance(file, _File) and name not in stay}
        shared = [getattr(run, name) for name, file in files.items() if file.within != "own_folder"]
        beside = [self.path / name for name in BESIDE]
        for path in (*shared, *beside, self.path / VARIABLES, self.labels, self.book):
            if path.exists():
                path.rename(kept / path.name)
        return set_aside(kept)


def place_of(part: str) -> str:
    """Return the folder of a part within that of all variables."""
    variable, several, label = part.partition("=")
    name = re.sub(r"\W+", "-", label).strip("-") or "label"
    return f"{variable}/{name}" if several else variable


def _starts(path: Path, remedy: str) -> dict[str, dict[str, Any]]:
    book = RunFolder(path).book
    if not book.exists():
        return {}
    with expecting(book, remedy):
        parts: dict[str, dict[str, Any]] = read_json(book, remedy)[VARIABLES]
        return {"" if name == USUAL else name: {**start} for name, start in parts.items()}


def parts_in(path: Path) -> list[str]:
    """Return the parts of the run in a folder, in their order; none if there is no run."""
    return [*_starts(path, REMEDY)]


def read_start(folder: RunFolder, remedy: str = REMEDY) -> dict[str, Any]:
    """Return with what a part of a run was started: settings, annotators and versions; empty if it was not."""
    return _starts(folder.path, remedy).get(folder.part, {})


def write_start(folder: RunFolder, start: Mapping[str, Any], parts: Sequence[str] = ("",)) -> None:
    """Write with what a part was started; of the run's other parts, only `parts` stay."""
    try:
        before = _starts(folder.path, REMEDY)
    except TableError:  # damaged
        before = {}
    starts = {**before, folder.part: start}
    write_json(folder.book, {VARIABLES: {part or USUAL: starts[part] for part in parts if part in starts}})


class Origin(NamedTuple):
    """Where a run comes from."""

    version: str  # version of the package that made it
    data: str  # name of the user's file; empty if unknown


def read_origin(folder: RunFolder) -> Origin:
    """Return where the run in a folder comes from."""
    start = read_start(folder)
    return Origin(start.get("version", __version__), PurePath(start.get("data", "")).name)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTable:
    """The rows of a large table with their labels."""

    counts: Counts  # how many rows have which label
    columns: Sequence[str]  # the user's own columns in the file of labels
    made_from: str = ""  # a digest of all that the labels depend on: data, questions and model
    signature: Mapping[str, str] = field(default_factory=dict)  # a hash of the file of labels
    spreadsheet_safe: bool = False  # whether formulas were made safe in it
    tally: Mapping[str, Any] = field(default_factory=dict)  # what was counted while asking
    ledger: Mapping[str, Any] = field(default_factory=dict)  # how many calls the ledger had, and when


def read_whole(folder: RunFolder) -> WholeTable | None:
    """Return what is known about all rows of a large table; None if the folder has none, or is not finished."""
    if not folder.whole.exists():
        return None
    values = read_json(folder.whole, REMEDY)
    values.pop("schema", None)
    with expecting(folder.whole, REMEDY):
        return WholeTable(**{**values, "counts": Counts(**values["counts"])})
