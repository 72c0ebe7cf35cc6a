"""`run`, `label` and `evaluate` from Python leave and return what the commands do."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcs_annotator import evaluate, label, run
from pcs_annotator.errors import ConfigError, GoldError
from tests.builders import simulated_votes

RELATIONS = ["original", "contraction", "frame"]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "posts.csv"
    rows = [f"{row},It's post number {row}.,{('good', 'bad')[row % 2]}" for row in range(30)]
    path.write_text("\n".join(["id,text,gold", *rows]) + "\n", encoding="utf-8")
    return path


def test_a_run_from_python_leaves_labels_model_and_report(data: Path) -> None:
    result = run(str(data), models=["scripted:hash"], relations=RELATIONS, optimiser="lr", limit=20)
    assert result.folder.path == Path("runs/posts")
    assert len(result.outcomes) == 20
    for path in (result.folder.labels, result.folder.model, result.folder.report):
        assert path.stat().st_size
    again = run(data, models=["scripted:hash"], relations=RELATIONS, optimiser="lr", limit=20)
    assert again.tally.calls == 0
    assert again.tally.from_ledger == result.tally.calls


def test_a_config_file_is_read_where_named_and_arguments_win(data: Path) -> None:
    Path("pcs.toml").write_text('[ask]\nmodels = ["scripted:hash"]\n[relations]\nuse = ["original"]\n')
    with pytest.raises(ConfigError, match="model"):
        run(data)
    result = run(data, "here", config="pcs.toml", relations=["original", "frame"])
    assert result.votes.relations == ("original", "frame")
    assert result.folder.path == Path("here")


def test_new_texts_are_labelled_with_a_fitted_run(data: Path) -> None:
    run(data, "here", models=["scripted:hash"], relations=RELATIONS, optimiser="lr")
    found = label(data, "here", ask_all=True, limit=5)
    assert len(found.outcomes) == 5
    assert found.out == data.with_name("posts-labels.csv")
    assert found.out.exists()


def test_votes_are_evaluated_with_the_methods_named() -> None:
    votes, gold = simulated_votes([0.9, 0.7], items=60)
    found = evaluate(votes, gold, ["lr", "majority"], repeats=1, resamples=50)
    assert [one.method for one in found.evaluation.methods] == ["lr", "majority"]
    with pytest.raises(GoldError, match="no gold"):
        evaluate(votes, [None] * 60, ["lr"])


@pytest.mark.parametrize("call", [run, lambda data, **wrong: label(data, "here", **wrong)])
def test_an_unknown_setting_is_refused_with_those_that_exist(call: object, data: Path) -> None:
    with pytest.raises(ConfigError, match="modles"):
        call(data, modles=["scripted:hash"])  # type: ignore[operator]  # either of two functions


def test_a_single_text_is_no_list_of_labels(data: Path) -> None:
    with pytest.raises(ConfigError, match="labels"):
        run(data, labels="good", models=["scripted:hash"])
