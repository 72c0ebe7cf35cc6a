"""The size and shape of the package: budgets of lines per wing are in `pyproject.toml`, under `[tool.house]`."""

import ast
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "pcs_annotator"
FILES = sorted(SOURCE.rglob("*.py"))
HOUSE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["house"]
LINES = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
WITHOUT_A_NOUN = {"one", "found", "given", "read", "said", "told", "known", "place", "own"}


def test_no_wing_is_over_its_budget() -> None:
    wings = Counter[str]()
    for path, lines in LINES.items():
        wing = path.relative_to(SOURCE).parts[0]
        wings[wing if not wing.endswith(".py") else "top"] += lines
    assert wings.keys() == HOUSE["lines"].keys()
    assert {wing: lines for wing, lines in wings.items() if lines > HOUSE["lines"][wing]} == {}


def test_files_are_neither_long_nor_many_of_them_tiny() -> None:
    assert {path.name: lines for path, lines in LINES.items() if lines > HOUSE["longest_file"]} == {}
    tiny = [path for path, lines in LINES.items() if lines < 30 and path.name != "__init__.py"]
    assert len(tiny) <= HOUSE["files_under_30_lines"], tiny


def test_names_carry_nouns() -> None:
    names = Counter[str]()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.arg):
                names[node.arg] += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names[node.name] += 1
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] += 1
    assert sum(names[name] for name in WITHOUT_A_NOUN) <= HOUSE["names_without_a_noun"]


def test_every_command_has_a_file_of_its_name() -> None:
    from pcs_annotator.faces.cli.main import VERBS

    there = {path.stem for path in (SOURCE / "faces" / "cli").glob("*.py")}
    assert set(VERBS) <= there


def test_no_file_name_is_there_twice_but_a_verb_and_its_command() -> None:
    where: dict[str, set[str]] = {}
    for path in FILES:
        if path.name != "__init__.py":
            where.setdefault(path.stem, set()).add(path.parent.relative_to(SOURCE).as_posix())
    twice = {name for name, folders in where.items() if len(folders) > 1 and folders != {"verbs", "faces/cli"}}
    assert twice == set()
