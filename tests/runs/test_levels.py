import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL
from pcs_annotator.runs.certificate_text import promised
from pcs_annotator.runs.fits import left_unused
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.runs.levels import LevelLedger, LevelTest, note_test, read_levels
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.verbs.fit import fit_run
from tests.builders import the
from tests.simulated import QUICK, move_run, read_csv, simulated_run, truth_of, write_csv


@pytest.fixture
def folder(promising_run: Path, tmp_path: Path) -> Path:
    """A run of 260 rows, 150 with gold, with a test that failed at some threshold."""
    moved = move_run(promising_run, tmp_path / "run")
    path = moved / "levels.json"
    path.write_text(path.read_text().replace('"used": 0.0', '"used": 0.05'))
    return moved


def unheard(line: str) -> None:
    """Hear what a test costs, and go on."""


def certificate_of(folder: Path, **people: Path) -> Certificate:
    found = fit_run(folder, None, FromPeople(**people), say=unheard).learned.model.certificate  # type: ignore[arg-type]
    assert found is not None
    return found


def recorded_tests(folder: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((folder / "levels.json").read_text())["label"]["tests"]
    return found


def ledger(*tests: LevelTest, refused: str = "") -> LevelLedger:
    return LevelLedger(run="r", place="p", tests=tests, refused=refused)


def more_gold(folder: Path, rows: range) -> Path:
    return write_csv(folder / "more.csv", [{"id": f"t{row}", "gold": truth_of(row)} for row in rows])


def test_a_test_that_failed_somewhere_makes_the_next_one_harder(folder: Path, tmp_path: Path) -> None:
    (first,) = recorded_tests(folder)
    assert (first["claim"], first["rows"], first["promised"]) == ("promise", 150, True)
    assert first["used"] == pytest.approx(0.05)
    again = certificate_of(folder)
    assert [again.level, again.spent] == pytest.approx([0.05, 0])
    assert len(recorded_tests(folder)) == 1  # the same fit again is the same test
    more = certificate_of(folder, gold=more_gold(tmp_path, range(150, 190)))
    assert [more.level, more.spent] == pytest.approx([0.1 / 6, 0.05])
    assert len(recorded_tests(folder)) == 2
    assert "used 5 % of the 10 %" in " ".join(promised(more).details)


def test_what_a_test_costs_is_said_before_it_is_made(folder: Path) -> None:
    said: list[str] = []
    fit_run(folder, say=said.append)
    assert said == []  # the same test again costs nothing
    fit_run(folder, {"max_error": 0.2}, say=said.append)
    (line,) = said
    assert "tested before, so at 1.7 % instead of 5 %" in line
    fit_run(folder, {"max_error": 0.2}, say=said.append)
    fit_run(folder, {"max_error": None}, say=said.append)
    fit_run(folder, {"promise": "false-discoveries", "max_error": 0.2}, say=said.append)
    assert said == [line]


def test_tests_of_different_claims_have_their_own_certainty() -> None:
    tests = ledger(LevelTest("promise", "a", 160, 0.05, True), LevelTest("table", "b", 180, 0.03, True))
    assert tests.spent_before("a") == 0
    assert tests.spent_before("new") == 0.05
    assert tests.spent_before("new", "table") == 0.03
    assert tests.spent_before("new", "sets") == 0


@pytest.mark.parametrize("everything", [True, False], ids=["deleted", "an older one"])
def test_without_the_ledger_of_its_tests_a_run_promises_nothing(everything: bool, folder: Path, tmp_path: Path) -> None:
    older = (folder / "levels.json").read_text()
    assert certificate_of(folder, gold=more_gold(tmp_path, range(150, 190))).holds
    if everything:
        (folder / "levels.json").unlink()
    else:
        (folder / "levels.json").write_text(older)
    for changes in (None, {"max_error": 0.3}):
        found = the(fit_run(folder, changes).learned.model.certificate)
        assert not found.holds
        assert "levels.json does not have" in found.why_not
        assert "put back the file that pcs wrote" in found.why_not


def test_a_fit_that_tests_nothing_is_no_test(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=60, gold_rows=30)
    assert not (tmp_path / "run" / "levels.json").exists()
    nothing = Certificate(promise=Promise(max_error=0.1), gold_rows=3, thresholds={})
    for certificate in (nothing, None):
        assert note_test(RunFolder(tmp_path), ledger(), "promise", "k", certificate, ["t1"]) is None


def test_gold_that_was_removed_after_a_look_allows_no_promise(folder: Path, tmp_path: Path) -> None:
    certificate_of(folder, gold=more_gold(tmp_path, range(150, 190)))
    RunFolder(folder).draws.unlink()
    found = certificate_of(folder)
    assert not found.holds
    assert "40 gold rows of an earlier test have no gold label now ('t150'" in found.why_not
    assert len(recorded_tests(folder)) == 2


def test_a_copy_of_a_folder_promises_nothing_and_the_folder_itself_goes_on(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    gold = more_gold(tmp_path, range(150, 190))
    found = certificate_of(copy, gold=gold)
    assert f"a copy of {folder.resolve()}" in found.why_not
    assert len(recorded_tests(copy)) == 1
    assert "copy" not in certificate_of(folder, gold=gold).why_not
    assert len(recorded_tests(folder)) == 2


def test_a_folder_that_was_moved_goes_on(folder: Path, tmp_path: Path) -> None:
    moved = folder.rename(tmp_path / "moved")
    assert "copy" not in certificate_of(moved, gold=more_gold(tmp_path, range(150, 190))).why_not
    assert json.loads((moved / "levels.json").read_text())["label"]["place"] == str(moved.resolve())


NO_NUMBER = '[{"claim": "promise", "key": "k", "rows": 1, "used": NaN, "promised": false}]'
NO_TEST = '{"label": {"run": "", "place": "", "gold": [], "tests": %s}}'


@pytest.mark.parametrize("content", ["{", '{"run": 1}', NO_TEST % '[{"key": 1}]', NO_TEST % NO_NUMBER])
def test_a_ledger_that_cannot_be_read_allows_no_promise(content: str, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.levels.write_text(content)
    assert "levels.json" in read_levels(folder, [], "key").refused


def test_tests_are_spared_until_they_are_worth_it_and_a_model_with_a_promise_stays_in_use(
    folder: Path, tmp_path: Path
) -> None:
    more = FromPeople(gold=more_gold(tmp_path, range(150, 190)))
    spared = fit_run(folder, None, more, spare_looks=True).learned.model
    assert (the(spared.certificate).holds, spared.gold_rows) == (True, 150)
    assert len(recorded_tests(folder)) == 1
    kept = json.loads((folder / "variables/label/models" / "2.json").read_text())
    assert kept["certificate"]["why_not"].startswith("not tested again yet: the next test is at 225 random gold rows")
    assert "version 2 promises less than version 1, which stays in use: it would accept 0 %" in left_unused(
        RunFolder(folder)
    )
    fit_run(folder, say=unheard)  # whoever asks for the test gets it
    assert len(recorded_tests(folder)) == 2
    assert left_unused(RunFolder(folder)) == ""


def test_a_test_is_due_when_a_promise_is_likely_or_after_half_as_many_rows_again() -> None:
    failed = ledger(LevelTest("promise", "a", 100, 0.01, False), LevelTest("table", "b", 300, 0.01, True))
    assert "at 150 random gold rows, and there are 149" in failed.too_early(149, None)
    assert not failed.too_early(150, None)
    assert "at 120" in failed.too_early(119, 120)
    assert not failed.too_early(120, 120)
    assert "at 101" in failed.too_early(100, 90)  # the same rows again prove nothing new
    assert "at 150" in ledger(LevelTest("promise", "a", 100, 0.01, True)).too_early(149, None)
    assert not ledger(LevelTest("promise", "a", 100, 0.0, True)).too_early(101, None)  # it came back
    assert not ledger().too_early(1, None)


def test_a_promise_on_average_uses_no_certainty_and_holds_for_later_texts_at_the_same_confidence(
    tmp_path: Path,
) -> None:
    result = simulated_run(tmp_path, rows=160, gold_rows=100, learn=replace(QUICK, promise="false-discoveries"))
    certificate = the(result.certificate)
    assert certificate.holds
    folder = tmp_path / "run"
    assert [(look["promised"], look["average"]) for look in recorded_tests(folder)] == [(True, True)]
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
    assert [look["promised"] for look in recorded_tests(folder)] == [False]
    for error, tried in ((0.3, 0.001), (0.3, 0.001), (0.25, 0.001)):  # the same again is the same look
        found = the(fit_run(folder, {"max_error": error}).learned.model.certificate)
        assert found.holds
        assert found.tried == tried
        assert f"at most {100 * (error + tried):.1f} %" in " ".join(promised(found).details)
        assert from_plain(Certificate, to_plain(found)).tried == tried
    assert [look["used"] for look in recorded_tests(folder)] == [0.001, 0.0, 0.0]
    assert found is not None
    assert note_test(RunFolder(folder), ledger(refused="gone"), "promise", "k", found, ["t1"]) is None
    average = ledger(LevelTest("promise", "a", 100, 0.1, False, True))
    assert not average.too_early(101, None)  # no certainty is wasted
