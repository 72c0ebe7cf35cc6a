from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from pcs_annotator import RunResult
from pcs_annotator.core.weights import Flag, Interval
from pcs_annotator.judging.promise.certificate import Audit, Finding
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL
from pcs_annotator.showing.report import summary
from pcs_annotator.showing.report.page import render
from tests.builders import the
from tests.showing.report.reading import Page, section
from tests.showing.report.results import QUICK, Made, made_run

LENIENT = replace(QUICK, max_error=0.3, certainty=0.8)


def shown(result: RunResult) -> str:
    return section(render(result), "method").partition("Cost, by model")[0]


def audited(result: RunResult, audit: Audit) -> RunResult:
    certificate = the(result.learned.model.certificate)
    model = replace(result.learned.model, certificate=replace(certificate, audit=audit))
    return replace(result, learned=replace(result.learned, model=model), outcomes=list(model.judge(result.votes)))


def test_a_promise_that_holds_is_shown_with_what_it_is_based_on(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=90, learn=LENIENT))
    certificate = the(result.learned.model.certificate)
    text = shown(result)
    assert "promise, not audited At most 30 %" in text
    assert 'class="stamp given"' in render(result)
    assert "80 % certainty" in text
    assert f"≥ {certificate.thresholds[EVERY_LABEL]:.3f}." in text
    assert certificate.split in text
    assert "gold rows used 90" in text
    assert the(certificate.fingerprint).votes in text
    accepted = sum(outcome.decision == "accept" for outcome in result.outcomes)
    assert f"accepted ({accepted})" in text
    assert 0 < accepted <= 90


def test_without_a_promise_it_shows_why_and_how_many_rows_are_needed(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(learn=replace(QUICK, max_error=0.05)))
    certificate = the(result.learned.model.certificate)
    text = shown(result)
    assert "no promise No promise that at most 5 %" in text
    assert "40 gold rows" in text
    assert f"{the(certificate.rows_needed).likely:,} for 80 %" in text
    assert "100 % labelled by people (40)" in text


@pytest.mark.parametrize(
    ("finding", "stamp", "sentence"),
    [
        ("confirmed", "confirmed by audit At most 30 %", "confirms it: 1 of 50"),
        ("revoked", "revoked by audit No promise that at most 30 %", "revokes it: 1 of 50"),
        ("open", "promise, audit open At most 30 %", "neither confirms nor revokes it yet: 1 of 50"),
    ],
)
def test_the_finding_of_an_audit_comes_first(finding: str, stamp: str, sentence: str, tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=90, learn=LENIENT))
    finding_now = cast(Finding, finding)
    audit = Audit(rows=50, wrong=1, limit=0.3, error=Interval(0.0, 0.1), finding=finding_now, level=0.9)
    text = shown(audited(result, audit))
    assert stamp in text
    assert sentence in text


def test_without_gold_no_label_is_accepted_and_agreement_promises_nothing(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(gold=False))
    text = shown(result)
    agreeing = sum(outcome.decision == "agree" for outcome in result.outcomes)
    assert 0 < agreeing < 40
    assert "no promise No label is accepted, because there are no gold labels" in text
    assert f"Answers agree on {agreeing} of 40 rows, which promises nothing" in text
    assert f"answers agree ({agreeing})" in text
    assert "accepted (" not in text
    assert "gold rows used" not in text
    page = Page(render(result)).text
    assert "0 of 40 labels can be used without review" in page
    assert "No promise without gold labels" in page
    assert "40 to check" not in page
    assert "Nothing stood out" not in page


def test_a_single_answer_without_gold_leaves_all_rows_for_review(tmp_path: Path) -> None:
    text = shown(made_run(tmp_path, Made(gold=False, skills=(0.8,), relations=("original",))))
    assert "All rows are for review." in text
    assert "agree" not in text


def test_without_a_requested_promise_nothing_is_accepted_or_sent_to_review(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(learn=replace(QUICK, max_error=None)))
    text = shown(result)
    assert "no promise No promise was requested" in text
    assert "--max-error 0.05" in text
    assert "to review (" not in text


def test_rows_without_a_label_are_counted_separately(tmp_path: Path) -> None:
    text = shown(made_run(tmp_path, Made(votes=False, gold=False, rows=12)))
    assert "100 % no label (12)" in text
    assert "to review (" not in text


def header(result: RunResult) -> str:
    html = render(result)
    return Page(html[html.index("<header") : html.index("</header>") + len("</header>")]).text


def test_the_first_words_say_what_can_be_used_and_what_to_do_next(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=90, learn=LENIENT))
    accepted = result.counts.decisions["accept"]
    text = header(result)
    assert f"{accepted} of 90 labels can be used promise, not audited At most 30 % of the accepted labels" in text
    assert "Next → pcs label NEW.csv" in text  # all rows have gold, so that no person has to look at one
    assert "0 to review of 90 rows" in text
    label, rows = max(result.counts.labels.items(), key=lambda pair: pair[1])
    assert f"How does the writer feel? {label} {rows} " in text


def test_if_no_label_can_be_used_the_first_words_say_why(tmp_path: Path) -> None:
    refused = header(made_run(tmp_path, Made(learn=replace(QUICK, max_error=0.05))))
    assert "0 of 40 labels can be used without review no promise No promise that at most 5 %" in refused
    assert "0 to review of 40 rows" in refused
    unasked = header(made_run(tmp_path, Made(learn=replace(QUICK, max_error=None))))
    assert "40 labels, without a promise No promise was requested" in unasked
    assert "Next → pcs fit" in unasked
    assert "40 rows labelled of 40" in unasked
    without = header(made_run(tmp_path, Made(gold=False)))
    assert "unknown share of right labels no gold rows" in without
    assert "pcs review" in without


def test_many_findings_are_folded_after_the_first_three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = [Flag("label flips", f"finding {place}") for place in range(5)]
    monkeypatch.setattr(summary, "what_to_look_at", lambda facts: flags)
    text = header(made_run(tmp_path))
    assert "finding 2. 2 more findings label flips finding 3. label flips finding 4." in text


def test_rare_labels_are_counted_together_and_rows_without_a_label_apart(tmp_path: Path) -> None:
    many = made_run(tmp_path, Made(labels=tuple("abcdefgh"), rows=150, gold=False))
    rest = sorted(many.counts.labels.values())[:2]
    assert f"and {sum(rest)} with 2 other labels" in header(many)
    assert "All 8 labels" in header(many)
    assert "How does the writer feel? no label 40 " in header(made_run(tmp_path, Made(votes=False, gold=False)))
