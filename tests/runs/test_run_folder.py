import json
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.parquet import read_table, write_table

from pcs_annotator import RunResult
from pcs_annotator.asking.ledger.lock import lock_ledger
from pcs_annotator.base.errors import ConfigError, GoldError, LabelError, TableError
from pcs_annotator.core.events import FiledLabel
from pcs_annotator.core.identity import text_hash
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.reviewing.session import Review
from pcs_annotator.runs.draw_registry import append_events, events_of
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.showing.findings import what_to_look_at
from pcs_annotator.verbs.fit import fit_run, open_run
from tests.builders import the
from tests.simulated import QUICK, audited, copy_run, read_csv, simulated_run, truth_of, write_csv

pytestmark = pytest.mark.system  # whole runs, one after the other


@pytest.fixture
def folder(promising_run: Path, tmp_path: Path) -> Path:
    """A run of 260 rows, 150 with gold, whose promise holds."""
    return copy_run(promising_run, tmp_path / "run")


def certificate_of(result: RunResult) -> Certificate:
    assert result.learned.model.certificate is not None
    return result.learned.model.certificate


def decisions_of(result: RunResult) -> set[str | None]:
    return {outcome.decision for outcome in result.outcomes}


def test_a_run_reads_its_settings_first_and_everything_else_when_it_is_needed(folder: Path) -> None:
    for name in ("items.parquet", "variables/label/votes.parquet", "variables/label/model.json"):
        (folder / name).unlink()
    run = Run.open(folder)
    assert run.config.task.labels == ("good", "bad")
    assert not run.sampled
    with pytest.raises(TableError, match=r"has no items\.parquet"):
        _ = run.votes


def test_a_run_opens_as_it_was_left(folder: Path) -> None:
    fitted, opened = fit_run(folder), open_run(folder)
    assert certificate_of(opened) == certificate_of(fitted)
    assert list(opened.outcomes) == list(fitted.outcomes)
    assert decisions_of(opened) == {"accept", "review"}
    assert opened.to_label is None
    assert opened.dataset.gold == fitted.dataset.gold


def test_a_fit_waits_for_the_run_that_changes_its_folder(folder: Path) -> None:
    before = (folder / "variables/label/model.json").stat().st_mtime_ns
    fitting = threading.Thread(target=fit_run, args=(folder, {"optimiser": "uniform"}))
    with lock_ledger(folder / "ledger.db"):
        fitting.start()
        fitting.join(timeout=0.3)
        assert (folder / "variables/label/model.json").stat().st_mtime_ns == before
    fitting.join()
    assert (folder / "variables/label/model.json").stat().st_mtime_ns > before


def test_settings_of_the_last_fit_stay_unless_overridden(folder: Path) -> None:
    fit_run(folder, {"optimiser": "uniform", "max_error": 0.2, "per_label": True})
    again = fit_run(folder)
    assert again.learned.model.weights.diagnostics.optimiser == "uniform"
    assert certificate_of(again).promise.max_error == 0.2
    assert certificate_of(again).promise.per_label
    changed = fit_run(folder, {"max_error": 0.3})
    assert certificate_of(changed).promise.max_error == 0.3
    assert certificate_of(changed).promise.per_label


def test_a_folder_that_was_asked_but_not_learned_from_has_the_settings_of_the_run(folder: Path) -> None:
    (folder / "variables/label/model.json").unlink()
    assert certificate_of(fit_run(folder)).promise.max_error == QUICK.max_error


def test_later_gold_wins_over_earlier_gold(folder: Path) -> None:
    mine = folder.parent / "mine.csv"
    wrong = {"good": "bad", "bad": "good"}[truth_of(200)]
    fit_run(folder, None, FromPeople(gold=write_csv(mine, [{"id": "t200", "gold": wrong}])))
    assert open_run(folder).dataset.gold[200] == wrong
    more = FromPeople(gold=write_csv(mine, [{"id": "t200", "gold": truth_of(200)}]))
    fit_run(folder, None, more, say=lambda line: None)
    assert open_run(folder).dataset.gold[200] == truth_of(200)


@pytest.mark.parametrize(
    ("row", "error", "complaint"),
    [
        ({"id": "nobody", "gold": "good"}, TableError, r"mine\.csv, row 3.*'nobody'"),
        ({"id": "t3", "gold": "ugly"}, LabelError, r"mine\.csv, row 3.*'ugly'"),
    ],
)
def test_gold_that_fits_no_row_or_no_label_is_refused_and_nothing_is_kept(
    row: dict[str, str], error: type[Exception], complaint: str, folder: Path
) -> None:
    given = write_csv(folder.parent / "mine.csv", [{"id": "t2", "gold": "good"}, row])
    with pytest.raises(error, match=complaint):
        fit_run(folder, None, FromPeople(gold=given))
    assert events_of(RunFolder(folder), FiledLabel) == []


