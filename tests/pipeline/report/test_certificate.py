from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.promising.auditing import Audit
from pcs_annotator.pipeline.report.page import render
from pcs_annotator.pipeline.run_folder import RunResult
from tests.pipeline.report.reading import Page
from tests.pipeline.report.results import QUICK, Made, made_run

LENIENT = replace(QUICK, max_error=0.3, certainty=0.8)


def shown(result: RunResult) -> str:
    text = Page(render(result)).text
    return text[text.index("Settings Certificate") : text.index("How good it is")]


def audited(result: RunResult, audit: Audit) -> RunResult:
    certificate = result.learned.model.certificate
    assert certificate is not None
    model = replace(result.learned.model, certificate=replace(certificate, audit=audit))
    return replace(result, learned=replace(result.learned, model=model), outcomes=list(model.judge(result.votes)))


def test_a_promise_that_holds_is_told_with_everything_it_rests_on(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=90, learn=LENIENT))
    certificate = result.learned.model.certificate
    assert certificate is not None
    assert certificate.fingerprint is not None
    told = shown(result)
    assert "promise holds At most 30 % of the accepted labels are wrong, with 80 % certainty" in told
    assert "Accepted from a confidence of" in told
    assert "Rests on 90 gold rows in 5 folds" in told
    assert "gold rows behind it 90" in told
    assert certificate.fingerprint.votes in told
    accepted = sum(outcome.decision == "accept" for outcome in result.outcomes)
    assert f"accepted ({accepted})" in told
    assert 0 < accepted <= 90


def test_without_a_promise_it_says_why_and_how_many_rows_it_would_take(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(learn=replace(QUICK, max_error=0.05)))
    certificate = result.learned.model.certificate
    assert certificate is not None
    assert certificate.rows_needed is not None
    told = shown(result)
    assert "no promise No promise that at most 5 % of the accepted labels are wrong" in told
    assert "40 gold rows are too few" in told
    assert f"gold rows it would take about {certificate.rows_needed:,}" in told
    assert "100 % to review (40)" in told


@pytest.mark.parametrize(
    ("finding", "stamp", "sentence"),
    [
        ("confirmed", "confirmed by audit At most 30 %", "An audit confirms it: 1 of 50"),
        ("revoked", "revoked by audit No promise that at most 30 %", "An audit revokes it: 1 of 50"),
        ("open", "promise holds At most 30 %", "An audit neither confirms nor revokes it yet: 1 of 50"),
    ],
)
def test_what_an_audit_found_is_the_first_thing_told(finding: str, stamp: str, sentence: str, tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=90, learn=LENIENT))
    audit = Audit(rows=50, wrong=1, limit=0.3, error=Interval(0.0, 0.1), finding=finding)  # type: ignore[arg-type]  # a parameter is a str
    told = shown(audited(result, audit))
    assert stamp in told
    assert sentence in told


def test_labels_accepted_by_agreement_are_called_uncalibrated(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(gold=False))
    told = shown(result)
    assert "uncalibrated Accepted by agreement only, with no promise" in told
    assert "models can agree and be wrong together" in told
    assert "gold rows behind it" not in told
    assert "accepted by agreement, no promise" in Page(render(result)).text


def test_where_nobody_asked_for_a_promise_nothing_is_accepted_or_refused(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(learn=replace(QUICK, max_error=None)))
    told = shown(result)
    assert "no promise Nothing is promised" in told
    assert "--max-error 0.05" in told
    assert "to review" not in told


def test_rows_without_label_are_a_part_of_their_own(tmp_path: Path) -> None:
    told = shown(made_run(tmp_path, Made(votes=False, rows=12)))
    assert "100 % no label (12)" in told
    assert "to review (" not in told


def test_the_accepted_share_is_among_the_first_numbers(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=90, learn=LENIENT))
    accepted = sum(outcome.decision == "accept" for outcome in result.outcomes)
    left = 90 - accepted
    assert f"accepted {left} row{'s' * (left != 1)} left to a person" in Page(render(result)).text
