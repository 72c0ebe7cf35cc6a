"""What several tests share: the development data, where it is present."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The development data, which is not part of the project."""
    place = os.environ.get("PCS_SHARED_DATA")
    folder = Path(place) if place else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the development data is not on this machine (set PCS_SHARED_DATA to its folder)")
    return folder
