from __future__ import annotations

from pathlib import Path

import pytest

from pcs_annotator import __version__
from pcs_annotator.errors import TableError
from pcs_annotator.files.runs import RunFolder, write_json
from pcs_annotator.pipeline.run_folder import Origin, read_origin, write_page


def test_the_origin_names_version_and_file_but_not_the_folders_above(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write_json(folder.settings, {"version": "1.2.3", "data": "/home/somebody/news.csv"})
    assert read_origin(folder) == Origin("1.2.3", "news.csv")


def test_a_run_that_was_never_written_comes_from_here(tmp_path: Path) -> None:
    assert read_origin(RunFolder(tmp_path)) == Origin(__version__, "")


def test_a_page_is_written_whatever_its_characters(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", "é \ud800")
    assert (tmp_path / "page.html").read_bytes() == "é ?".encode()


def test_a_page_that_cannot_be_written_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="choose another place"):
        write_page(tmp_path / "file" / "page.html", "x")
