from pathlib import Path

import pytest

from pcs_annotator.base.errors import PcsError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.studies.estimating.find import Search, find
from pcs_annotator.studies.estimating.gold import draw_gold
from tests.simulated import copy_run, read_csv
from tests.studies.estimating.made import make_run, truth
from tests.studies.estimating.test_gold import label


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("find"), gold_rows=150, rows=300)


def test_rows_are_found_and_written(made: Path, tmp_path: Path) -> None:
    found = find(made, Search(label="good", recall=0.8), tmp_path / "found.csv")
    rows = read_csv(tmp_path / "found.csv")
    assert len(rows) == len(found.rows)
    chances = [float(row["p_good"]) for row in rows]
    assert chances == sorted(chances, reverse=True)
    assert min(chances) >= found.threshold - 1e-6
    everything = [row for row in read_csv(made / "labels.csv") if truth(row) == "good"]
    assert sum(truth(row) == "good" for row in rows) / len(everything) > 0.75
    assert "at least 0.8 of all rows that are good" in found.sentence


def test_both_promises_may_be_kept(made: Path) -> None:
    both = find(made, Search(label="good", recall=0.5, precision=0.6))
    assert both.recall is not None
    assert both.precision is not None
    assert both.threshold == both.precision.least <= both.recall.least
    assert "of those found, at least 0.6 are good" in both.sentence
    assert both.to_dict()["rows"] == len(both.rows)


@pytest.mark.parametrize(
    ("search", "why"),
    [
        (Search(label="nice", recall=0.8), "'nice' is no label; the labels are good, bad"),
        (Search(label="good"), "say what to promise: --recall .9, --precision .9, or both"),
        (Search(label="good", recall=0.99), "a recall of 0.99 needs 230, none of them missed"),
        (Search(label="good", precision=0.995), "no threshold has a precision of 0.995"),
        (Search(label="good", recall=0.93, precision=0.9), "no threshold has both|no threshold has a precision"),
    ],
)
def test_what_cannot_be_promised_says_why(made: Path, search: Search, why: str) -> None:
    with pytest.raises(PcsError, match=why):
        find(made, search)


def test_rows_drawn_by_confidence_cannot_promise_this(made: Path, tmp_path: Path) -> None:
    folder = copy_run(made, tmp_path / "run")
    draw_gold(folder, 40, "confidence")
    label(folder)
    with pytest.raises(PcsError, match="needs a simple random sample"):
        find(folder, Search(label="good", recall=0.8))


def test_the_command_says_what_is_promised(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "found.xlsx")
    assert main(["find", str(made), "--label", "good", "--recall", ".8", "-o", out]) == 0
    assert "rows, certainty 0.9: at least 0.8 of all rows that are good" in capsys.readouterr().out
    assert main(["find", str(made), "--label", "good", "--precision", ".7", "--json"]) == 0
    assert '"threshold"' in capsys.readouterr().out
