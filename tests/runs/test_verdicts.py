import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pcs_annotator import Item, PcsWarning, RunResult
from pcs_annotator.core.events import Draw, audit_order
from pcs_annotator.faces.cli.main import main
from pcs_annotator.judging.promise.certificate import Certificate, audit
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.draw_registry import read_events
from pcs_annotator.runs.drawing import with_reviewed_audit
from pcs_annotator.runs.gold_labels import Gold, gold_of
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.review_state import ReviewVerdicts, read_verdicts
from pcs_annotator.showing.report import view
from pcs_annotator.showing.report.page import render
from pcs_annotator.tables.chunks import Columns, Dataset
from pcs_annotator.verbs.fit import fit_run, open_run
from tests.builders import the
from tests.reviewing.reviewing import judge
from tests.runs.reviewing import Reviewing
from tests.showing.report.reading import Page, section
from tests.simulated import copy_run, read_csv, simulated_once, simulated_run, truth_of

pytestmark = pytest.mark.system  # whole runs, one after the other

ITEMS = tuple(Item(id=name, text=f"text {name}") for name in "abcdefgh")


def dataset(gold: dict[str, str] | None = None) -> Dataset:
    labels = tuple((gold or {}).get(item.id) for item in ITEMS) if gold else ()
    return Dataset(name="data.csv", table=pa.table({}), items=ITEMS, gold=labels, columns=Columns(text="text"))


def labels_of(gold: Gold) -> dict[str, str]:
    return {item.id: label for item, label in zip(ITEMS, gold.labels, strict=True) if label}


def names(gold: Gold, mask: str) -> str:
    return "".join(item.id for item, one in zip(ITEMS, getattr(gold, mask), strict=True) if one)


def test_rows_that_the_fixed_order_has_reached_can_support_a_promise_and_others_cannot(tmp_path: Path) -> None:
    review = Reviewing(tmp_path, ITEMS)
    first, second, third, *others = review.order
    review.draw(second, "learn")
    review.draw(first, "random", reached=1)
    review.draw(third, "learn", reached=2)  # the second was drawn before, and the order has passed it since
    for name in (first, second, third):
        review.judge(name, "good", "learn")
    review.judge(others[0], "bad", "doubtful")
    gold = gold_of(RunFolder(tmp_path), dataset())
    assert labels_of(gold) == {first: "good", second: "good", third: "good", others[0]: "bad"}
    assert {*names(gold, "random_sample")} == {first, second}
    assert not gold.assumed.any()
    assert gold.verdicts.counts == {
        "rows": 4,
        "learned_from": 4,
        "at_random": 2,
        "audited": 0,
        "in_conflict": 0,
        "skipped": 0,
    }


def test_a_sequence_of_other_rows_supports_no_promise(tmp_path: Path) -> None:
    review = Reviewing(tmp_path, ITEMS, frame="abcdefg")
    review.draw("a", "random", reached=7)
    review.judge("a", "good")
    gold = gold_of(RunFolder(tmp_path), dataset())
    assert labels_of(gold) == {"a": "good"}
    assert names(gold, "random_sample") == ""
    assert names(gold_of(RunFolder(tmp_path), dataset({"h": "bad"})), "random_sample") == "ah"


def test_verdicts_override_gold_of_the_data_which_stays_what_it_was_a_sample_of(tmp_path: Path) -> None:
    review = Reviewing(tmp_path, ITEMS)
    review.judge("a", "bad", "chosen")
    gold = gold_of(RunFolder(tmp_path), dataset({"a": "good", "b": "good"}))
    assert labels_of(gold) == {"a": "bad", "b": "good"}
    assert names(gold, "random_sample") == names(gold, "assumed") == "ab"


def test_conflicts_skipped_rows_and_verdicts_taken_back_are_not_gold(tmp_path: Path) -> None:
    review = Reviewing(tmp_path, ITEMS)
    review.judge("a", "bad")
    review.judge("a", "good", reviewer="ben")
    review.judge("b", None)
    review.undo(review.judge("c", "good"))
    review.judge("d", "good")
    review.judge("d", "bad", reviewer="ben")
    review.judge("d", "bad", "conflicts")
    gold = gold_of(RunFolder(tmp_path), dataset())
    assert labels_of(gold) == {"d": "bad"}
    counts = gold.verdicts.counts
    assert (counts["rows"], counts["in_conflict"], counts["skipped"]) == (3, 1, 1)
    said = "3 rows were reviewed by people: 1 to learn from, 0 of them drawn at random"
    assert gold.verdicts.sentence == f"{said}; 1 on which people differ; 1 skipped"


