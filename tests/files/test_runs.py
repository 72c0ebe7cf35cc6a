from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pcs_annotator.errors import TableError
from pcs_annotator.files.runs import SCHEMA, atomic_path, read_json, write_json


def test_json_reads_back_with_its_schema_number(tmp_path: Path) -> None:
    write_json(tmp_path / "model.json", {"label": "naïve"})
    assert read_json(tmp_path / "model.json") == {"schema": SCHEMA, "label": "naïve"}


def test_missing_folders_are_made(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "b" / "model.json", {})
    assert (tmp_path / "a" / "b" / "model.json").exists()


def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    write_json(path, {"answer": 1})
    with pytest.raises(ValueError, match="nan"):
        write_json(path, {"answer": float("nan")})

    def fail_half_way() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half a fi")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert json.loads(path.read_text())["answer"] == 1
    assert os.listdir(tmp_path) == ["model.json"]


def test_results_are_readable_by_others_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_json(tmp_path / "model.json", {})
    finally:
        os.umask(before)
    assert (tmp_path / "model.json").stat().st_mode & 0o777 == 0o644


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match=r"file/model\.json"):
        write_json(tmp_path / "file" / "model.json", {})


def test_missing_broken_and_newer_files_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    with pytest.raises(TableError, match=r"no file .*model\.json"):
        read_json(path)
    path.write_text("{")
    with pytest.raises(TableError, match=r"model\.json cannot be read"):
        read_json(path)
    path.write_text(json.dumps({"schema": SCHEMA + 1}))
    with pytest.raises(TableError, match=f"newer.*schema {SCHEMA + 1}"):
        read_json(path)
