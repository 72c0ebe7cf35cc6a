"""From a table of one's own to labels learned from ten reviewed rows: each command is shown by the one before."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator.faces.cli.demo import NEXT
from pcs_annotator.faces.cli.main import main
from pcs_annotator.faces.web import server
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions
from tests.reviewing.reviewing import judge
from tests.simulated import simulated_models, write_texts

README = Path(__file__).parents[3] / "README.md"


def test_the_readme_begins_with_the_commands_of_the_path() -> None:
    commands = re.findall(r"^\$ pcs (\w+) ?(\S*)", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name, _ in commands][:5] == ["demo", "plan", "run", "review", "fit"]
    assert NEXT.startswith("pcs run ")  # the demo leads on


def test_every_command_shows_the_next_one_until_ten_reviewed_rows_are_learned_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_texts(Path("texts.csv"), range(40))
    (tmp_path / "pcs.toml").write_text("[learn]\nresamples = 5\n", encoding="utf-8")

    async def served(app: Any, listening: Any, say: Any, **more: Any) -> None:
        """Stand for a page that is closed again; the verdicts are given below."""

    monkeypatch.setattr(server, "serve", served)
    line = "pcs plan texts.csv --labels good,bad --model simulated:large@90"
    walked: list[str] = []
    with simulated_models():
        while len(walked) < 4:
            name, *given = shlex.split(line, comments=True)[1:]
            more = ["--no-browser", "--port", "0"] if name == "review" else []
            assert main([name, *given, *more]) == 0
            walked.append(name)
            if name == "review":
                with Review.open(Path(given[0]), ReviewOptions(refit_every=0)) as review:
                    for _ in range(10):
                        judge(review, "random", lambda row: "good" if "good" in row.text else "bad")
            printed = capsys.readouterr()
            (line,) = re.findall(r"^next +(pcs .*)$", printed.out + printed.err, re.MULTILINE)
    assert walked == ["plan", "run", "review", "fit"]
    assert "10 gold rows" in " ".join(printed.out.split())
