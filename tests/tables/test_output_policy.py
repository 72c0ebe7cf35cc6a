"""Files that somebody names are never written over."""

from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.output_policy import PAGES, OutputPolicy
from pcs_annotator.tables.table_files import STDIO
from pcs_annotator.tables.table_writer import TableStyle

TABLE = pa.table({"text": ["=1+1"]})


def test_a_file_that_exists_is_an_error_before_and_when_it_is_written(tmp_path: Path) -> None:
    policy, out = OutputPolicy(), tmp_path / "page.html"
    policy.check(out, PAGES)
    policy.write_page(out, "first")
    for again in (lambda: policy.check(out, PAGES), lambda: policy.write_page(out, "second")):
        with pytest.raises(TableError, match=r"page\.html exists: name another file with -o, or add --replace"):
            again()
    assert out.read_text() == "first"


def test_with_replace_the_earlier_file_is_kept_under_a_dated_name(tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    out.write_text("mine")
    OutputPolicy(replace=True, style=TableStyle(spreadsheet_safe=True)).write_table(out, TABLE)
    assert out.read_text().split() == ["text", "'=1+1"]
    assert [kept.read_text() for kept in tmp_path.glob("table-20*.csv")] == ["mine"]


def test_the_same_holds_at_an_address() -> None:
    system = fsspec.filesystem("memory")
    system.pipe("/policy/out.csv", b"mine")
    with pytest.raises(TableError, match=r"memory://policy/out\.csv exists"):
        OutputPolicy().check("memory://policy/out.csv")
    kept = OutputPolicy(replace=True).make_way("memory://policy/out.csv")
    assert kept is not None
    assert system.cat(str(kept).removeprefix("memory:/")) == b"mine"
    system.rm("/policy", recursive=True)


def test_a_file_that_is_read_is_not_written_even_with_replace(tmp_path: Path) -> None:
    out = tmp_path / "data.csv"
    out.write_text("text\n")
    with pytest.raises(TableError, match=r"data\.csv is read here"):
        OutputPolicy(replace=True).check(out, inputs=[None, out])


def test_standard_output_is_never_in_the_way() -> None:
    OutputPolicy().check(Path(STDIO))
    assert OutputPolicy().make_way(Path(STDIO)) is None