def test_a_row_drawn_for_an_audit_is_not_learned_from_whoever_labels_it_later(tmp_path: Path) -> None:
    review = Reviewing(tmp_path, ITEMS)
    review.judge("c", "good", "doubtful")  # known before the audit draws it
    for name in "abcd":
        review.draw(name, "audit")
    review.judge("a", "good", "audit")
    review.judge("b", "bad", "audit")
    review.judge("b", "good", "chosen")
    review.draw("a", "learn")
    found = read_verdicts(RunFolder(tmp_path), dataset())
    assert {ITEMS[row].id for row in found.gold} == {"a", "c"}
    assert {ITEMS[row].id for row in found.audited} == {"b", "d"}
    assert found.counts["audited"] == 1


def test_an_audit_counts_rows_from_the_beginning_of_its_order_on(tmp_path: Path) -> None:
    review = Reviewing(tmp_path, ITEMS)
    ids = [item.id for item in ITEMS]
    order = audit_order(ids)
    for name in (*order[:4], order[5]):
        review.draw(name, "audit")
        review.judge(name, None if name == order[1] else "good", "audit")
    found = read_verdicts(RunFolder(tmp_path), dataset())
    rows = {name: ids.index(name) for name in order}

    def checked(*accepted: str) -> list[str]:
        return [ids[row] for row in found.audit_labels(ids, [rows[name] for name in accepted])]

    assert checked(*order) == [order[0], order[2], order[3]]
    assert checked(*order[:4], *order[5:]) == [order[0], order[2], order[3], order[5]]
    assert checked(order[7], order[0]) == [order[0]]
    assert ReviewVerdicts().audit_labels(ids, range(8)) == {}


def test_verdicts_on_other_texts_and_rows_are_left_out_with_a_warning(tmp_path: Path) -> None:
    other = Reviewing(tmp_path, [Item(id="a", text="another text"), Item(id="z", text="gone")])
    other.draw("z", "audit")
    other.judge("a", "good")
    other.judge("z", "good")
    with pytest.warns(PcsWarning, match=r"texts that have changed are not used: 1 \('a'\)"):
        assert not read_verdicts(RunFolder(tmp_path), dataset()).by_row


def test_verdicts_until_an_event_are_those_that_a_fit_has_seen(tmp_path: Path) -> None:
    review = Reviewing(tmp_path, ITEMS)
    number = review.judge("a", "good")
    review.judge("b", "good")
    assert labels_of(gold_of(RunFolder(tmp_path), dataset(), number)) == {"a": "good"}
    assert read_verdicts(RunFolder(tmp_path), dataset(), 0) == ReviewVerdicts()


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """A run of 300 rows without gold."""
    return copy_run(simulated_once(tmp_path_factory, 300, 0), tmp_path / "run")


def truth(name: str) -> str:
    return truth_of(int(name.removeprefix("t")))


def other_label(name: str) -> str:
    return {"good": "bad", "bad": "good"}[truth(name)]


def reviewing(folder: Path) -> Reviewing:
    return Reviewing(folder, Run.open(folder).dataset.items)


def review_at_random(review: Reviewing, rows: int) -> None:
    for reached, name in enumerate(review.order[:rows], 1):
        review.draw(name, "random", reached)
        review.judge(name, truth(name))


def certificate_of(result: RunResult) -> Certificate:
    assert result.learned.model.certificate is not None
    return result.learned.model.certificate


def test_the_final_label_of_a_row_on_which_coders_agree_is_theirs(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=60, gold_rows=30, coders=("anna", "ben"))
    with Review.open(tmp_path / "run", ReviewOptions(refit_every=0, seed=1)) as review:
        judge(review, "random", "good")
    fit_run(tmp_path / "run")
    rows = read_csv(tmp_path / "run" / "labels.csv")
    agreed = rows[1:30]
    assert any(row["pcs_label"] != row["gold_anna"] for row in agreed)
    assert [row["pcs_final_label"] for row in agreed] == [row["gold_anna"] for row in agreed]
    assert rows[0]["pcs_final_label"] == rows[0]["pcs_label"]


