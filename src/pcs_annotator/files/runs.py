"""The files of a run folder: written whole or not at all, and marked with a schema number."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcs_annotator.errors import TableError

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The paths of a run's files: one step, one file.

    >>> RunFolder(Path("runs/news")).votes.as_posix()
    'runs/news/votes.parquet'
    """

    path: Path

    @property
    def settings(self) -> Path:
        """Settings, annotators and version of the run."""
        return self.path / "run.json"

    @property
    def items(self) -> Path:
        """Texts and gold labels."""
        return self.path / "items.parquet"

    @property
    def gold(self) -> Path:
        """Gold labels that people added after the run."""
        return self.path / "gold.csv"

    @property
    def to_label(self) -> Path:
        """Rows that a person should label next."""
        return self.path / "to_label.csv"

    @property
    def audit(self) -> Path:
        """Accepted rows for a person to check."""
        return self.path / "audit.csv"

    @property
    def ledger(self) -> Path:
        """Every paid call."""
        return self.path / "ledger.db"

    @property
    def variants(self) -> Path:
        """Every rewrite, or the reason why there is none."""
        return self.path / "variants.parquet"

    @property
    def votes(self) -> Path:
        """Every vote."""
        return self.path / "votes.parquet"

    @property
    def model(self) -> Path:
        """The fitted model."""
        return self.path / "model.json"

    @property
    def evaluation(self) -> Path:
        """How good the labels are, on rows that the fit did not see."""
        return self.path / "evaluation.json"

    @property
    def methods(self) -> Path:
        """How good other methods are on the same votes."""
        return self.path / "evaluation-methods.json"

    @property
    def labels(self) -> Path:
        """The user's rows with their labels."""
        return self.path / "labels.csv"

    @property
    def report(self) -> Path:
        """The report page."""
        return self.path / "report.html"


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`, and rename it to `path` at the end if there was no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise TableError(f"cannot write {path}: {error.strerror}; choose another place with --out") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes private files, but these are results to share
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write values as readable JSON, with the schema number first."""
    text = json.dumps({"schema": SCHEMA, **values}, indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_path(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote; a newer schema is an error."""
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise TableError(f"there is no file {path}: fit first, or check the name") from error
    except (OSError, ValueError) as error:
        raise TableError(f"{path} cannot be read: {error}") from error
    if values.get("schema", 0) > SCHEMA:
        raise TableError(f"{path} was written by a newer pcs-annotator (schema {values['schema']}): upgrade it")
    return values
