from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator.judging.promising.acceptance import EVERY_LABEL, Promise
from pcs_annotator.judging.promising.certificate import Certificate
from pcs_annotator.runs.certificate_text import promised
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.gold import FromPeople
from pcs_annotator.runs.looks import Look, Looks, read_looks
from pcs_annotator.runs.run import Run
from pcs_annotator.verbs.fit import fit_run
from tests.simulated import QUICK, move_run, read_csv, simulated_run, truth_of, write_csv


@pytest.fixture
def folder(promising_run: Path, tmp_path: Path) -> Path:
    """A run of 260 rows, 150 with gold, that has looked once."""
    return move_run(promising_run, tmp_path / "run")


def certificate_of(folder: Path, **people: Path) -> Certificate:
    found = fit_run(folder, None, FromPeople(**people)).learned.model.certificate  # type: ignore[arg-type]
    assert found is not None
    return found


def looks_of(folder: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((folder / "looks.json").read_text())["looks"]
    return found


def without_promise(folder: Path) -> None:
    """Write that the looks so far found no promise."""
    path = folder / "looks.json"
    path.write_text(path.read_text().replace('"promised": true', '"promised": false'))


def more_gold(folder: Path, rows: range) -> Path:
    return write_csv(folder / "more.csv", [{"id": f"t{row}", "gold": truth_of(row)} for row in rows])


def test_a_look_without_a_promise_makes_the_next_one_harder(folder: Path, tmp_path: Path) -> None:
    (first,) = looks_of(folder)
    assert (first["rows"], first["level"], first["promised"]) == (150, pytest.approx(0.05), True)
    again = certificate_of(folder)
    assert [again.level, again.spent] == pytest.approx([0.05, 0])
    assert len(looks_of(folder)) == 1  # the same fit again is the same look
    without_promise(folder)
    more = certificate_of(folder, gold=more_gold(tmp_path, range(150, 190)))
    assert [more.level, more.spent] == pytest.approx([0.025, 0.05])
    assert len(looks_of(folder)) == 2
    assert "have used 5 % of the 10 %" in " ".join(promised(more).details)


def test_a_look_that_finds_a_promise_uses_nothing_up() -> None:
    looks = Looks(run="r", place="p", looks=(Look("a", 160, 0.05, True), Look("b", 180, 0.05, False)))
    assert looks.spent_before("a") == 0
    assert looks.spent_before("b") == 0
    assert looks.spent_before("new") == 0.05


def test_a_fit_that_tests_nothing_is_no_look(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=60, gold_rows=30)
    assert not (tmp_path / "run" / "looks.json").exists()
    nothing = Certificate(promise=Promise(max_error=0.1), gold_rows=3, thresholds={})
    looks = Looks(run="r", place="p")
    assert looks.with_look("k", nothing, ["t1"]) is looks


def test_gold_that_was_removed_after_a_look_allows_no_promise(folder: Path, tmp_path: Path) -> None:
    certificate_of(folder, gold=more_gold(tmp_path, range(150, 190)))
    RunFolder(folder).gold.unlink()
    found = certificate_of(folder)
    assert not found.holds
    assert "40 gold rows of an earlier look have no gold label now ('t150'" in found.why_not
    assert len(looks_of(folder)) == 2


def test_a_copy_of_a_folder_promises_nothing_and_the_folder_itself_goes_on(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    gold = more_gold(tmp_path, range(150, 190))
    found = certificate_of(copy, gold=gold)
    assert f"a copy of {folder.resolve()}" in found.why_not
    assert len(looks_of(copy)) == 1
    assert "copy" not in certificate_of(folder, gold=gold).why_not
    assert len(looks_of(folder)) == 2


def test_a_folder_that_was_moved_goes_on(folder: Path, tmp_path: Path) -> None:
    moved = folder.rename(tmp_path / "moved")
    assert "copy" not in certificate_of(moved, gold=more_gold(tmp_path, range(150, 190))).why_not
    assert json.loads((moved / "looks.json").read_text())["place"] == str(moved.resolve())


@pytest.mark.parametrize("content", ["{", '{"run": 1}', '{"run": "", "place": "", "gold": [], "looks": [{"key": 1}]}'])
def test_looks_that_cannot_be_read_allow_no_promise(content: str, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.looks.write_text(content)
    assert "looks.json" in read_looks(folder, [], "key").refused


def test_levels_must_be_numbers(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    look = {"key": "k", "rows": 1, "level": float("nan"), "promised": False}
    folder.looks.write_text(json.dumps({"run": "", "place": "", "gold": [], "looks": [look]}))
    assert "looks.json" in read_looks(folder, [], "key").refused


def test_looks_are_spared_until_they_are_likely_to_succeed(folder: Path, tmp_path: Path) -> None:
    without_promise(folder)
    more = FromPeople(gold=more_gold(tmp_path, range(150, 190)))
    spared = fit_run(folder, None, more, spare_looks=True).learned.model
    assert spared.certificate is not None
    assert spared.certificate.why_not.startswith("not tested again yet: the next test is at 225 random gold rows")
    assert spared.gold_rows == 190  # but it has learned
    assert len(looks_of(folder)) == 1
    fit_run(folder)  # whoever asks for the test gets it
    assert len(looks_of(folder)) == 2


def test_a_look_is_due_when_a_promise_is_likely_or_after_half_as_many_rows_again() -> None:
    failed = Looks(run="r", place="p", looks=(Look("a", 100, 0.01, False),))
    assert "at 150 random gold rows, and there are 149" in failed.too_early(149, None)
    assert not failed.too_early(150, None)
    assert "at 120" in failed.too_early(119, 120)
    assert not failed.too_early(120, 120)
    assert "at 101" in failed.too_early(100, 90)  # the same rows again prove nothing new
    assert not Looks(run="r", place="p", looks=(Look("a", 100, 0.01, True),)).too_early(101, None)
    assert not Looks(run="r", place="p").too_early(1, None)


def test_a_promise_on_average_uses_no_certainty_and_holds_for_later_texts_at_the_same_confidence(
    tmp_path: Path,
) -> None:
    result = simulated_run(tmp_path, rows=160, gold_rows=100, learn=replace(QUICK, promise="false-discoveries"))
    certificate = result.certificate
    assert certificate is not None
    assert certificate.holds
    folder = tmp_path / "run"
    assert [(look["promised"], look["average"]) for look in looks_of(folder)] == [(True, True)]
    assert Run.open(folder).looked(replace(QUICK, max_error=0.2)).spent == 0
    rows = read_csv(folder / "labels.csv")
    least = certificate.thresholds[EVERY_LABEL]
    sure: dict[str, list[float]] = {row["pcs_decision"]: [] for row in rows}
    for row in rows:
        sure[row["pcs_decision"]].append(float(row["pcs_confidence"]))
    assert min(sure["accept"]) >= least - 1e-6
    assert max(sure["review"]) < least
    assert "on average" in (folder / "report.html").read_text(encoding="utf-8")


def test_whoever_tries_promises_on_average_until_one_holds_is_told_what_all_of_them_allow(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=160, gold_rows=100, learn=replace(QUICK, promise="false-discoveries", max_error=0.001))
    folder = tmp_path / "run"
    assert [look["promised"] for look in looks_of(folder)] == [False]
    for error, tried in ((0.3, 0.001), (0.3, 0.001), (0.25, 0.001)):  # the same again is the same look
        found = fit_run(folder, {"max_error": error}).learned.model.certificate
        assert found is not None
        assert found.holds
        assert found.tried == tried
        assert f"at most {100 * (error + tried):.1f} %" in " ".join(promised(found).details)
        assert Certificate.from_dict(found.to_dict()).tried == tried
    assert [look["level"] for look in looks_of(folder)] == [0.001, 0.3, 0.25]
    assert found is not None
    refused = Looks(run="r", place="p", refused="gone")
    assert refused.with_look("k", found, ["t1"]) is refused
    average = Looks(run="r", place="p", looks=(Look("a", 100, 0.1, False, True),))
    assert not average.too_early(101, None)  # no certainty is wasted
