"""What all judging tests need."""

from __future__ import annotations

import warnings

import pytest

from pcs_annotator.errors import PcsWarning
from pcs_annotator.judging.optimisers import optimisers


@pytest.fixture(scope="session", autouse=True)
def plugins_are_loaded() -> None:
    """Look up plug-ins once, for a broken one that is installed warns whoever asks first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        optimisers.names()
