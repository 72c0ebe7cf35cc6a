import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pcs_annotator
from pcs_annotator.base.errors import ConfigError, LabelError, TableError, UnknownNameError
from pcs_annotator.core.votes import NOT_ASKED
from pcs_annotator.core.weights import Interval
from pcs_annotator.faces.cli.main import main
from pcs_annotator.judging.evaluate.scored import Splitting
from pcs_annotator.judging.metrics.significance import BootstrapTest
from pcs_annotator.showing.formats import dollars
from pcs_annotator.studies.compare.comparison import Comparison, compare_sides
from pcs_annotator.studies.compare.comparison_page import about_cost, promise_of, verdict
from pcs_annotator.studies.compare.sides import RunPart, SideCost
from tests.builders import the
from tests.studies.compare.runs import LABELS, ROWS, Runs, make, texts

QUICK = {"repeats": 1, "resamples": 100}


def compared(first: str, second: str) -> Comparison:
    return pcs_annotator.compare(first, second, **QUICK)


@pytest.mark.parametrize(
    ("text", "models", "relations", "optimiser"),
    [
        ("runs/a", (), (), ""),
        ("runs/a:model=openai:gpt-4o", ("openai:gpt-4o",), (), ""),
        (
            "runs/a:model=openai:gpt-4o, groq:x:relations=original,order",
            ("openai:gpt-4o", "groq:x"),
            ("original", "order"),
            "",
        ),
        (":optimiser=lr", (), (), "lr"),
    ],
)
def test_a_side_is_a_folder_and_perhaps_a_part_of_it(
    text: str, models: tuple[str, ...], relations: tuple[str, ...], optimiser: str
) -> None:
    assert RunPart.parse(text, Path("runs/a")) == RunPart(Path("runs/a"), models, relations, optimiser)


@pytest.mark.parametrize("text", [":model=x", "a:model=", "a:model=x:model=y", "a:modle=x"])
def test_a_side_that_cannot_be_read_is_an_error_that_says_how_to_write_it(text: str) -> None:
    with pytest.raises(ConfigError, match="write RUN, RUN@VERSION, RUN:model=NAME"):
        RunPart.parse(text)


def test_two_runs_are_compared_on_the_rows_that_both_have(runs: Runs) -> None:
    found = compared(runs.a, runs.b)
    a, b = ([one.label for one in side.result.outcomes] for side in found.sides)
    assert found.rows == ROWS == found.table.sum()
    assert found.differing == sum(ours != theirs for ours, theirs in zip(a, b, strict=True))
    assert found.table[list(found.labels).index("fine"), list(found.labels).index("late")] == sum(
        pair == ("fine", "late") for pair in zip(a, b, strict=True)
    )
    assert the(found.figures).n == found.gold_rows == ROWS
    assert the(found.figures).accuracy.difference < -0.2
    assert verdict(found)[0].startswith("A is right more often, by ")
    certainties = [one.certainty for one in found.examples]
    assert certainties == sorted(certainties, reverse=True)
    right = [one for one in found.examples if "a-right" in one.marks]
    assert right
    assert all(one.outcomes[0].label == one.gold != one.outcomes[1].label for one in right)
    assert {one.name for one in found.settings} == {"task · instruction", "ask · models"}


def test_costs_are_per_thousand_rows_whoever_has_paid(runs: Runs) -> None:
    found = compared(runs.a, runs.b)
    a, b = found.costs
    assert (a.calls, b.calls) == (4000, 2000)  # two models or one, under two relations
    (bill,) = b.bills
    assert the(b.usd) == pytest.approx((bill.input_tokens + 2 * bill.output_tokens) / 1e6)
    assert verdict(found)[-1] == (
        f"B costs {the(b.usd) / the(a.usd):.0%} of what A costs: {dollars(b.usd)} instead of {dollars(a.usd)} "
        "per 1,000 rows."
    ).replace("%", " %")
    one, other = compared(f"{runs.a}:model=scripted:hash:a", f"{runs.a}:relations=original").costs
    assert (one.calls, other.calls) == (2000, 2000)


def test_parts_of_a_run_are_compared_without_a_call_and_have_no_promise(runs: Runs) -> None:
    found = compared(f"{runs.a}:model=scripted:hash:a", ":model=scripted:hash:b")
    assert [list(side.result.votes.annotators) for side in found.sides] == [["scripted:hash:a"], ["scripted:hash:b"]]
    assert found.b.name == f"{runs.a}:model=scripted:hash:b"
    assert the(found.figures).accuracy.difference < 0
    assert [found.accepted(side) for side in found.sides] == [0, 0]
    assert "has no promise" in promise_of(found.a)
    by_optimiser = compared(runs.a, ":optimiser=uniform")
    assert [one.name for one in by_optimiser.settings] == ["learn · optimiser", "learn · max error"]


