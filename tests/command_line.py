"""The command line as tests use it: a command, its exit code, and what it printed."""

import json
from typing import Any

import pytest

from pcs_annotator.faces.cli.main import main


class Pcs:
    """Runs a command in this process, and checks its exit code."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def out(self, *arguments: object, code: int = 0) -> str:
        """Return what a command prints."""
        self._capsys.readouterr()
        assert main([*map(str, arguments)]) == code
        return self._capsys.readouterr().out

    def __call__(self, *arguments: object, code: int = 0) -> str:
        """Return the words that a command prints, in one line."""
        return " ".join(self.out(*arguments, code=code).split())

    def json(self, *arguments: object, code: int = 0) -> Any:
        """Return what a command prints with `--json`, which may have no number that JSON lacks."""
        printed = self.out(*arguments, "--json", code=code)
        return json.loads(printed, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))

    def refused(self, *arguments: object) -> str:
        """Return why a command cannot be, in one line."""
        self._capsys.readouterr()
        assert main([*map(str, arguments)]) == 2
        error = self._capsys.readouterr().err
        assert "Traceback" not in error
        return " ".join(error.split())
