"""Snippets in documentation and examples in docstrings run, links lead somewhere, generated pages are up to date."""

import ast
import doctest
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType

import click
import pytest

import pcs_annotator
from pcs_annotator.faces.cli.main import main, pcs
from pcs_annotator.runs.settings import Config
from pcs_annotator.verbs.relations import try_relation
from tests.stub import stub_process

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "pcs_annotator"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPETS = [
    pytest.param(snippet, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, snippet in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]
# Only modules with examples are listed, because importing all modules in every test process takes seconds.
MODULES_WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
# Loads once what snippets need, and then runs each snippet in a process of its own, which is forked and so is fast.
RUNNER = """
import json, os, sys, traceback
import sklearn.model_selection, sklearn.pipeline
import pcs_annotator
from pcs_annotator.relations.language import known_language

for name in pcs_annotator.__all__:
    getattr(pcs_annotator, name)
known_language("A text, so that the language model is loaded.")
for line in sys.stdin:
    snippet, folder = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), number)
        code = 0
        try:
            exec(compile(snippet, "snippet", "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def run_snippet() -> Iterator[Callable[[str, Path], int]]:
    """Run a snippet in a folder, where `stdout` and `stderr` are written, and return the exit code."""
    with subprocess.Popen(
        [sys.executable, "-c", RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as runner:
        asked, answered = runner.stdin, runner.stdout
        assert asked is not None
        assert answered is not None

        def run(snippet: str, folder: Path) -> int:
            print(json.dumps([snippet, str(folder)]), file=asked, flush=True)
            return int(answered.readline())

        yield run
        asked.close()


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_python_snippet_runs(snippet: str, run_snippet: Callable[[str, Path], int], tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    # a process of its own, so that plug-ins registered by one snippet do not reach other tests
    code = run_snippet(snippet, tmp_path)
    assert code == 0, (tmp_path / "stderr").read_text(encoding="utf-8")
    assert (tmp_path / "stdout").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MODULES_WITH_EXAMPLES)
def test_every_example_in_a_docstring_shows_what_is_returned(name: str) -> None:
    failed, tried = doctest.testmod(import_module(name))
    assert tried
    assert not failed


@pytest.mark.parametrize("script", ["cli_docs.py", "config_docs.py", "scaling_docs.py"])
def test_generated_page_is_up_to_date(script: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", ["design/index.md", "extending.md", "one-text.md"])
def test_files_named_by_a_page_exist(page: str) -> None:
    missing = [path for path in named_files(page) if not (PACKAGE / path).exists()]
    assert not missing


def test_one_text_passes_through_every_file_that_its_page_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{row},Sentence number {row} is about the weather.,{'good' if row % 2 else 'bad'}" for row in range(20)]
    (tmp_path / "texts.csv").write_text("\n".join(["id,text,gold", *rows, "z,The last one has no gold label.,"]) + "\n")
    (tmp_path / "pcs.toml").write_text('[learn]\noptimiser = "lr"\nresamples = 0\n')
    monkeypatch.chdir(tmp_path)
    visited: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            visited.add(frame.f_code.co_filename)

    with stub_process() as server:
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            code = main(["run", "texts.csv", "--model", f"{server.url}#m", "--relations", "original,rule:frame", "-q"])
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert code == 0
    page = (ROOT / "docs" / "one-text.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\d+\. `(\S+)`", page, re.MULTILINE)
    assert len(listed) == 25
    assert [path for path in listed if str(PACKAGE / path) not in visited] == []


def named_files(page: str) -> set[str]:
    """Return the files and folders of the package that a page names in code style, such as `core/bill.py`."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    folders = "|".join(path.name for path in PACKAGE.iterdir() if path.is_dir())
    return set(re.findall(rf"`((?:{folders})/[\w/.]*)`", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_the_page_on_asking_shows_what_the_rules_do() -> None:
    page = (ROOT / "docs" / "ask.md").read_text(encoding="utf-8")
    sentence = re.search(r"the sentence \*(.+?)\*\n", page)
    rows = re.findall(r"^\| `(rule:[\w-]+)` \| (.+?) \|$", page, re.MULTILINE)
    assert sentence is not None
    assert len(rows) == 3
    for name, shown in rows:
        assert try_relation(name, sentence[1], Config()).variant.text == shown


def test_the_page_about_python_shows_every_public_name_in_an_example() -> None:
    elsewhere = {"compare": "trust.md", "estimate": "conclude.md"}
    for name in pcs_annotator.__all__:
        page = (ROOT / "docs" / elsewhere.get(name, "python.md")).read_text(encoding="utf-8")
        examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        assert any(re.search(rf"\b{name}\b", example) for example in examples), name


def test_the_documentation_stays_short_enough_to_read() -> None:
    """A new page has to say something that no page says yet; records of measurements go to benchmarks/results."""
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in PAGES if page.parent.name != "reference"}
    assert sum(words.values()) <= 30_000
    assert words[ROOT / "README.md"] <= 600
    assert words[ROOT / "docs" / "tutorial.md"] <= 1_500
    assert all(words[ROOT / "docs" / f"{name}.md"] <= 2_500 for name in ("ask", "trust", "review", "conclude", "scale"))


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        assert found is not None
        yield (*path, name), found
        yield from commands(found, *path, name) if isinstance(found, click.Group) else ()


def texts_for_people() -> Iterator[str]:
    """Yield the pages, and every string of the package."""
    yield from (page.read_text(encoding="utf-8") for page in PAGES)
    sources = (path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    for node in (node for source in sources if "pcs " in source for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_commands_and_options_named_in_pages_and_messages_exist() -> None:
    known = dict(commands(pcs))
    # up to the end of the line, the code or the sentence; with "on" and "wrote", it is a sentence about pcs
    named = re.compile(r"\bpcs (?!on\b|wrote\b)([a-z][a-z-]*)(?: ([a-z]+)\b)?((?:(?!\bpcs |[.,]\s)[^\n`|;#\"])*)")
    for found in (one for text in texts_for_people() for one in named.finditer(text)):
        name, second, more = found.groups()
        command = known.get((name, second) if second and isinstance(known.get((name,)), click.Group) else (name,))
        assert command is not None, found[0]
        options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
        assert {*re.findall(r"(?<= )--[a-z-]+", more)} <= {*options, "--help"}, found[0]


def test_the_reference_lists_every_public_name() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    missing = [name for name in pcs_annotator.__all__ if not re.search(rf"\b{name}\b", page)]
    assert missing == []
