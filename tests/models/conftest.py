"""Real sockets, limited to this machine."""

import warnings

import pytest
from pytest_socket import socket_allow_hosts

from pcs_annotator import PcsWarning
from pcs_annotator.models.provider import providers


@pytest.fixture(autouse=True)
def _this_machine_only(socket_enabled: None) -> None:
    socket_allow_hosts(["127.0.0.1", "::1"], allow_unix_socket=True)


@pytest.fixture(autouse=True, scope="session")
def _plugins_loaded() -> None:
    """Load plug-ins before any test does: one of them may be broken on purpose, and warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        providers.names()
