import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pcs_annotator import PcsError
from pcs_annotator.base.errors import ConfigError, GoldError, TableError
from pcs_annotator.estimating.sampling import Sample
from pcs_annotator.judging.metrics.significance import holm
from pcs_annotator.runs.opened import Run
from pcs_annotator.studies.estimating.answering import estimate_run, shares
from pcs_annotator.studies.estimating.answers import Estimated, EstimateQuestion
from pcs_annotator.studies.estimating.estimates_page import sentences, tables, write_estimates
from pcs_annotator.studies.estimating.evidence import LabelEvidence, evidence_of
from tests.builders import the
from tests.simulated import copy_run, read_csv, write_csv
from tests.studies.estimating.made import keep_a_sample, make_run, rows_with_groups, truth


def share(group: str = "") -> float:
    rows = [row for row in rows_with_groups() if not group or row["party"] == group]
    return sum(truth(row) == "good" for row in rows) / len(rows)


def test_the_corrected_share_is_nearer_than_the_gold_rows_alone(made: Path) -> None:
    good, bad = estimate_run(made, EstimateQuestion()).lines
    assert (good.name, bad.name) == ("good", "bad")
    assert good.corrected.value + bad.corrected.value == pytest.approx(1)
    low, high = the(good.corrected.interval)
    assert low < share() < high
    assert high - low < 0.8 * (the(good.gold_only.interval).high - the(good.gold_only.interval).low)
    assert good.gold_rows == 200
    assert 0.8 < good.tuning <= 1


def test_groups_are_compared(made: Path) -> None:
    found = estimate_run(made, EstimateQuestion(by="party", of=["good"]))
    assert [line.group for line in found.lines] == ["a", "b", "c"]
    for line in found.lines:
        assert the(line.corrected.interval).low - 0.03 < share(line.group) < the(line.corrected.interval).high + 0.03
    assert [line.group for line in found.differences] == ["b − a", "c − a", "c − b"]
    assert the(found.differences[1].p_value) < 0.001
    assert any("1 row has no group" in note for note in found.notes)


def test_periods_are_compared_with_the_one_before(made: Path) -> None:
    found = estimate_run(made, EstimateQuestion(by="day", every="month", of=["good"]))
    assert [line.group for line in found.lines] == ["2026-01", "2026-02", "2026-03"]
    assert [line.group for line in found.differences] == ["2026-02 − 2026-01", "2026-03 − 2026-02"]


def test_groups_with_little_gold_are_shown_with_the_reason_instead_of_figures(made: Path) -> None:
    found = estimate_run(made, EstimateQuestion(by="odd", of=["good"]))
    assert [line.group for line in found.lines] == ["no"]
    (shown,) = tables(found)
    assert shown.rows[-1] == ["", "yes", None, None, None, 4]
    assert "yes is not estimated: it has 4 gold rows, and 10 are needed." in sentences(found)
    assert found.to_dict()["not_estimated"][0]["group"] == "yes"


def test_two_columns_make_groups_of_their_combinations(made: Path) -> None:
    found = estimate_run(made, EstimateQuestion(by=("party", "day"), every="month", of=["good"]))
    months = ("2026-01", "2026-02", "2026-03")
    assert [line.group for line in found.lines] == [f"{party} · {month}" for party in "abc" for month in months]
    one = {line.group: line.corrected.value for line in found.lines}
    assert one["c · 2026-02"] > one["a · 2026-02"]
    between = [line.group for line in found.differences]
    assert "b · 2026-01 − a · 2026-01" in between
    assert "a · 2026-02 − a · 2026-01" in between
    # groups that differ in both columns, and months that do not follow each other, are not compared
    assert len(between) == 3 * 3 + 3 * 2


def test_combinations_with_little_gold_say_so_and_others_are_estimated(made: Path) -> None:
    found = estimate_run(made, EstimateQuestion(by=("party", "odd"), of=["good"]))
    assert [line.group for line in found.lines] == ["a · no", "b · no", "c · no"]
    assert {one.group for one in found.missing} <= {"a · yes", "b · yes", "c · yes"}
    assert all("10 are needed" in one.reason for one in found.missing)


