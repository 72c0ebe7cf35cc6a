from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.parquet import read_table, write_table

from pcs_annotator.files.runs import read_json, write_json
from pcs_annotator.pipeline.evaluate import EvaluateRequest, RecordedVotes, Splitting, evaluate_source
from pcs_annotator.pipeline.panel_design import DesignRequest, design
from tests.simulated import simulated_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    simulated_run(folder, rows=40, gold_rows=40)
    return folder / "run"


def run_with(made: Path, folder: Path, spec: str, name: str, **relations: object) -> Path:
    """Copy a run as if its second relation had been `spec`, recorded as `name`."""
    shutil.copytree(made, folder)
    start = read_json(folder / "run.json")
    start["relations"] = ["original", name]
    start["config"]["relations"] |= {"use": ["original", spec], **relations}
    write_json(folder / "run.json", start)
    votes = read_table(folder / "votes.parquet").to_pylist()
    renamed = [{**vote, "relation": vote["relation"].replace("frame", name)} for vote in votes]
    write_table(pa.Table.from_pylist(renamed), folder / "votes.parquet")
    return folder


@pytest.mark.parametrize("spec", ["cleft", "rule:attribution", "cleft+frame"])
def test_a_run_with_a_relation_that_was_removed_is_still_evaluated_and_designed_from(
    spec: str, made: Path, tmp_path: Path
) -> None:
    folder = run_with(made, tmp_path / "run", spec, spec)
    request = EvaluateRequest(source=folder, methods=["lr", "uniform"], splitting=Splitting(folds=2, resamples=5))
    found = evaluate_source(request)
    assert found.votes.relations == ("original", spec)
    assert [method.calls.rewrites for method in found.evaluation.methods] == [0, 0]
    designed = design(DesignRequest(source=folder, budget=2, prices={}))
    assert all(panel.cost == len(panel.cells) for panel in designed.designed.curve)


def test_a_removed_rule_before_a_model_leaves_a_relation_that_a_model_wrote(made: Path, tmp_path: Path) -> None:
    name = "rule:cleft/llm:voice"
    folder = run_with(made, tmp_path / "run", "rule:cleft|llm:voice", name, rewriter="scripted:hash")
    assert RecordedVotes.read(folder).rewritten == {name}


def test_a_users_relation_may_have_the_name_of_a_removed_one(made: Path, tmp_path: Path) -> None:
    own = {"cleft": {"prompt": "Rewrite it: {text}", "expects": {}}}
    folder = run_with(made, tmp_path / "run", "cleft", "cleft", rewriter="scripted:hash", own=own)
    assert RecordedVotes.read(folder).rewritten == {"cleft"}
