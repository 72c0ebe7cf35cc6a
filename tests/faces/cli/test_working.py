"""What a person sees while a command takes its time."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulated import write_csv


@pytest.mark.system
@pytest.mark.parametrize(("options", "seen"), [((), True), (("--json",), False), (("--quiet",), False)])
@pytest.mark.parametrize("verb", ["fit", "run"])
def test_a_terminal_says_what_is_done(tmp_path: Path, verb: str, options: tuple[str, ...], seen: bool) -> None:
    rows = [{"id": str(row), "gold": "ab"[row % 2], "m|original": "ab"[row % 2]} for row in range(40)]
    if verb == "run":
        rows = [{"text": f"Text {row}.", "gold": row_votes["gold"]} for row, row_votes in enumerate(rows)]
        options = (*options, "--model", "scripted:hash")
    data = write_csv(tmp_path / "votes.csv", rows)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pcs_annotator", verb, str(data), "-o", str(tmp_path / "run"), *options]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=theirs, check=True, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    printed = b""
    try:
        while more := os.read(ours, 65_536):
            printed += more
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    assert (b"learning from gold" in printed) == seen