def test_a_part_is_judged_as_a_run_of_just_that_part(runs: Runs, tmp_path: Path) -> None:
    rows = [(item.id, item.text, gold) for item, gold in _rows(runs)]
    alone = make(tmp_path, "alone", rows, models=["scripted:hash:b"])
    found = compared(f"{runs.a}:model=scripted:hash:b", str(tmp_path / "alone"))
    assert [one.label for one in found.a.result.outcomes] == [one.label for one in alone.outcomes]
    assert found.differing == 0
    assert the(found.figures).accuracy.p_value == 1


def _rows(runs: Runs) -> list[tuple[pcs_annotator.Item, str | None]]:
    dataset = compared(runs.a, runs.b).a.result.dataset
    return list(zip(dataset.items, dataset.gold, strict=True))


def test_rows_in_only_one_run_are_named_and_gold_of_either_counts(runs: Runs, tmp_path: Path) -> None:
    rows = [(item.id, item.text, gold) for item, gold in _rows(runs)]
    wrong = LABELS[(LABELS.index(str(rows[5][2])) + 1) % 3]
    other = [(*rows[5][:2], wrong), *((name, text, "") for name, text, _ in rows[6:]), ("new", "Another bus.", "late")]
    make(tmp_path, "part", other)
    found = compared(runs.a, str(tmp_path / "part"))
    assert found.rows == ROWS - 5
    assert found.matched.only_first == ["r00", "r01", "r02", "r03", "r04"]
    assert found.matched.only_second == ["new"]
    assert found.contradictory == ["r05"]
    assert found.gold_rows == ROWS - 6
    said = " ".join(found.notes)
    assert "5 rows are only in" in said
    assert "1 row is only in" in said
    assert "count for neither: 'r05'" in said


def test_a_run_that_reads_texts_is_judged_by_the_labels_that_it_gives(tmp_path: Path) -> None:
    words = ("arrived on time", "kept us waiting", "never came at all")
    rows = [(f"r{row:02d}", f"Bus {row} {words[row % 3]}.", LABELS[row % 3]) for row in range(ROWS)]
    one = {"models": ["scripted:hash:a"], "relations": ["original"]}
    read = make(tmp_path, "read", rows, **one)
    make(tmp_path, "votes", rows, text=False, **one)
    found = pcs_annotator.compare(str(tmp_path / "read"), str(tmp_path / "votes"), resamples=50)
    assert read.model.text is not None
    ours, theirs = (one["accuracy"].value for one in the(found.figures).figures)
    assert ours == pytest.approx(read.learned.figures[0].accuracy.value, abs=0.02)
    assert ours > 0.95
    assert theirs < 0.6
    make(tmp_path, "few", rows[:20], **one)
    few = compared(str(tmp_path / "read"), str(tmp_path / "few"))
    assert the(few.figures).figures[0]["accuracy"].value < 0.8
    assert any(
        note.endswith(
            "read also reads texts, but these gold rows are too few to learn that: its figures are of votes alone."
        )
        for note in few.notes
    )


def test_a_missing_label_is_not_another_label(runs: Runs) -> None:
    a, b = compared(runs.a, f"{runs.a}:relations=original").sides
    codes = b.result.votes.codes.copy()
    codes[:40] = NOT_ASKED
    outcomes = [replace(one, label=None) if row < 40 else one for row, one in enumerate(b.result.outcomes)]
    part = replace(b.result, votes=replace(b.result.votes, codes=codes, grades=None), outcomes=outcomes)
    found = compare_sides(a, replace(b, result=part), Splitting(**QUICK))
    assert found.table[:, -1].sum() == 40
    assert found.labelled == 20
    assert found.differing == sum(one.rows[0] >= 40 for one in found.examples) < 20
    assert the(found.figures).n == 20
    said = next(one for one in verdict(found) if one.startswith("They give different labels"))
    assert f"to {found.differing} of 20 rows" in said
    assert said.endswith("; 40 more rows have no label in one of them or both.")
    assert "40 gold rows that only one of the two was asked about count for neither." in found.notes


def test_without_gold_nothing_is_said_about_accuracy(tmp_path: Path) -> None:
    rows = [(f"r{row:02d}", text, "") for row, text in enumerate(texts())]
    make(tmp_path, "a", rows)
    make(tmp_path, "b", rows, models=["scripted:hash:b"])
    found = compared(str(tmp_path / "a"), str(tmp_path / "b"))
    assert found.figures is None
    first, why, agreement, _ = verdict(found)
    assert first == "Which of the two is right more often is not known."
    assert why == "No compared row has a gold label."
    assert "Cohen's κ" in agreement
    assert all(one.gold is None for one in found.examples)


