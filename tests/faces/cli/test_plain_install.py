"""An install without extras: what is missing is named before anything is asked, downloaded or written."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

HIDDEN = (
    "fsspec", "ipywidgets", "langchain", "langchain_core", "psycopg", "ray",
    "sklearn", "starlette", "tokenizers", "torch", "tqdm", "transformers", "uvicorn", "zstandard",
)  # fmt: skip
ASK = ["data.csv", "--labels", "good,bad", "--model"]
SCRIPTED = [*ASK, "scripted:hash"]
NEEDS = {
    "local": [["demo"], ["run", *ASK, "embedded:smollm2"], ["models", "check", "embedded:smollm2"]],
    "langchain": [["run", *ASK, "langchain:openai:gpt-4o"]],
    "transformers": [["run", *ASK, "transformers:Qwen/Qwen3-0.6B"]],
    "ray": [["run", *SCRIPTED, "--executor", "ray"]],
    "postgres": [["run", *SCRIPTED, "--ledger", "postgresql://127.0.0.1/none"]],
    "remote": [["run", "s3://bucket/data.csv", *SCRIPTED[1:]]],
    "web": [["review", "run"], ["serve", "run"]],
}
PLAIN = f"""
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

class Installed:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in {HIDDEN!r} else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Installed]
from pcs_annotator.base.errors import MissingPackage
from pcs_annotator.faces.cli.main import main

found = []
for command in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(command)
    found.append([code, out.getvalue() + err.getvalue()])
try:
    from pcs_annotator import PCSClassifier
except MissingPackage as error:
    found.append([2, str(error)])
found.append([main(["run", {", ".join(map(repr, SCRIPTED))}, "-q", "-o", "works"]), "nothing"])
print(json.dumps(found))
"""


def test_what_is_missing_is_named_before_anything_is_asked_downloaded_or_written(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("text\nThe bus is new.\nThe bus is old.\n", encoding="utf-8")
    commands = [(extra, command) for extra, some in NEEDS.items() for command in some]
    given = json.dumps([command for _, command in commands])
    ran = subprocess.run(
        [sys.executable, "-c", PLAIN, given], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    *found, classifier, working = json.loads(ran.stdout)
    for (extra, command), (code, said) in zip(commands, found, strict=True):
        shown = " ".join(said.split())
        assert code == 2, (command, said)
        assert f"pip install 'perceived-confidence[{extra}]'" in shown, (command, said)
        assert shown.count("error") <= 1
        assert "calls" not in shown
    assert classifier == [2, "PCSClassifier needs the extra sklearn: pip install 'perceived-confidence[sklearn]'"]
    assert working[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "works"]
