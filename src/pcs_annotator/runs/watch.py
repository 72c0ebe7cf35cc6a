"""What a command counts while it works: for `pcs status` a file in the run folder."""

import json
import os
import platform
import threading
from asyncio import CancelledError
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, Self

from pcs_annotator.asking.engine.budget import BudgetTracker
from pcs_annotator.asking.engine.progress import Tally, TimeLeft, clock, describe, how_far
from pcs_annotator.base.errors import Interrupted, PcsError, TableError
from pcs_annotator.runs.ask import Follow
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.tables.files import SCHEMA, expecting, is_running, read_json

EVERY = 1.0  # seconds between two writes
PACE_SAMPLES = 60  # the pace is that of so many seconds
SILENT_SECONDS = 60.0  # a process that has not written for so long may be gone
REMEDY = "the next command in this folder writes it again"
ENDS = {
    "interrupted": "interrupted: all answers are kept, and the same command resumes",
    "died": "died: the process ended unexpectedly; all answers are kept, and the same command resumes",
    "silent": "silent: its process may hang, or be gone with its machine",
}


class Watch:
    """Writes what is counted from a thread of its own, again after a failure; a service names its port."""

    def __init__(self, folder: RunFolder, command: str, tally: Tally, port: int | None = None) -> None:
        path = folder.status
        self._path = path if port is None else path.with_stem(f"{path.stem}-{port}")
        process = {"pid": os.getpid(), "host": platform.node(), "started": _now()}
        self._about = {"command": command, "run": folder.path.resolve().name, **process}
        self._first, self._tally, self._trackers = tally, tally, list[BudgetTracker]()
        self._began, self._time_left = monotonic(), TimeLeft()
        self._samples: deque[tuple[float, int]] = deque(maxlen=PACE_SAMPLES)
        self.note: Callable[[], str] = str  # what is to be known about the texts; empty for nothing
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, name="pcs-status", daemon=True)

    def follow(self, tally: Tally, tracker: BudgetTracker) -> None:
        """Count what is asked next, too."""
        if tally is not self._tally:
            self._samples.clear()
            self._tally, self._time_left = tally, TimeLeft()
        self._trackers.append(tracker)

    def __enter__(self) -> Self:
        return self

    def begin(self) -> Follow:
        """Begin to write, once nothing more is refused; return what counts in what is asked next."""
        self._write("running")
        self._thread.start()
        return self.follow

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not self._thread.is_alive():
            return  # what is refused is not said to have failed
        self._end.set()
        self._thread.join(5 * EVERY)
        if error is None or isinstance(error, KeyboardInterrupt | CancelledError | Interrupted):
            self._write("interrupted" if error else "finished")
        else:
            self._write("failed", str(error) if isinstance(error, PcsError) else type(error).__name__)

    def _keep_writing(self) -> None:
        while not self._end.wait(EVERY):
            with suppress(RuntimeError):  # a counter may grow while it is read
                self._write("running")

    def _write(self, state: str, error: str = "") -> None:
        values = {"schema": SCHEMA, **self.figures(state), **({"error": error} if error else {})}
        with suppress(OSError):  # a full disk must not end what is paid for
            _replace(self._path, json.dumps(values, indent=2, ensure_ascii=False))

    def figures(self, state: str = "running") -> dict[str, Any]:
        """Return what is counted so far."""
        tally, first, trackers, seconds = self._tally, self._first, list(self._trackers), monotonic() - self._began
        since, rows = next(iter(self._samples), (seconds, 0))
        self._samples.append((seconds, tally.rows))
        retries = Counter(tally.causes)
        if tally.retries is not first.retries:  # a sample was asked about first
            retries.update(first.causes)
        left = self._time_left.at(seconds, tally) if state == "running" else None
        return {
            "state": state,
            **self._about,
            "updated": _now(),
            "progress": " · ".join([how_far(tally, left), *(describe(tally, paid, seconds) for paid in trackers[-1:])]),
            "seconds": round(seconds, 1),
            "seconds_left": left,
            "rows": tally.rows,
            "rows_expected": tally.rows_expected,
            "rows_without_label": tally.unlabelled,
            "rows_per_minute": round(60 * (tally.rows - rows) / (seconds - since), 1) if seconds > since else None,
            "calls": max(first.calls, sum(paid.calls for paid in trackers)),
            "tokens": sum(paid.tokens for paid in trackers),
            "usd": sum(paid.usd for paid in trackers),
            "price_unknown": any(paid.price_unknown for paid in trackers),
            "from_ledger": tally.from_ledger,
            "retries": dict(retries),
            "unanswered": dict(tally.failed),
            "budget_left": trackers[-1].left() if trackers else {},
            "note": self.note(),
        }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_status(folder: RunFolder) -> list[dict[str, Any]]:
    """Return what the last commands in a run folder wrote; the state of one whose process is gone is `died`."""
    name = folder.status.name
    paths = sorted(folder.path.glob(name.replace(".", "*.")))
    if not paths:
        raise TableError(f"{folder.path} has no {name}: name a folder in which pcs run, label or serve has worked")
    return [_with_state(path) for path in paths]


def _with_state(path: Path) -> dict[str, Any]:
    values = read_json(path, REMEDY)
    with expecting(path, REMEDY):
        age = (datetime.now(UTC) - datetime.fromisoformat(values["updated"])).total_seconds()
        here = values["host"] == platform.node() and os.name == "posix"
        if values["state"] == "running" and here and not is_running(str(values["pid"])):
            values["state"] = "died"
        elif values["state"] == "running" and age > SILENT_SECONDS:
            values["state"] = "silent"
        status_lines(values)  # raises for a file with other values
        return values


def status_lines(values: Mapping[str, Any]) -> list[str]:
    """Return what a command has done so far, for people."""
    state, why = ENDS.get(values["state"], values["state"]), values.get("error")
    pace = [f"{values['rows_per_minute']:,.0f} rows/min"] if values["seconds_left"] is not None else []
    left = [f"left of {limit}: {number:,.10g}" for limit, number in values["budget_left"].items()]
    lines = [
        f"pcs {values['command']}: {state}{f': {why}' if why else ''}",
        f"  since {values['started']} ({clock(values['seconds'])}), process {values['pid']} on {values['host']}",
        f"  {' · '.join([values['progress'], *pace, *left])}",
    ]
    return [*lines, f"  {values['note']}"] if values.get("note") else lines
