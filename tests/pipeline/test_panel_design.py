from __future__ import annotations

from pathlib import Path

import pytest

from pcs_annotator.errors import ConfigError, GoldError, UnknownNameError
from pcs_annotator.files.tables import write_table
from pcs_annotator.pipeline.evaluate import is_free
from pcs_annotator.pipeline.panel_design import DesignRequest, PanelDesign, design
from tests.builders import simulated_votes
from tests.simulated import MODELS, simulated_models, simulated_run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    votes, gold = simulated_votes([0.9, 0.5], items=40, relations=2)
    written = votes.to_table("wide")
    write_table(tmp_path / "votes.csv", written.append_column("gold", [gold]))
    return tmp_path / "votes.csv"


def request(source: Path, budget: float = 2, **more: object) -> DesignRequest:
    return DesignRequest(**{"source": source, "budget": budget, "prices": {}, **more})  # type: ignore[arg-type]  # any


def cost_of(found: PanelDesign) -> float:
    return found.designed.chosen.cost


def test_a_panel_within_the_budget_asks_the_better_model(table: Path) -> None:
    found = design(request(table))
    assert cost_of(found) <= 2
    assert found.gold_rows == 40
    names = found.cells(found.designed.chosen)
    assert next(iter(names))[0] == "model-0"
    assert sum(names.values()) == len(found.designed.chosen.cells)


def test_in_a_table_what_no_model_can_have_written_is_free(table: Path) -> None:
    renamed = table.with_name("order.csv")
    renamed.write_text(table.read_text(encoding="utf-8").replace("|voice", "|order"), encoding="utf-8")
    costs = [
        [panel.cost for panel in design(asked).designed.curve]
        for asked in (request(renamed, 3), request(table, 3, free=["voice"]))
    ]
    assert costs[0] == costs[1]
    assert max(costs[0]) == 3


@pytest.mark.parametrize(
    ("name", "free"),
    [
        ("original", True), ("order", True), ("wording:2", True), ("case", True), ("rule:voice", True),
        ("case+typo", True), ("voice", False), ("llm:voice", False), ("rule:voice|llm:voice", False), ("mine", False),
    ],
)  # fmt: skip
def test_a_name_tells_whether_a_model_may_have_rewritten(name: str, free: bool) -> None:
    assert is_free(name) is free


def test_a_free_relation_leaves_more_of_the_budget(table: Path) -> None:
    paid, free = design(request(table, 3)), design(request(table, 3, free=["voice"]))
    assert len(free.designed.curve[-1].cells) >= len(paid.designed.curve[-1].cells)
    assert free.designed.curve[-1].cost <= 3


def test_prices_of_annotators_count(table: Path) -> None:
    found = design(request(table, 2, prices={"model-0": 5.0}))
    assert {annotator for annotator, _ in found.cells(found.designed.chosen)} == {"model-1"}


@pytest.mark.parametrize(
    ("more", "error", "complaint"),
    [
        ({"prices": {"nobody": 1.0}}, UnknownNameError, "nobody"),
        ({"free": ["voise"]}, UnknownNameError, "voise"),
        ({"budget": 0}, ConfigError, "budget of 0"),
    ],
)
def test_a_wrong_name_or_budget_is_refused(
    more: dict[str, object], error: type[Exception], complaint: str, table: Path
) -> None:
    with pytest.raises(error, match=complaint):
        design(request(table, **more))  # type: ignore[arg-type]  # one of several settings


def test_without_gold_nothing_can_be_designed(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("id,a|original\n1,yes\n2,no\n")
    with pytest.raises(GoldError, match=r"votes\.csv"):
        design(request(tmp_path / "votes.csv"))


def test_in_a_run_relations_made_by_rules_are_free(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=40, gold_rows=40)
    with simulated_models():
        found = design(request(tmp_path / "run", 4))
        assert max(panel.cost for panel in found.designed.curve) <= 4
        assert found.votes.annotators == MODELS
        assert any(relation == "frame" for panel in found.designed.curve for _, relation in found.cells(panel))
        assert all(panel.cost == len(panel.cells) for panel in found.designed.curve)


def test_a_run_without_gold_cannot_be_designed_from(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=20, gold_rows=0)
    with simulated_models(), pytest.raises(GoldError, match="gold"):
        design(request(tmp_path / "run"))
