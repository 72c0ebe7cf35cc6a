"""The picture of the report in the docs can be taken again."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chromium import CHROMIUM, MISSING

SCRIPT = Path(__file__).parents[1] / "scripts" / "pictures.py"


@pytest.mark.system
@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
def test_the_picture_of_the_report_can_be_taken_again() -> None:
    ran = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