def test_a_difference_that_cannot_be_told_names_the_rows_that_it_would_take(runs: Runs) -> None:
    found = compared(runs.a, runs.b)
    small = BootstrapTest(-0.004, Interval(-0.0639, 0.0559), 0.9, 60)
    unsure = replace(found, figures=replace(the(found.figures), accuracy=small, auroc=small))
    first, *others = verdict(unsure)
    assert first == "No difference in accuracy that 60 gold rows could show."
    assert others[0] == (
        "B − A is −0.4 percentage points (95 % interval −6.4 to 5.6; 60 gold rows; p = 0.900). To show a difference of "
        "2.0 points takes about 1,100 gold rows."
    )
    assert len(others) == 3  # nothing is said about the AUROC
    better = BootstrapTest(0.031, Interval(0.004, 0.058), 0.02, 412)
    sure = replace(found, figures=replace(the(found.figures), accuracy=better, auroc=better))
    assert verdict(sure)[:3] == [
        "B is right more often, by 3.1 points.",
        "B − A is +3.1 percentage points (95 % interval 0.4 to 5.8; 412 gold rows; p = 0.020).",
        "B separates the labels better than A: its class AUROC is +0.031 (95 % +0.004 to +0.058; p = 0.020).",
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ((10, 1.0), (20, 2.1), "B costs 2.1 times as much as A: $2.10 instead of $1.00 per 1,000 rows."),
        ((10, 1.0), (20, 1.01), "Both cost the same."),
        ((10, 3.0), (10, 0.12), "B costs 4 % of what A costs: $0.1200 instead of $3.00 per 1,000 rows."),
        ((10, None), (25, 1.0), "B makes 2.5 times as many calls as A: 25 instead of 10 per 1,000 rows."),
        ((10, 0.0), (10, 0.0), "Both make as many calls."),
        ((0, None), (10, 1.0), "What they cost is not known: no calls are recorded."),
    ],
)
def test_the_cost_is_said_in_dollars_or_in_calls(
    runs: Runs, ours: tuple[int, float | None], theirs: tuple[int, float | None], said: str
) -> None:
    bill = compared(runs.a, runs.b).costs[0].bills[0]
    first, second = (
        SideCost(bills=(replace(bill, calls=calls, usd=usd),), complete=True) for calls, usd in (ours, theirs)
    )
    assert about_cost(first, second) == said


def test_other_texts_rows_or_labels_are_refused_with_a_remedy(runs: Runs, tmp_path: Path) -> None:
    rows = [(f"r{row:02d}", f"{text} Really.", "") for row, text in enumerate(texts())]
    make(tmp_path, "texts", rows)
    make(tmp_path, "ids", [(f"x{name}", text, gold) for name, text, gold in rows])
    make(tmp_path, "labels", rows, labels=["fine", "late"])
    with pytest.raises(TableError, match=r"60 rows .* another text: 'r00', .* and 50 more; .* --id-column"):
        compared(runs.a, str(tmp_path / "texts"))
    with pytest.raises(TableError, match=r"no row is in both .* 'xr00'.* the same table"):
        compared(runs.a, str(tmp_path / "ids"))
    with pytest.raises(LabelError, match="run one of them again with --labels"):
        compared(runs.a, str(tmp_path / "labels"))
    with pytest.raises(UnknownNameError, match="no model is called 'gpt'; there are: scripted:hash:a"):
        compared(runs.a, ":model=gpt")
    with pytest.raises(ConfigError, match="are the same"):
        compared(runs.a, runs.a)


def test_the_command_writes_a_page_and_prints_everything(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compare", runs.a, runs.b]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "A is right more often, by" in printed
    assert f"next pcs compare {runs.a} {runs.b} -o compare.html" in printed
    assert not Path("compare.html").exists()
    assert main(["compare", runs.a, runs.b, "-o", "compare.html"]) == 0
    assert "report compare.html" in " ".join(capsys.readouterr().out.split())
    assert main(["compare", runs.a, runs.b, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == ROWS
    assert found["figures"]["difference"]["accuracy"]["p_value"] < 0.05
    assert np.sum(found["table"]) == ROWS
    assert found["examples"][0].keys() == {"id", "a", "b", "gold"}
    before = Path("compare.html").read_bytes()
    assert main(["compare", runs.b, runs.a, "-o", "compare.html"]) == 2
    assert "compare.html exists: name another file" in " ".join(capsys.readouterr().err.split())
    assert Path("compare.html").read_bytes() == before
    assert main(["compare", runs.b, runs.a, "-o", "compare.html", "--replace", "-q"]) == 0
    assert [kept.read_bytes() for kept in Path().glob("compare-20*.html")] == [before]
    assert main(["compare", str(tmp_path / "nowhere"), runs.a]) == 2
    assert "is not a run folder" in " ".join(capsys.readouterr().err.split())
