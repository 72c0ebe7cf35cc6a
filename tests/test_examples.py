"""Examples run; compose files are valid, stay on this machine, and the README explains every flag in them."""

import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
DOCS = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
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


def in_r(*given: str) -> subprocess.CompletedProcess[str]:
    if (r := shutil.which("Rscript")) is None:
        pytest.skip("R is not installed")
    script = ROOT / "examples" / "r" / "dsl.R"
    return subprocess.run([r, str(script), *given], capture_output=True, text=True, timeout=120, check=False)


def test_the_recipe_for_r_reads_labels_and_calls_dsl(tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    rows = [f'{row},"A text, {row}.",{"Good" if row % 3 else "bad"},{row / 60},{1990 + row}' for row in range(40)]
    more = [f"{row},Another.,,0.5,{1990 + row}" for row in range(40, 60)]
    table.write_text("\n".join(["id,text,gold,p_good,year", *rows, *more]) + "\n", encoding="utf-8")
    found = in_r(str(table), "good", "year")
    assert "60 rows, 40 with a label of a person" in found.stdout
    # where the package is missing, everything up to it has run
    assert found.returncode == 0 or "the package dsl is missing" in found.stderr
    assert "the table has no column p_ugly" in in_r(str(table), "ugly", "year").stderr
    assert "give three arguments" in in_r(str(table)).stderr


def test_passages_and_sums_are_quoted_from_the_letters_without_a_model(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "passages" / "offline.py")]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    folder = tmp_path / "runs" / "letters"
    assert str(folder.relative_to(tmp_path) / "report.html") in found.stdout
    assert (folder / "report.html").is_file()
    letters = rows_of(folder / "labels.csv")
    assert len(letters) == 90
    assert sum(bool(letter["matters"]) and bool(letter["amount"]) for letter in letters) == 60
    for name, least in (("matters", 100), ("amount", 24)):
        decided = [(row["decision"], row["gold"]) for row in rows_of(folder / "variables" / name / "passages.csv")]
        right, wrong = decided.count(("accept", "yes")), decided.count(("accept", "no"))
        assert right >= least
        assert wrong <= 0.2 * (right + wrong)  # what pcs.toml asks for


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
