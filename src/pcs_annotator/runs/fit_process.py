"""`pcs fit` in the background, for what people and other programs must not wait for."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

DONE = (0, 1)  # exit codes of a fit that ended well; 1 if some rows have no label
LOWER_PRIORITY = 10


class FitProcess:
    """`pcs fit` in a process of its own with a lower priority, so that nobody waits for it."""

    def __init__(self, folder: Path) -> None:
        self.command: Sequence[str] = (sys.executable, "-m", "pcs_annotator", "fit", str(folder))
        self.process: subprocess.Popen[str] | None = None
        self.stopped = False

    def run(self) -> str:
        """Run the fit, and return why it failed; empty if it did not."""
        command = [*self.command, "--spare-looks", "--json"]
        quiet = subprocess.DEVNULL
        try:
            process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            return f"the fit in the background failed: {error}"
        self.process = process
        if self.stopped:  # meanwhile
            process.terminate()
        if hasattr(os, "setpriority"):
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, process.pid, LOWER_PRIORITY)
        _, said = process.communicate()
        if process.returncode in DONE:
            return ""
        why = said.rpartition("error: ")[2].strip() or f"it ended with code {process.returncode}"
        return f"the fit in the background failed: {why} (no verdict is lost)"

    def stop(self) -> None:
        """Stop the fit under way, and those to come; what it was writing is written whole or not at all."""
        self.stopped = True
        if self.process is not None:
            self.process.terminate()
