"""The files of a run folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.outcome import Counts
from pcs_annotator.tables.files import expecting, read_json, set_aside
from pcs_annotator.version import __version__

REMEDY = "pcs run writes it again, from the answers in the ledger"
SAMPLED = "rows"  # the key in `run.json` that says how many rows a large table has, of which the folder keeps a sample
IMPORTED = "imported"  # the key in `run.json` of a run that was made of a table of votes

BESIDE = ("stream.db-wal", "stream.db-shm", "figures", "finished.csv", "finished.certificate.json", "to_ask.csv")
"""Files and folders of a run folder that have no name in `RunFolder`."""


class _File:
    """The path of a file in a run folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: "RunFolder", _: type) -> Path:
        return folder.path / self._name


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The paths of a run's files: one step, one file."""

    path: Path
    version: int = 0  # which fit is meant, if not the one in use

    codebook = _File("codebook.json")  # of a run with several variables: in which folder each of them is
    settings = _File("run.json")  # settings, annotators and version of the run
    items = _File("items.parquet")  # texts and gold labels
    to_label = _File("to_label.csv")  # rows that a person should label next
    ledger = _File("ledger.db")  # every paid call
    status = _File("status.json")  # how far the last command is, or how it ended; a service has `status-PORT.json`
    batches = _File("batches.json")  # batches at their providers, open and ended
    variants = _File("variants.parquet")  # every rewrite, or the reason why there is none
    votes = _File("votes.parquet")  # every vote
    versions = _File("models")  # every fit; see `runs/fits.py`
    methods = _File("evaluation-methods.json")  # how good other methods are on the same votes
    whole = _File("whole.json")  # exact counts of a large table, of which the other files have a sample
    all_votes = _File("all-votes.parquet")  # every vote on a large table; `votes` has those on a sample
    report = _File("report.html")  # the report page
    levels = _File("levels.json")  # tests of the gold labels, and what they used; see `runs/levels.py`
    finish = _File("finish.json")  # which rows people label so that the whole table keeps a promise
    whole_set = _File("set")  # of the first of any number of labels: what is known about all of them together
    stream = _File("stream.db")  # texts that were labelled later and left for people; see `runs/stream.py`
    draws = _File("draws.jsonl")  # which rows were drawn for people, and what they said; see `runs/draw_registry.py`

    def at(self, version: int) -> "RunFolder":
        """Return the folder as it is with a version in use."""
        return RunFolder(self.path, version)

    def refuse_file(self) -> None:
        """Raise if there is a file in the place of the folder."""
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"{self.path} is a file: name a folder for the run with -o")

    @property
    def model(self) -> Path:
        """The fitted model."""
        return self.versions / f"{self.version}.json" if self.version else self.path / "model.json"

    @property
    def evaluation(self) -> Path:
        """How good the labels are, on rows that the fit did not see."""
        name = "evaluation.json"
        return self.versions / f"{self.version}-{name}" if self.version else self.path / name

    @property
    def labels(self) -> Path:
        """The user's rows with their labels; those of a large Parquet table are Parquet too."""
        packed = self.path / "labels.parquet"
        return packed if packed.exists() else self.path / "labels.csv"

    def set_results_aside(self) -> Path:
        """Move every file of a run into one dated folder within this one; what was paid for stays where it is."""
        files = {name: getattr(self, name) for name, value in vars(RunFolder).items() if isinstance(value, _File)}
        for stays in ("ledger", "batches", "status", "settings"):
            del files[stays]
        beside = [self.path / name for name in BESIDE]
        kept = self.path / "earlier"
        if kept.exists():  # left by an interruption
            set_aside(kept)
        kept.mkdir()
        # What says that there are results, and of what data, moves last: an interruption must not look like no results.
        for path in (*files.values(), *beside, self.model, self.evaluation, self.labels, self.settings):
            if path.exists():
                path.rename(kept / path.name)
        return set_aside(kept)


def variables_in(folder: RunFolder) -> dict[str, Path]:
    """Return the variables of a run that has several, and the folder of each; none for any other run."""
    if not folder.codebook.exists():
        return {}
    with expecting(folder.codebook, REMEDY):
        return {name: folder.path / path for name, path in read_json(folder.codebook, REMEDY)["folders"].items()}


class Origin(NamedTuple):
    """Where a run comes from."""

    version: str  # version of the package that made it
    data: str  # name of the user's file; empty if unknown


def read_origin(folder: RunFolder) -> Origin:
    """Return where the run in a folder comes from."""
    if not folder.settings.exists():
        return Origin(__version__, "")
    start = read_json(folder.settings)
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
