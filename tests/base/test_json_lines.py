from __future__ import annotations

import io
import json
import logging
import sys

import click
import pytest

from pcs_annotator.base.json_lines import JsonLines


def replaced(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    below = io.StringIO()
    monkeypatch.setattr(sys, "stderr", JsonLines(below))
    return below


def objects(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_every_line_is_an_object_with_time_level_and_message(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = replaced(monkeypatch)
    click.echo("warning: the disk is nearly full", err=True)
    click.echo("Error: no such option", err=True)
    print("wait", "ing for ü", sep="", file=sys.stderr)
    print("half", end="", file=sys.stderr)
    assert [(one["level"], one["message"]) for one in objects(stderr)] == [
        ("warning", "the disk is nearly full"),
        ("error", "no such option"),
        ("info", "waiting for ü"),
    ]
    assert all(str(one["time"]).endswith("+00:00") for one in objects(stderr))
    print("\n\n", file=sys.stderr)  # empty lines say nothing
    assert [one["message"] for one in objects(stderr)][3:] == ["half"]


def test_levels_of_the_log_and_fields_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = replaced(monkeypatch)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(name)s: %(message)s"))
    handler.emit(logging.LogRecord("pcs", logging.DEBUG, "", 0, "asked", (), None))
    stream = sys.stderr
    assert isinstance(stream, JsonLines)
    stream.note("3 rows", rows=3)
    assert [(one["level"], one["message"], one.get("rows")) for one in objects(stderr)] == [
        ("debug", "pcs: asked", None),
        ("info", "3 rows", 3),
    ]
    assert not stream.isatty()
