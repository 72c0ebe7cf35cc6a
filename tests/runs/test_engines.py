"""Every example of the page on scaling, with the engine it is about, against `label_table` itself."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from pcs_annotator import load_run, run
from tests.ray_cluster import start_ray

pytestmark = pytest.mark.system  # whole runs, one after the other

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
EXAMPLES = dict(re.findall(r'```python title="(.*?)"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL))
ROWS = 300


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a model that answers alike in every process, and rows to label."""
    folder = tmp_path_factory.mktemp("engines")
    texts = [f"Review number {row} of the hotel." for row in range(ROWS)]
    gold = [("good", "bad")[row % 2] if row < 60 else None for row in range(80)]
    parquet.write_table(pa.table({"text": texts[:80], "gold": gold}), folder / "data.parquet")
    out = folder / "runs" / "reviews"
    run(folder / "data.parquet", out, models=["scripted:hash"], relations=["original", "frame"], optimiser="lr")
    words: list[str | None] = [*texts]
    words[5] = None
    parquet.write_table(pa.table({"number": range(ROWS), "text": words}), folder / "reviews.parquet", row_group_size=64)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of them, where examples run."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def expected(made: Path) -> Iterator[pa.Table]:
    with load_run(made / "runs" / "reviews") as loaded:
        yield loaded.label_table(parquet.read_table(made / "reviews.parquet"))


def shown(name: str) -> dict[str, Any]:
    """Run an example of the page and return its variables."""
    variables: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(EXAMPLES[name], name, "exec"), variables)
    return variables


def plain(table: Any) -> list[dict[str, Any]]:
    """Return rows that can be compared whatever types an engine has for texts."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return sorted(rows, key=lambda row: row["number"])


def test_a_row_without_text_says_so(folder: Path) -> None:
    variables = shown("any pyarrow table")
    first, second = variables["labelled"].to_pylist()
    assert (first["pcs_error"], second["pcs_error"]) == (None, "no text")
    variables["run"].close()


def test_polars(folder: Path, expected: pa.Table) -> None:
    pytest.importorskip("polars")
    variables = shown("Polars")
    assert variables["labelled"].to_arrow().to_pylist() == expected.to_pylist()
    variables["run"].close()


def test_duckdb(folder: Path, expected: pa.Table) -> None:
    pytest.importorskip("duckdb")
    variables = shown("DuckDB")
    assert plain(variables["labelled"]) == plain(expected)
    variables["connection"].close()
    variables["run"].close()


@pytest.mark.slow
@pytest.mark.enable_socket  # Ray's own address is that of the machine
@pytest.mark.filterwarnings("ignore")  # Ray Data warns about itself
def test_ray_data(folder: Path, expected: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "Ray Data"
    start_ray()
    # the cluster's processes may work in another folder than this test
    placed = re.sub(r'"(?:/data/)?(runs/reviews|reviews.parquet|labelled)"', rf'"{folder}/\1"', EXAMPLES[name])
    monkeypatch.setitem(EXAMPLES, name, placed)
    shown(name)
    assert plain(parquet.read_table(folder / "labelled")) == plain(expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_spark(folder: Path, expected: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    variables = shown("Spark")
    assert plain(parquet.read_table(folder / "labelled")) == plain(expected)
    variables["spark"].stop()


@pytest.mark.slow
def test_daft(folder: Path, expected: pa.Table) -> None:
    pytest.importorskip("daft")
    variables = shown("Daft")
    assert plain(parquet.read_table(folder / "labelled")) == plain(expected)
    variables["run"].close()
