"""What the documentation shows is executed, and what it says about the commands is theirs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pcs_annotator.pipeline.relations import RelationChoice, try_relation

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPETS = [
    pytest.param(snippet, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, snippet in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_python_snippet_runs(snippet: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    # a process of its own, so that plug-ins registered by one snippet do not reach other tests
    result = subprocess.run([sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_command_line_page_is_what_the_commands_say() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "cli_docs.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_the_page_on_rewrites_shows_what_the_rules_do() -> None:
    page = (ROOT / "docs" / "relations.md").read_text(encoding="utf-8")
    sentence = re.search(r"On the sentence \*(.+?)\*\n", page)
    rows = re.findall(r"^\| `(rule:[\w-]+)` \| (.+?) \|$", page, re.MULTILINE)
    assert sentence is not None
    assert len(rows) == 8
    for name, shown in rows:
        assert try_relation(name, sentence[1], RelationChoice(folder=ROOT / "docs")).text == shown
