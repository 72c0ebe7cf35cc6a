from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.parquet import read_table, write_table

from pcs_annotator import PcsWarning
from pcs_annotator.judging.evaluate.scored import Splitting
from pcs_annotator.runs.paths import RunFolder, read_start, write_start
from pcs_annotator.verbs.evaluate import EvaluateRequest, evaluate_source
from tests.builders import simulated_votes
from tests.simulated import simulated_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    simulated_run(folder, rows=40, gold_rows=40)
    return folder / "run"


def run_with(made: Path, folder: Path, spec: str, name: str, **relations: object) -> Path:
    """Copy a run as if its second relation had been `spec`, recorded as `name`."""
    shutil.copytree(made, folder)
    start = read_start(RunFolder(folder))
    start["relations"] = ["original", name]
    start["config"]["relations"] |= {"use": ["original", spec], **relations}
    write_start(RunFolder(folder), start)
    votes = read_table(folder / "variables/label/votes.parquet").to_pylist()
    renamed = [{**vote, "relation": vote["relation"].replace("frame", name)} for vote in votes]
    write_table(pa.Table.from_pylist(renamed), folder / "variables/label/votes.parquet")
    return folder


def test_copies_of_a_text_are_evaluated_once(tmp_path: Path) -> None:
    votes, gold = simulated_votes([0.8, 0.6], items=40)
    gold[30:] = gold[:10]
    table = votes.to_table().append_column("gold", pa.array(gold))
    table = table.append_column("text", pa.array([f"Text {row % 30}" for row in range(40)]))
    write_table(table, tmp_path / "votes.parquet")
    request = EvaluateRequest(
        source=tmp_path / "votes.parquet", methods=["lr"], splitting=Splitting(folds=2, resamples=5)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PcsWarning)
        found = evaluate_source(request)
    assert any("10 gold rows repeat a text and count once" in str(one.message) for one in caught)
    assert found.evaluation.n == 30