def test_p_values_are_adjusted_for_the_number_of_differences(made: Path) -> None:
    found = estimate_run(made, EstimateQuestion(by="party"))
    raw = [line.p_value for line in found.differences if line.p_value is not None]
    assert [line.adjusted for line in found.differences] == pytest.approx(holm(raw))
    assert "adjusted for all differences" in sentences(found)[-1]


def test_labels_are_joined_and_numbers_averaged(made: Path) -> None:
    (both,) = estimate_run(made, EstimateQuestion(of=["good + bad"])).lines
    assert both.corrected.value == pytest.approx(1)
    (mean,) = estimate_run(made, EstimateQuestion(values={"good": 1.0, "bad": -1.0})).lines
    (good, _) = estimate_run(made, EstimateQuestion()).lines
    assert mean.corrected.value == pytest.approx(2 * good.corrected.value - 1, abs=1e-9)


def test_a_regression_finds_what_explains_the_label(made: Path) -> None:
    found = estimate_run(made, EstimateQuestion(formula="good ~ party + log(followers)"))
    by_name = {line.name: line for line in found.lines}
    assert [*by_name] == ["(intercept)", "party=b", "party=c", "log(followers)"]
    assert the(by_name["party=c"].p_value) < 0.001
    assert by_name["party=c"].corrected.value == pytest.approx(1.69, abs=0.8)
    assert any("1 row is left out" in note for note in found.notes)


def test_the_label_may_explain_and_may_be_several(made: Path) -> None:
    found = estimate_run(made, EstimateQuestion(formula="followers ~ good + party"))
    assert [line.name for line in found.lines] == ["(intercept)", "good", "party=b", "party=c"]
    found = estimate_run(made, EstimateQuestion(formula="label ~ party"))
    assert [line.name for line in found.lines][:2] == ["(intercept) → bad", "party=b → bad"]
    found = estimate_run(made, EstimateQuestion(formula="good ~ 0 + party", link="linear", cluster="day"))
    assert [line.name for line in found.lines] == ["party=a", "party=b", "party=c"]


def test_a_column_of_probabilities_is_used(made: Path) -> None:
    plain, designed = (estimate_run(made, EstimateQuestion(probability=name)).lines[0] for name in ("", "chance"))
    assert plain.corrected.value == pytest.approx(designed.corrected.value, abs=1e-9)


@pytest.mark.parametrize("every", ["year", "month", "day"])
def test_dates_with_points_are_read_as_day_month_and_year(made: Path, every: str) -> None:
    german = estimate_run(made, EstimateQuestion(by=["tag"], every=every, of=["good"]))
    assert german.lines == estimate_run(made, EstimateQuestion(by=["day"], every=every, of=["good"])).lines


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (EstimateQuestion(of=["nice"]), "'nice' is no label; the labels are good, bad"),
        (EstimateQuestion(values={"good": 1.0}), "every label needs one number, and 'bad' is missing"),
        (EstimateQuestion(by="nope"), "there is no column 'nope'; there are id, text"),
        (
            EstimateQuestion(by=("party", "day", "odd")),
            "--by is given for 3 columns \\(party, day, odd\\), 2 are possible",
        ),
        (EstimateQuestion(by=("odd", "party"), every="month"), "column 'party': '.' is not a date such as 2026-01-31"),
        (EstimateQuestion(by=("party", "rare")), "no group of 'party' and 'rare' has 10 gold rows|column 'rare' has"),
        (EstimateQuestion(by="id"), "column 'id' has 600 groups, at most 60"),
        (
            EstimateQuestion(by="party", every="month"),
            "data row 1, column 'party': '.' is not a date such as 2026-01-31",
        ),
        (EstimateQuestion(by=["rare"], every="month"), "'0' is not a date such as 2026-01-31 or 31.01.2026"),
        (EstimateQuestion(by="day", every="age"), "--every is 'age', must be one of year, month, day"),
        (EstimateQuestion(formula="good ~ nope"), "names 'nope', which is neither a column nor a label"),
        (EstimateQuestion(formula="followers ~ party"), "names a label nowhere"),
        (EstimateQuestion(formula="good ~ bad"), "names a label on both sides"),
        (EstimateQuestion(formula="good ~ party", link="probit"), "the link 'probit' does not suit this outcome"),
        (
            EstimateQuestion(formula="good ~ text"),
            "column 'text' has 599 different texts|column 'text' has 600 different",
        ),
        (EstimateQuestion(formula="good ~ C(day)"), "gold rows are too few for"),
        (EstimateQuestion(probability="followers"), "is not a probability above 0 and up to 1"),
        (EstimateQuestion(probability="nope"), "there is no column 'nope' of probabilities"),
    ],
)
def test_what_cannot_be_estimated_says_why(made: Path, question: EstimateQuestion, why: str) -> None:
    with pytest.raises(PcsError, match=why):
        estimate_run(made, question)


