"""Estimates from a table of machine labels from anywhere."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pcs_annotator import PcsError, estimate
from pcs_annotator.base.errors import ConfigError, GoldError, TableError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.studies.estimating.estimates_page import answer_shown, page
from tests.simulated import write_csv

ROWS, GOLD = 1500, 240
RNG = np.random.default_rng(3)
PARTY = RNG.choice(["a", "b", "c"], ROWS)
TRUTH = RNG.random(ROWS) < 0.3
WRONG = RNG.random(ROWS) < np.where(TRUTH, 0.1, 0.25)
SAID = np.where(WRONG, ~TRUTH, TRUTH)
DRAWN = np.isin(np.arange(ROWS), RNG.choice(ROWS, GOLD, replace=False))
NAMES = np.array(["no", "yes"])


def made(**more: Any) -> dict[str, Any]:
    """Return a table with a machine that finds too many yes."""
    gold = np.where(DRAWN, NAMES[TRUTH.astype(int)], "")
    return {"machine": NAMES[SAID.astype(int)], "gold": gold, "party": PARTY, **more}


def of_table(table: dict[str, Any], **question: Any) -> Any:
    return estimate(pa.table(table), label="machine", gold="gold", **question)


def test_labels_from_anywhere_are_corrected_by_gold() -> None:
    (line,) = of_table(made(), of=["yes"]).lines
    low, high = line.corrected.interval
    assert low < TRUTH.mean() < high
    assert line.naive.value == pytest.approx(SAID.mean())
    assert not line.naive.interval.low <= TRUTH.mean() <= line.naive.interval.high
    assert high - low < 0.85 * (line.gold_only.interval.high - line.gold_only.interval.low)


def test_files_and_frames_and_the_command_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    table = made()
    file = write_csv(
        tmp_path / "labels.csv", [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    )
    found = estimate(file, label="machine", gold="gold", by="party", of=["yes"])
    assert found.lines == of_table(table, by="party", of=["yes"]).lines
    assert found.data == "labels.csv"
    asked = ["estimate", str(file), "--label", "machine", "--gold", "gold", "--of", "yes", "--by", "party"]
    assert main([*asked, "--json", "-o", str(tmp_path / "e.md")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["estimates"][0]["corrected"]["value"] == found.lines[0].corrected.value
    assert main([*asked, "--p-adjust", "bh", "-o", str(tmp_path / "bh.md")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "240 gold rows are assumed to be a simple random sample of the rows" in printed
    assert "next" not in printed
    assert "p (BH)" in (tmp_path / "bh.md").read_text(encoding="utf-8")
    assert main([*asked, "--p-adjust", "bh"]) == 0
    assert "--p-adjust bh -o estimates.html" in " ".join(capsys.readouterr().out.split())


def test_confidence_narrows_the_interval_in_any_unit() -> None:
    sure = np.where(WRONG, 50, 90) + RNG.normal(0, 8, ROWS)
    sure[:3] = np.nan
    (plain,) = of_table(made(), of=["yes"]).lines
    (better,) = of_table(made(sure=sure), of=["yes"], confidence="sure").lines
    (logs,) = of_table(made(sure=np.exp(sure / 10)), of=["yes"], confidence="sure").lines
    assert np.ptp(better.corrected.interval) < 0.8 * np.ptp(plain.corrected.interval)
    assert better.corrected.value == pytest.approx(logs.corrected.value, abs=0.01)


def test_columns_of_probabilities_are_used_if_all_machine_labels_have_one() -> None:
    chance = np.where(WRONG, 0.5, np.where(SAID, 0.9, 0.1))
    chance[5] = np.nan
    given = made(p_yes=chance, p_no=1 - chance)
    (plain,) = of_table(made(), of=["yes"]).lines
    found = of_table(given, of=["yes"])
    assert np.ptp(found.lines[0].corrected.interval) < 0.8 * np.ptp(plain.corrected.interval)
    assert any("must not be learned from these gold rows" in note for note in found.notes)
    # one of a label that the machine does not know is no label
    assert of_table(made(p_value=chance), of=["yes"]).lines == [plain]


def test_a_label_that_the_machine_never_gives_and_rows_without_a_label() -> None:
    table = made()
    table["gold"] = np.where(DRAWN & TRUTH & (PARTY == "a"), "rare", table["gold"])
    table["machine"] = np.where(np.arange(ROWS) % 10 == 0, "", table["machine"])
    found = of_table(table)
    assert [line.name for line in found.lines] == ["no", "rare", "yes"]
    rare = found.lines[1]
    assert rare.naive.value == 0
    low, high = rare.corrected.interval
    assert low < (TRUTH & (PARTY == "a")).mean() < high
    assert "the machine never says 'rare', and gold rows do" in found.notes
    assert "150 of 1,500 rows have no machine label: naive leaves them out" in found.notes


def test_notes_say_what_figures_are_about_and_what_a_cluster_changes() -> None:
    table = made(author=np.arange(ROWS) % 100)
    notes = of_table(table, by="party", cluster="author").notes
    assert any("differences about a larger whole" in note for note in notes)
    assert any("--cluster changes no corrected share" in note for note in notes)
    assert not any("--cluster" in note for note in of_table(table, cluster="author", larger=True).notes)


def test_rows_without_a_machine_label_have_no_naive_one() -> None:
    said = np.where(np.arange(ROWS) % 3 == 0, "", NAMES[SAID.astype(int)])
    found = of_table({**made(), "machine": said}, by="party")
    for line in found.lines:
        labels = said[(line.group == PARTY) & (said != "")]
        assert line.naive.value == pytest.approx(np.mean(labels == line.name))
    without = of_table({**made(), "machine": np.where(PARTY == "b", "", said)}, by="party")
    assert [(one.group, one.reason) for one in without.missing] == [("b", "no row of it has a machine label")]
    with pytest.raises(GoldError, match="no row has a machine label"):
        of_table({**made(), "machine": np.full(ROWS, "")})


@pytest.mark.parametrize("right", [1.0, 0.5])
def test_perfect_and_useless_machines(right: float) -> None:
    table = made()
    wrong = np.random.default_rng(1).random(ROWS) >= right
    table["machine"] = NAMES[np.where(wrong, ~TRUTH, TRUTH).astype(int)]
    (line,) = of_table(table, of=["yes"]).lines
    ours, alone = (np.ptp(one.interval) for one in (line.corrected, line.gold_only))
    assert line.corrected.interval.low < TRUTH.mean() < line.corrected.interval.high
    if right == 1:
        # an error that no gold row shows may still exist
        assert 0 < ours < 0.3 * alone
    else:
        assert line.tuning < 0.5
        assert ours == pytest.approx(alone, rel=0.05)


def test_spellings_of_a_spreadsheet_are_the_same_label() -> None:
    table = made()
    assert of_table({**table, "gold": np.char.upper(table["gold"])}).lines == of_table(table).lines


def test_probabilities_of_drawing_are_used() -> None:
    chance = np.where(SAID, 0.4, 0.1)
    drawn = np.random.default_rng(8).random(ROWS) < chance
    table = made(chance=chance)
    table["gold"] = np.where(drawn, NAMES[TRUTH.astype(int)], "")
    with pytest.raises(
        GoldError, match=r"not a random sample: they are too often or too seldom rows with some machine"
    ):
        of_table(table)
    (line,) = of_table(table, of=["yes"], probability="chance").lines
    assert line.corrected.interval.low < TRUTH.mean() < line.corrected.interval.high
    assert line.gold_only.value == pytest.approx(TRUTH.mean(), abs=0.06)


def test_gold_only_where_the_machine_is_sure_is_refused() -> None:
    sure = np.where(WRONG, 0.5, 0.9) + 0.01 * RNG.random(ROWS)
    table = made(sure=sure)
    table["gold"] = np.where(sure > 0.9, table["gold"], "")
    with pytest.raises(GoldError, match=r"too often or too seldom rows of some confidence \(\d+ where \d+ were to be"):
        of_table(table, confidence="sure")


def test_groups_without_gold_are_named_and_others_estimated() -> None:
    table = made()
    table["gold"] = np.where(PARTY == "c", "", table["gold"])
    found = of_table(table, by="party", of=["yes"])
    assert [line.group for line in found.lines] == ["a", "b"]
    assert [(one.group, one.gold_rows) for one in found.missing] == [("c", 0)]


@pytest.mark.parametrize(
    ("change", "question", "why"),
    [
        ({}, {"gold": ""}, "a table needs --label COLUMN, machine labels, and --gold COLUMN, true labels of some rows"),
        ({}, {"gold": "machine"}, "a table needs --label COLUMN"),
        ({}, {"label": "nope"}, "there is no column 'nope'; there are machine, gold, party"),
        ({}, {"confidence": "nope"}, "there is no column 'nope'; there are machine"),
        ({}, {"confidence": "party"}, "column 'party' must have numbers, confidences, higher where the machine"),
        ({}, {"weight": "nope"}, "there is no column 'nope' of weights"),
        ({}, {"weight": "party"}, r"data row 1, column 'party': '\w' is not a weight of 0 or more"),
        (
            {"w": [1.0, -2.0] * (ROWS // 2)},
            {"weight": "w"},
            "data row 2, column 'w': '-2' is not a weight of 0 or more",
        ),
        ({"w": [1.0, None] * (ROWS // 2)}, {"weight": "w"}, "data row 2, column 'w': '' is not a weight of 0 or more"),
        (
            {"p_yes": [0.5] * ROWS, "p_no": [0.8] * ROWS},
            {},
            "data row 1: the probabilities in p_no, p_yes add up to 1.3",
        ),
        (
            {"p_yes": ["x"] * ROWS, "p_no": [0.8] * ROWS},
            {},
            "column 'p_yes' must have numbers, probabilities: correct it",
        ),
        (
            {"p_yes": [None, 0.5] * (ROWS // 2), "p_no": [0.5, None] * (ROWS // 2)},
            {},
            "data row 1: the probabilities in p_no, p_yes add up to nan",
        ),
        ({"gold": ["yes", "no"] * 10 + [""] * (ROWS - 20)}, {}, "there are 20 gold rows drawn at random, and an"),
        ({"gold": ["yes"] * 50 + [""] * (ROWS - 50)}, {}, "all 50 gold rows are 'yes', so that nothing is known"),
        ({"machine": [f"t{row}" for row in range(ROWS)]}, {}, r"'machine' and 'gold' have 1,502 labels: name others"),
        ({}, {"p_adjust": "fdr"}, "--p-adjust is 'fdr', must be one of holm, bh, none"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(change: dict[str, Any], question: dict[str, Any], why: str) -> None:
    with pytest.raises(PcsError, match=why):
        estimate(pa.table({**made(), **change}), **{"label": "machine", "gold": "gold", **question})


def test_a_table_needs_the_names_of_its_columns(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="this is a table: name --label, its column of machine labels, and --gold"):
        estimate(pa.table(made()))
    with pytest.raises(ConfigError, match=r"t\.csv is a table: name --label"):
        estimate(write_csv(tmp_path / "t.csv", [{"a": "1"}]))
    with pytest.raises(TableError):
        estimate(tmp_path / "none.csv", label="a", gold="b")


def test_a_row_that_counts_twice_is_two_rows() -> None:
    weight = 1 + np.arange(ROWS) % 3
    (line,) = of_table(made(w=weight), of=["yes"], weight="w").lines
    twice = {name: np.repeat(column, weight) for name, column in made().items()}
    assert line.naive.value == pytest.approx(np.average(SAID, weights=weight))
    assert line.gold_only.value == pytest.approx(of_table(twice, of=["yes"]).lines[0].gold_only.value)
    assert np.ptp(line.corrected.interval) > np.ptp(of_table(made(), of=["yes"]).lines[0].corrected.interval)
    found = of_table(made(w=weight), formula="yes ~ party", weight="w").lines
    again = of_table(twice, formula="yes ~ party").lines
    assert [one.gold_only.value for one in found] == pytest.approx([one.gold_only.value for one in again])
    # all weights alike change nothing
    assert of_table(made(w=[7.0] * ROWS), of=["yes"], weight="w").lines[0].corrected.value == pytest.approx(
        of_table(made(), of=["yes"]).lines[0].corrected.value
    )


def test_p_values_are_adjusted_as_asked() -> None:
    from pcs_annotator.judging.metrics.significance import false_discovery_rate

    found = of_table(made(), by="party", of=["yes"], p_adjust="bh")
    raw = [line.p_value for line in found.differences]
    assert [line.adjusted for line in found.differences] == false_discovery_rate(raw)
    assert found.to_dict()["differences"][0]["p_bh"] == found.differences[0].adjusted
    plain = of_table(made(), formula="yes ~ party", p_adjust="none")
    assert all(line.adjusted is None for line in plain.lines)


def test_noise_among_many_differences_is_not_announced() -> None:
    groups = np.random.default_rng(5).integers(0, 12, ROWS)
    found = of_table(made(noise=[f"g{one:02}" for one in groups]), by="noise", of=["yes", "no"])
    alone = [line for line in found.differences if not line.corrected.interval.low <= 0 <= line.corrected.interval.high]
    assert alone, "an interval misses 0 by chance"
    said = " ".join(str(block) for block in answer_shown(found))
    assert f"0 of {len(found.differences)} differences are clear of zero (p (Holm) < .05)" in said
    assert f"0 of {len(found.differences)} differences are clear of zero" in page(found)


def test_details_do_not_point_to_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = {name: list(cells) for name, cells in made().items()}
    rows = [dict(zip(table, map(str, row), strict=True)) for row in zip(*table.values(), strict=True)]
    asked = ["estimate", str(write_csv(tmp_path / "t.csv", rows)), "--label", "machine", "--gold", "gold"]
    for more, pointed in (([], True), (["--details"], False)):
        assert main([*asked, "--by", "party", *more]) == 0
        assert ("more lines" in capsys.readouterr().out) is pointed
