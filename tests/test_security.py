"""What `SECURITY.md` says about installing and importing."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pcs_annotator.models.local.download import WEIGHTS

ROOT = Path(__file__).resolve().parents[1]
IMPORT_ALL = """
import importlib, json, pkgutil, warnings
from pytest_socket import SocketBlockedError, disable_socket

disable_socket()
warnings.simplefilter("ignore")
import pcs_annotator

for name in pcs_annotator.__all__:
    getattr(pcs_annotator, name)
done, missing = 0, []
for module in pkgutil.walk_packages(pcs_annotator.__path__, "pcs_annotator."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
            done += 1
        except ImportError as error:  # an extra that is not installed
            missing.append(str(error))
print(json.dumps([done, missing]))
"""


@pytest.mark.system
def test_importing_every_module_opens_no_connection() -> None:
    found = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    done, missing = json.loads(found.stdout)
    assert done > 200
    assert all("torch" in name or "transformers" in name for name in missing), missing


def test_the_guard_against_connections_would_notice_one() -> None:
    code = "from pytest_socket import disable_socket; disable_socket(); import socket; socket.socket()"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "SocketBlockedError" in found.stderr


def test_model_files_are_named_by_version_size_and_hash() -> None:
    for weights in WEIGHTS.values():
        assert re.fullmatch(r"[\w-]+==[\d.]+", weights.package)
        assert re.fullmatch(r"[0-9a-f]{64}", weights.sha256)
        assert weights.bytes > 0


def test_every_dependency_has_a_lowest_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    unbounded = [one for one in named if not re.search(r">=|==", one) and not one.startswith("perceived-confidence")]
    assert unbounded == []


@pytest.mark.parametrize("door", ["command line", "run folder", "ledger", "review page", "service", "exchange files"])
def test_the_threat_model_has_every_door(door: str) -> None:
    assert f"| {door}" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