def test_rows_that_a_person_chose_are_left_out(made: Path, tmp_path: Path) -> None:
    from pcs_annotator.runs.gold_labels import FromPeople
    from pcs_annotator.verbs.fit import fit_run

    folder = copy_run(made, tmp_path / "run")
    chosen = [{"id": row["id"], "gold": truth(row)} for row in rows_with_groups()[300:320]]
    fit_run(folder, people=FromPeople(gold=write_csv(tmp_path / "chosen.csv", chosen)))
    found = estimate_run(folder, EstimateQuestion())
    assert found.lines[0].gold_rows == 200
    assert any(
        "20 gold rows are left out, because the probability of drawing them is unknown" in one for one in found.notes
    )


def test_verdicts_of_the_queue_that_learns_are_used_with_their_probabilities(bare: Path, tmp_path: Path) -> None:
    from pcs_annotator.reviewing.session import Review
    from pcs_annotator.reviewing.values import ReviewOptions, Shown
    from tests.reviewing.reviewing import judge

    folder = copy_run(bare, tmp_path / "run")
    labels = {row["id"]: truth(row) for row in rows_with_groups(0)}

    def decide(shown: Shown) -> str | None:
        return labels[shown.id]

    with Review.open(folder, ReviewOptions(refit_every=0, seed=1)) as review:
        for number in range(100):
            judge(review, "learn" if number < 88 else "random", decide)
        judge(review, "random", None)  # skipped
        judge(review, "doubtful", decide)
    found = estimate_run(folder, EstimateQuestion(of=["good"]))
    (line,) = found.lines
    assert line.gold_rows == 100
    assert "100 verdicts of a review count with the probabilities of their draws" in found.notes
    assert "1 gold row is left out, because the probability of drawing them is unknown" in found.notes
    assert the(line.corrected.interval).low < share() < the(line.corrected.interval).high
    sample = evidence_of(Run.open(folder)).sample
    # rows that were likely to be drawn speak for few others
    assert sample.weights.max() > 10 * sample.weights.min()


def test_too_little_gold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GoldError, match="20 gold rows drawn at random, and an estimate needs 30: draw rows to label"):
        estimate_run(make_run(tmp_path, 20, rows=60), EstimateQuestion())


def test_no_gold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GoldError, match="has 0 gold rows, too few to learn from: draw 30 or more with pcs gold"):
        estimate_run(make_run(tmp_path, 0, rows=20), EstimateQuestion())


@pytest.mark.parametrize("id_column", ["id", "number", ""])
def test_a_large_table_is_estimated_from_all_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, id_column: str
) -> None:
    keep_a_sample(monkeypatch, 100)
    folder = make_run(tmp_path, gold_rows=60, rows=160, id_column=id_column)
    evidence = evidence_of(Run.open(folder), columns={"gold"})
    assert {*evidence.table.column_names} == {*filter(None, [id_column]), "gold"}
    own = [evidence.labels[code] for code in evidence.sample.truth.tolist()]
    assert evidence.column("gold").cells[evidence.sample.rows].tolist() == own
    assert evidence.sample.probability.tolist() == [60 / 160] * 60
    found = estimate_run(folder, EstimateQuestion(by="party", of=["good"]))
    assert found.rows == 160
    assert [line.group for line in found.lines] == ["a", "b", "c"]
    # a column of the same name is written into the file of labels, and is not the user's
    assert estimate_run(folder, EstimateQuestion(formula="label ~ followers")).lines[1].name == "followers → bad"
    with pytest.raises(ConfigError, match=r"there is no column 'nope'; there are .*party"):
        estimate_run(folder, EstimateQuestion(by="nope"))


