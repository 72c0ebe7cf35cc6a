"""The compose files in examples/ are valid, stay on this machine, and the docs explain every flag in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
DOCS = (ROOT / "docs" / "local-models.md").read_text(encoding="utf-8")
FILES = sorted((ROOT / "examples").glob("*/compose.yaml"))
SECTIONS = {"vllm": "vLLM", "llama-cpp": "llama.cpp"}


def service(path: Path) -> dict[str, Any]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(content) <= {"services", "volumes"}
    ((name, found),) = content["services"].items()
    assert name == path.parent.name
    assert isinstance(found, dict)
    return found


def section_of(path: Path) -> str:
    """The part of the docs about this server."""
    _, _, rest = DOCS.partition(f"\n## {SECTIONS[path.parent.name]}\n")
    return rest.partition("\n## ")[0]


def test_both_servers_have_a_file() -> None:
    assert {path.parent.name for path in FILES} == set(SECTIONS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_every_flag_is_explained(path: Path) -> None:
    command = service(path)["command"]
    assert all(isinstance(part, str) for part in command)
    flags = [part for part in command if part.startswith("--")]
    assert flags
    explained = set(re.findall(r"`(--[\w-]+)`", section_of(path)))
    assert set(flags) <= explained
    # values are parts of their own, each after its flag
    assert command[0].startswith("--")
    assert all(not (one.startswith("--") and "=" in one) for one in command)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_the_port_stays_on_this_machine_and_is_the_one_in_the_docs(path: Path) -> None:
    found = service(path)
    (port,) = found["ports"]
    host, outer, inner = port.split(":")
    assert host == "127.0.0.1"
    assert f"http://127.0.0.1:{inner}/health" in found["healthcheck"]["test"]
    assert outer in {"vllm": "8000", "llama-cpp": section_of(path)}[path.parent.name]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_the_commands_at_the_top_are_those_of_the_docs_and_name_every_variable_that_must_be_set(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    shown = [line.removeprefix("#   ") for line in text.splitlines() if line.startswith("#   ")]
    assert len(shown) == 3
    for line in shown:
        assert f"$ {line}\n" in section_of(path)
    for name in re.findall(r"\$\{(\w+):\?", text):
        assert f"{name}=" in shown[0]
    assert str(path.relative_to(ROOT)) in shown[0]