def test_a_fit_learns_from_verdicts_and_labels_tell_people_and_models_apart(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MOST_ROWS", 300)
    review = reviewing(folder)
    review_at_random(review, 100)
    review.judge(review.order[150], other_label(review.order[150]), "chosen", "ben")
    result = fit_run(folder)
    assert certificate_of(result).holds
    assert certificate_of(result).gold_rows == 100
    assert result.learned.model.gold_rows == 101
    assert certificate_of(result).assumed_rows == 0
    rows = {row["id"]: row for row in read_csv(folder / "labels.csv")}
    for name, row in rows.items():
        if name in review.order[:100]:
            assert (row["pcs_verdict"], row["pcs_reviewer"], row["pcs_final_label"]) == (
                truth(name),
                "anna",
                truth(name),
            )
        elif name != review.order[150]:
            assert (row["pcs_verdict"], row["pcs_reviewer"], row["pcs_final_label"]) == ("", "", row["pcs_label"])
    corrected = rows[review.order[150]]
    assert (corrected["pcs_reviewer"], corrected["pcs_final_label"]) == ("ben", other_label(review.order[150]))
    page = render(result)
    assert "101 rows reviewed" in section_of_header(page)
    listed = section(page, "rows")
    assert "reviewed by people 101" in listed
    assert "labelled by models alone 199" in listed


def section_of_header(page: str) -> str:
    return Page(page[page.index("<header") : page.index("</header>") + len("</header>")]).text


def test_what_a_review_draws_and_audits_is_what_a_fit_reads(folder: Path) -> None:
    right = ReviewOptions(refit_every=0, seed=2)
    with Review.open(folder, right) as review:
        for number in range(110):
            judge(review, "learn" if number < 40 else "random", lambda shown: truth(shown.id))
    reached = max(event.reached for event in read_events(RunFolder(folder).draws) if isinstance(event, Draw))
    promised = fit_run(folder)
    assert promised.verdicts.counts["learned_from"] == 110
    assert promised.verdicts.counts["at_random"] == certificate_of(promised).gold_rows == reached >= 70
    with Review.open(folder, right) as review:
        for _ in range(30):
            judge(review, "audit", lambda shown: truth(shown.id))
    audited = fit_run(folder)
    assert the(certificate_of(audited).audit).rows == audited.verdicts.counts["audited"] == 30
    assert certificate_of(audited).fingerprint == certificate_of(promised).fingerprint


def test_the_command_says_how_many_verdicts_were_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    review = reviewing(folder)
    review_at_random(review, 20)
    review.judge(review.order[30], None, "doubtful")
    assert main(["fit", str(folder), "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["verdicts"]
    assert (counts["rows"], counts["learned_from"], counts["at_random"], counts["skipped"]) == (21, 20, 20, 1)
    assert main(["fit", str(folder), "--details"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "21 rows were reviewed by people: 20 to learn from, 20 of them drawn at random; 1 skipped" in said


def test_verdicts_after_a_fit_leave_its_promise_in_force_until_the_next_fit(folder: Path) -> None:
    review = reviewing(folder)
    review_at_random(review, 100)
    fit_run(folder)
    review.judge(review.order[200], "good", "doubtful")
    opened = open_run(folder)
    assert certificate_of(opened).holds
    assert opened.verdicts.counts["rows"] == 101
    review.undo(2)
    assert certificate_of(open_run(folder)).holds
    assert "have no gold label now" in certificate_of(fit_run(folder)).why_not


def test_people_who_differ_about_a_row_do_not_end_a_promise(folder: Path) -> None:
    review = reviewing(folder)
    review_at_random(review, 100)
    fit_run(folder)
    review.judge(review.order[0], other_label(review.order[0]), reviewer="ben")
    certificate = certificate_of(fit_run(folder))
    assert (certificate.gold_rows, certificate.undecided_rows) == (100, 1)
    assert "no gold label" not in certificate.why_not


@pytest.mark.parametrize(("right", "finding"), [(True, "confirmed"), (False, "revoked")])
def test_an_audit_in_a_review_confirms_or_revokes_the_promise(folder: Path, right: bool, finding: str) -> None:
    review = reviewing(folder)
    review_at_random(review, 100)
    promised = fit_run(folder)
    outcomes = {one.id: one for one in promised.outcomes}
    known = set(review.order[:100])
    accepted = [name for name in audit_order(outcomes) if outcomes[name].decision == "accept" and name not in known]
    for name in accepted[:60]:
        label = outcomes[name].label
        review.draw(name, "audit")
        review.judge(name, label if right else {"good": "bad", "bad": "good"}[label or ""], "audit")
    result = fit_run(folder)
    found = the(certificate_of(result).audit)
    assert (found.rows, found.wrong, found.finding) == (60, 0 if right else 60, finding)
    assert result.learned.model.gold_rows == 100
    assert any(one.decision == "accept" for one in result.outcomes) == right
    assert result.verdicts.counts["audited"] == 60
    assert certificate_of(fit_run(folder)).audit == found


def test_an_earlier_audit_of_more_rows_stays(folder: Path) -> None:
    review = reviewing(folder)
    review_at_random(review, 100)
    recorded = Run.open(folder)
    result = fit_run(folder)
    certificate = certificate_of(result)
    earlier = replace(certificate, audit=audit(certificate.promise, 500, 3))
    outcomes = {one.id: one for one in result.outcomes}
    known = set(review.order[:100])
    first = next(n for n in audit_order(outcomes) if outcomes[n].decision == "accept" and n not in known)
    review.draw(first, "audit")
    review.judge(first, "good", "audit")
    gold = gold_of(RunFolder(folder), recorded.dataset)
    model = replace(result.learned.model, certificate=earlier)
    assert with_reviewed_audit(model, recorded.votes, gold.verdicts, gold.labels) is model
