"""A fitted run whose models are those of a stub, and `pcs serve` in a separate process."""

import csv
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, LearnSettings, RelationSettings, TaskSettings
from tests.simulated import run

LABELS = ("positive", "negative")
_ROOT = Path(__file__).resolve().parents[3]


def stub_run(url: str, folder: Path, models: Sequence[str], relations: Sequence[str], concurrency: int = 0) -> Path:
    """Label 80 texts with models of a stub, learn from gold, and return the run folder."""
    data = folder / "data.csv"
    with data.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "gold"])
        writer.writerows([f"Calibration text {row}.", LABELS[row % 3 % 2]] for row in range(80))
    config = Config(
        task=TaskSettings(labels=LABELS),
        ask=AskSettings(models=tuple(f"{url}#{name}" for name in models), concurrency=concurrency or None),
        relations=RelationSettings(use=tuple(relations)),
        learn=LearnSettings(optimiser="lr", folds=3, resamples=5),
    )
    run(RunRequest(data=data, folder=folder / "run", config=config, environment={}))
    return folder / "run"


class ServiceProcess(NamedTuple):
    """A service in another process."""

    url: str
    process: subprocess.Popen[str]

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def kill(self) -> None:
        """Kill it, without a chance to say goodbye."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=20)


@contextmanager
def service_process(folder: Path, *options: str) -> Iterator[ServiceProcess]:
    """Run `pcs serve` at a free port until the block ends."""
    code = "import sys; from pcs_annotator.faces.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "serve", str(folder), "--port", "0", *options]
    with subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            while first and "is ready" not in first:
                first = process.stderr.readline()
            url = process.stderr.readline().split("  ")[0]
            if not url.startswith("http"):
                raise RuntimeError(f"the service did not start: {first}{url}")
            yield ServiceProcess(url, process)
        finally:
            process.terminate()
            try:
                process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                process.kill()