def test_an_audit_that_finds_no_error_confirms(folder: Path) -> None:
    audited(folder, lambda place: True)
    result = fit_run(folder)
    audit = the(certificate_of(result).audit)
    assert (audit.finding, audit.rows, audit.wrong) == ("confirmed", 60, 0)
    assert certificate_of(result).holds
    assert certificate_of(fit_run(folder)).audit == audit
    assert certificate_of(open_run(folder)).audit == audit


def test_an_audit_of_few_rows_leaves_it_open(folder: Path) -> None:
    audited(folder, lambda place: True, rows=5)
    result = fit_run(folder)
    assert the(certificate_of(result).audit).finding == "open"
    assert "accept" in decisions_of(result)


def test_a_revoked_promise_stays_revoked(folder: Path) -> None:
    audited(folder, lambda place: place % 2 == 0)
    revoked = fit_run(folder)
    assert not certificate_of(revoked).holds
    assert "an audit revokes it" in fallen_away(revoked)
    assert decisions_of(revoked) == {"review"}
    assert (certificate_of(revoked).accepted_share, certificate_of(revoked).review_rows) == (0, 260)
    assert the(revoked.to_label).kind == "at random"
    for result in (fit_run(folder), open_run(folder)):
        assert not certificate_of(result).holds
        assert decisions_of(result) == {"review"}


def test_rows_on_which_answers_agree_are_not_audited_and_a_folder_without_gold_opens_as_it_was(tmp_path: Path) -> None:
    result = simulated_run(tmp_path, rows=40, gold_rows=0)
    assert {outcome.decision for outcome in result.outcomes} == {"agree", "review"}
    with Review.open(tmp_path / "run") as review:
        assert review.next_row("Ann", "audit") is None
    assert open_run(tmp_path / "run").outcomes == result.outcomes
    assert [row["pcs_decision"] for row in read_csv(tmp_path / "run" / "labels.csv")] == [
        outcome.decision for outcome in result.outcomes
    ]


def fallen_away(result: RunResult) -> str:
    """What is said about a promise that fell away, before all other findings; empty if there is none."""
    found = what_to_look_at(result)
    return found[0].detail if found and found[0].kind == "promise fell away" else ""


@pytest.mark.parametrize("what", ["votes", "gold", "version"])
def test_a_promise_is_void_when_votes_gold_or_version_change(what: str, folder: Path) -> None:
    assert "accept" in decisions_of(open_run(folder))
    if what == "votes":
        votes = read_table(folder / "variables/label/votes.parquet").to_pylist()
        first = next(vote for vote in votes if vote["label"])
        first["label"] = {"good": "bad", "bad": "good"}[first["label"]]
        write_table(pa.Table.from_pylist(votes), folder / "variables/label/votes.parquet")
    elif what == "gold":
        (text,) = (item.text for item in Run.open(folder).dataset.items if item.id == "t200")
        filed = FiledLabel(id="t200", text_hash=text_hash(text), label=truth_of(200), chosen="at random")
        append_events(folder / "draws.jsonl", [filed])
    else:
        model = json.loads((folder / "variables/label/model.json").read_text())
        model["certificate"]["fingerprint"]["version"] = "0.0.0"
        (folder / "variables/label/model.json").write_text(json.dumps(model))
    opened = open_run(folder)
    assert certificate_of(opened).why_not.startswith(f"{what} changed")
    assert f"now nothing is promised: {what} changed" in fallen_away(opened)
    assert decisions_of(opened) == {"review"}
    assert "accept" in decisions_of(fit_run(folder))


def test_different_gold_for_equal_texts_is_refused_even_from_different_files(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=30, gold_rows=20)
    table = read_table(tmp_path / "run" / "items.parquet").to_pylist()
    table[25]["text"] = table[0]["text"]
    write_table(pa.Table.from_pylist(table), tmp_path / "run" / "items.parquet")
    other = {"good": "bad", "bad": "good"}[table[0]["gold"]]
    given = write_csv(tmp_path / "mine.csv", [{"id": "t25", "gold": other}])
    with pytest.raises(GoldError, match="rows 2 and 27"):
        fit_run(tmp_path / "run", None, FromPeople(gold=given))


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"book\.json"):
        open_run(tmp_path)


def test_a_run_that_decides_nothing_opens_without_a_certificate(folder: Path) -> None:
    fit_run(folder, {"max_error": None})
    opened = open_run(folder)
    assert "--max-error" in fallen_away(opened)
    assert opened.learned.model.certificate is None
    assert decisions_of(opened) == {None}
    assert certificate_of(fit_run(folder, {"max_error": 0.1})).audit is None
