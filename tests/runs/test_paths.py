import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pcs_annotator.base.errors import TableError
from pcs_annotator.runs.draw_registry import has_results
from pcs_annotator.runs.paths import Origin, RunFolder, read_origin, write_start
from pcs_annotator.tables.files import (
    SCHEMA,
    atomic_path,
    clear_leftovers,
    read_json,
    set_aside,
    write_json,
    write_page,
)
from tests.simulated import simulated_run


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


def test_what_is_set_aside_keeps_its_contents_and_extension_under_a_dated_name(tmp_path: Path) -> None:
    kept = []
    for text in ("first", "second"):  # within one second, so that the date alone would not tell them apart
        (tmp_path / "labels.csv").write_text(text)
        kept.append(set_aside(tmp_path / "labels.csv"))
    assert [path.read_text() for path in kept] == ["first", "second"]
    assert all(path.name.startswith("labels-20") and path.suffix == ".csv" for path in kept)
    assert not (tmp_path / "labels.csv").exists()


def test_what_cannot_be_set_aside_is_explained(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="rename it yourself"):
        set_aside(tmp_path / "missing.csv")


def test_results_are_set_aside_together_and_an_interruption_loses_none(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    (tmp_path / "earlier").mkdir()  # as an interruption left it
    (tmp_path / "earlier" / "votes.parquet").write_text("old votes")
    stays = (folder.ledger, folder.batches, tmp_path / "notes.txt")
    folder.own_folder.mkdir(parents=True)
    for path in (folder.votes, folder.draws, folder.labels, folder.stream, folder.book, *stays):
        path.write_text(path.name)
    assert has_results(folder)
    kept = folder.set_results_aside()
    assert sorted(path.name for path in kept.iterdir()) == [
        *("book.json", "draws.jsonl", "labels.csv", "stream.db", "variables")
    ]
    assert not has_results(folder)
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {one.name for one in stays}
    texts = [path.read_text() for path in tmp_path.glob("earlier-*/**/votes.parquet")]
    assert sorted(texts) == ["old votes", "votes.parquet"]


def test_temporary_files_of_dead_processes_are_cleared_and_no_others(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone = [f".labels.csv.{dead.pid}-abcd_123.csv", ".variants.parquet.999999999-9xohjp1x.parquet"]
    kept = [".labels.csv", ".env", ".hidden.csv.notes.csv", "labels.csv"]
    for name in (*gone, *kept):
        (tmp_path / name).touch()
    with atomic_path(tmp_path / "evaluation-methods.json") as own:
        clear_leftovers(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {own.name, *kept}
        own.write_text("{}", encoding="utf-8")


def test_a_run_clears_what_a_killed_one_left(tmp_path: Path) -> None:
    result = simulated_run(tmp_path, rows=12, gold_rows=6)
    leftover = result.folder.path / ".variants.parquet.999999999-9xohjp1x.parquet"
    leftover.touch()
    simulated_run(tmp_path, rows=12, gold_rows=6)
    assert not leftover.exists()


def test_the_origin_names_version_and_file_but_not_the_folders_above(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write_start(folder, {"version": "1.2.3", "data": "/home/somebody/news.csv"})
    assert read_origin(folder) == Origin("1.2.3", "news.csv")


def test_a_page_is_written_whatever_its_characters(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", "é \ud800")
    assert (tmp_path / "page.html").read_bytes() == "é ?".encode()
