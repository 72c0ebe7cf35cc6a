"""Fits of a run: `pcs fit` in the background, and every fit as a numbered version to which one can go back.

`models/7.json` is `model.json` after the seventh fit, and `models/7-evaluation.json` what was measured then.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.base.errors import ConfigError, MismatchError, TableError
from pcs_annotator.base.plain import from_plain
from pcs_annotator.base.text import listed
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.model import Model
from pcs_annotator.runs.ledgers import existing_ledger
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.settings import Config, LearnSettings
from pcs_annotator.runs.toml import known_settings
from pcs_annotator.tables.files import expecting, read_json, write_json

REMEDY = "use another version, which pcs versions lists"
REFIT = "pcs fit makes it again from the votes"
DONE = (0, 1)  # exit codes of a fit that ended well; 1 if some rows have no label
LOWER_PRIORITY = 10


def model_of(path: Path, values: Mapping[str, Any]) -> Model:
    """Return the model that a file holds."""
    try:
        with expecting(path, REFIT):
            return from_plain(Model, values)
    except MismatchError as error:
        raise TableError(f"{path}: {error}") from error


class Version(NamedTuple):
    """One fit of a run."""

    number: int
    made: str  # when, in UTC
    gold_rows: int  # those of the run's table
    accuracy: float | None  # of held-out gold rows; None if there were too few
    accepted: float | None  # share of the run's rows that are accepted; None without a promise
    fit_id: str  # a digest of the model
    in_use: bool
    accuracy_interval: Interval | None = None
    audited: int = 0  # accepted rows that people had checked by the last look at this fit
    wrong: int = 0  # how many labels of these were wrong
    error_interval: Interval | None = None  # of the error rate that this means
    calls: int | None = None  # what had been paid for until then; None with a ledger that others use
    usd: float | None = None
    streamed_gold_rows: int = 0  # texts that came later, and have a verdict

    @property
    def error(self) -> float | None:
        """The error rate that an audit found; None before one."""
        return self.wrong / self.audited if self.audited else None


def keep_version(folder: RunFolder, model: Mapping[str, Any], evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """Store a fit as a version, and return its `model.json`; the same fit once more stays the same version."""
    latest = folder if folder.model.exists() else folder.at(max(numbers(folder), default=0))  # it may be damaged
    before = read_json(latest.model) if latest.model.exists() else {}
    same = before.get("fit_id") == model["fit_id"]
    number = before["number"] if same else max(numbers(folder), default=0) + 1
    made = before["made"] if same else datetime.now(UTC).isoformat(timespec="seconds")
    complete = {**model, "number": number, "made": made}
    folder.versions.mkdir(parents=True, exist_ok=True)
    write_json(folder.at(number).evaluation, evaluation)
    write_json(folder.at(number).model, complete)
    return complete


def numbers(folder: RunFolder) -> list[int]:
    """Return the numbers of all versions that are kept."""
    return sorted(int(path.stem) for path in folder.versions.glob("*.json") if path.stem.isdecimal())


def version_of(folder: RunFolder, number: int) -> RunFolder:
    """Return the folder as it is with a version in use; an error if there is none with this number."""
    kept = numbers(folder)
    if number not in kept:
        there = f"there are {listed(map(str, kept), len(kept))}" if kept else "pcs fit makes the first one"
        raise ConfigError(f"{folder.home} has no version {number}: {there}")
    return folder.at(number)


def list_versions(folder: RunFolder, config: Config | None = None) -> list[Version]:
    """Return all versions, oldest first; with the settings of the run, also what had been paid for until each."""
    in_use = number_in_use(folder)
    versions = [_summary(folder.at(number), number, in_use) for number in numbers(folder)]
    if config is None or config.ask.ledger or not folder.ledger.exists():
        return versions
    with existing_ledger(folder.ledger) as ledger:
        times = [datetime.fromisoformat(version.made).timestamp() + 1 for version in versions]  # to the second
        paid = map(ledger.paid_until, times)
        return [version._replace(calls=calls, usd=usd) for version, (calls, usd) in zip(versions, paid, strict=True)]


def number_in_use(folder: RunFolder) -> int:
    """Return the number of the version in use; 0 before the first fit."""
    return int(read_json(folder.model).get("number", 1)) if folder.model.exists() else 0


def _summary(at: RunFolder, number: int, in_use: int) -> Version:
    with expecting(at.model, REMEDY):
        values, figures = read_json(at.model, REMEDY), read_json(at.evaluation, REMEDY)["figures"]
        certificate = values["certificate"]
        accuracy = figures[0]["figures"]["accuracy"] if figures else {}
        audit = (certificate or {}).get("audit") or {}
        return Version(
            number=number,
            made=values["made"],
            gold_rows=values["weights"]["diagnostics"]["gold_rows"] - values.get("streamed_gold", 0),
            streamed_gold_rows=values.get("streamed_gold", 0),
            accuracy=accuracy.get("value"),
            accuracy_interval=Interval(*accuracy["interval"]) if accuracy else None,
            audited=audit.get("rows", 0),
            wrong=audit.get("wrong", 0),
            error_interval=Interval(**audit["error"]) if audit else None,
            accepted=None if certificate is None else certificate["accepted_share"],
            fit_id=values["fit_id"],
            in_use=number == in_use,
        )


def take_version(folder: RunFolder, number: int) -> None:
    """Make a version the one in use; its labels are written by the caller."""
    kept = version_of(folder, number)
    evaluation = read_json(kept.evaluation, REMEDY)
    write_json(folder.model, read_json(kept.model, REMEDY))
    write_json(folder.evaluation, evaluation)


def promises_less(model: Model, than: Model) -> bool:
    """Return whether a model promises less than another: nothing, nothing for some groups or labels, or fewer rows."""
    now, before = model.certificate, than.certificate
    if before is None or not before.holds:
        return False
    lost = now is None or not now.holds or {*before.thresholds} - {*now.thresholds}
    return bool(lost) or now is None or now.accepted_share < before.accepted_share


def state_of(folder: RunFolder) -> list[tuple[int, int, int] | None]:
    """Return what changes when a run is fitted again: the state of settings and model, and of the review."""
    states: list[tuple[int, int, int] | None] = [None] * 3
    for at, path in enumerate((folder.book, folder.model, folder.draws)):
        with suppress(OSError):
            is_now = path.stat()
            states[at] = is_now.st_mtime_ns, is_now.st_size, is_now.st_ino
    return states


def left_unused(folder: RunFolder) -> str:
    """Return that the last fit was not put in use, and why; empty if it was."""
    last, in_use = max(numbers(folder), default=0), number_in_use(folder)
    if last <= in_use:
        return ""
    now, before = (read_json(folder.at(number).model)["certificate"] or {} for number in (last, in_use))
    shares = (f"{100 * certificate.get('accepted_share', 0):.0f} %" for certificate in (now, before))
    why = f" ({now['why_not']})" if now.get("why_not") else ""
    return (
        f"version {last} promises less than version {in_use}, which stays in use: it would accept "
        f"{' instead of '.join(shares)} of the rows{why}; pcs versions {folder.home} --use {last} puts it in use"
    )


def settings_of_fits(folder: RunFolder, name: str = "fit") -> dict[str, Any]:
    """Return the settings that were given to `pcs fit` in a folder, which the next `pcs run` there keeps."""
    try:
        with expecting(folder.model, REMEDY):
            return known_settings(LearnSettings, read_json(folder.model).get(name, {}))
    except TableError:  # missing, or damaged
        return {}


class FitProcess:
    """`pcs fit` in a process of its own with a lower priority, so that nobody waits for it."""

    def __init__(self, folder: Path) -> None:
        self.command: Sequence[str] = (sys.executable, "-m", "pcs_annotator", "fit", str(folder))
        self.process: subprocess.Popen[str] | None = None
        self.stopped = False

    def run(self) -> str:
        """Run the fit, and return why it failed; empty if it did not."""
        command, quiet = [*self.command, "--spare-looks", "--json"], subprocess.DEVNULL
        try:
            process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            return f"the fit in the background failed: {error}"
        self.process = process
        if self.stopped:  # meanwhile
            process.terminate()
        with suppress(OSError, AttributeError):  # not every system has priorities
            os.setpriority(os.PRIO_PROCESS, process.pid, LOWER_PRIORITY)
        _, messages = process.communicate()
        if process.returncode in DONE:
            return ""
        why = messages.rpartition("error: ")[2].strip() or f"it ended with code {process.returncode}"
        return f"the fit in the background failed: {why} (no verdict is lost)"

    def stop(self) -> None:
        """Stop the fit under way, and those to come; what it was writing is written whole or not at all."""
        self.stopped = True
        if self.process is not None:
            self.process.terminate()
