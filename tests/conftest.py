"""What several tests share: the plug-ins, loaded once, and the development data, where it is present."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from hypothesis import settings

from pcs_annotator.errors import PcsWarning
from pcs_annotator.judging.weighing.optimiser import optimisers
from pcs_annotator.relations.base import relations

# No deadline, because a busy machine is slow; 25 examples keep the whole suite under four minutes.
settings.register_profile("patient", deadline=None, max_examples=25)
settings.load_profile("patient")


def pytest_sessionstart() -> None:
    """Load the plug-ins before any test or doctest does: one of them is broken on purpose, and warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        optimisers.names()
        relations.names()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The development data, which is not part of the project."""
    place = os.environ.get("PCS_SHARED_DATA")
    folder = Path(place) if place else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the development data is not on this machine (set PCS_SHARED_DATA to its folder)")
    return folder