def test_a_large_table_without_all_labels_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_a_sample(monkeypatch, 100)
    folder = make_run(tmp_path, gold_rows=60, rows=160)
    labels = read_csv(folder / "labels.csv")
    write_csv(folder / "labels.csv", [{name: row[name] for name in row if name != "p_bad"} for row in labels])
    with pytest.raises(TableError, match=r"labels\.csv has no probabilities of labels: fit the run again with pcs fit"):
        estimate_run(folder, EstimateQuestion())
    (folder / "whole.json").unlink()
    with pytest.raises(TableError, match="only a sample of the rows has been labelled; pcs run labels all of them"):
        estimate_run(folder, EstimateQuestion())


@pytest.fixture(scope="module")
def estimated(made: Path) -> Estimated:
    return estimate_run(made, EstimateQuestion(by="party", of=["good"]))


def test_tables_and_sentences_tell_the_same(estimated: Estimated) -> None:
    estimates, differences = tables(estimated)
    assert estimates.columns == ["", "group", "corrected", "gold only", "naive (biased)", "gold rows"]
    assert differences.columns[-2:] == ["p", "p (Holm)"]
    said = sentences(estimated)
    assert re.match(
        r"\d+\.\d % of the texts in 'a' are good \(95 % interval [\d.]+ to [\d.]+ %; \d+ gold rows\)", said[0]
    )
    assert "percentage points" in said[3]
    assert "naive" in " ".join(estimates.notes)


@pytest.mark.parametrize("ending", ["html", "md", "tex", "csv", "json"])
def test_estimates_are_written_as_the_name_says(estimated: Estimated, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"e.{ending}"
    write_estimates(estimated, path)
    text = path.read_text(encoding="utf-8")
    shown = f"{100 * estimated.lines[0].corrected.value:{'.6g' if ending == 'csv' else '.1f'}}"
    if ending == "json":
        assert json.loads(text)["estimates"][0]["corrected"]["value"] == estimated.lines[0].corrected.value
    else:
        assert shown in text
        assert "naive (biased)" in text
    if ending == "csv":
        rows = [*csv.DictReader(text.splitlines())]
        assert {row["table"] for row in rows} == {"estimates", "differences"}
        assert all(None not in row and None not in row.values() for row in rows)
    if ending == "tex":
        low, high = estimated.lines[0].corrected.interval.rounded(3)  # type: ignore[union-attr]
        assert f"{shown} [{100 * low:.1f}, {100 * high:.1f}]" in text


def test_other_endings_are_refused(estimated: Estimated, tmp_path: Path) -> None:
    with pytest.raises((TableError, ConfigError), match=r"e\.doc"):
        write_estimates(estimated, tmp_path / "e.doc")


def test_gold_in_labels_is_not_changed_by_an_estimate(made: Path) -> None:
    before = read_csv(made / "labels.csv")
    estimate_run(made, EstimateQuestion())
    assert read_csv(made / "labels.csv") == before


def test_a_single_label_may_be_asked_for_by_its_name(made: Path) -> None:
    assert [one.name for one in estimate_run(made, EstimateQuestion(of="good")).lines] == ["good"]


@pytest.mark.parametrize("by", [(), ("party",)])
def test_the_shares_of_all_labels_add_up_to_one(made: Path, by: Sequence[str]) -> None:
    lines = estimate_run(made, EstimateQuestion(by=by)).lines
    for group in {line.group for line in lines}:
        assert sum(line.corrected.value for line in lines if line.group == group) == pytest.approx(1)
        assert len({line.tuning for line in lines}) == 1


def test_shares_that_would_be_negative_are_nothing_and_the_others_still_add_up_to_one() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 400).astype(np.int8)
    truth[truth == 2] = 1
    said = np.where(rng.random(400) < 0.03, 2, truth)
    rows = np.flatnonzero(said < 2)[:60]
    rows = np.append(rows, np.flatnonzero(said == 2)[:6])
    expected = 0.94 * np.eye(3)[said] + 0.02
    sample = Sample.simple(rows, truth[rows], 400)
    found = shares(
        LabelEvidence(
            labels=("a", "b", "c"),
            table=pa.table({"x": np.zeros(400)}),
            columns=["x"],
            expected=expected,
            held_out=expected[rows],
            sample=sample,
        ),
        EstimateQuestion(),
    )
    assert found.lines[2].corrected.value == 0
    assert sum(line.corrected.value for line in found.lines) == pytest.approx(1)
