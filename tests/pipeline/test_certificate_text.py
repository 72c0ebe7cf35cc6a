from __future__ import annotations

from dataclasses import replace

import pytest

from pcs_annotator.judging.promising.acceptance import EVERY_LABEL, Promise
from pcs_annotator.judging.promising.auditing import audit
from pcs_annotator.judging.promising.certificate import Certificate, no_promise
from pcs_annotator.pipeline.certificate_text import promised

PROMISE = Promise(max_error=0.05)
HOLDING = Certificate(promise=PROMISE, gold_rows=100, thresholds={EVERY_LABEL: 0.9123}, split="100 gold rows")


def test_a_promise_is_one_sentence_and_what_it_rests_on() -> None:
    told = promised(HOLDING)
    assert told.headline == "promise: at most 5 % of the accepted labels are wrong, with 90 % certainty"
    assert told.details == ("accepted from a confidence of 0.912 on", "rests on 100 gold rows")


def test_no_promise_says_why() -> None:
    told = promised(no_promise(PROMISE, 3, "3 gold rows are too few"))
    assert told.headline == (
        "no promise that at most 5 % of the accepted labels are wrong, with 90 % certainty: 3 gold rows are too few"
    )
    assert told.details == ()


def test_a_promise_per_label_names_every_threshold() -> None:
    by_label = replace(HOLDING, promise=replace(PROMISE, per_label=True), thresholds={"bad": 0.8, "good": 0.95})
    told = promised(by_label)
    assert told.headline.endswith(", for every label by itself")
    assert told.details[0] == "accepted from a confidence of: bad 0.800, good 0.950; other labels never"


def test_the_other_promise_has_other_words_and_says_that_it_is_weaker() -> None:
    told = promised(replace(HOLDING, promise=replace(PROMISE, kind="accepted-and-wrong", max_error=0.125)))
    assert told.headline == "promise: at most 12.5 % of all rows are accepted and wrong"
    assert any("holds on average" in detail for detail in told.details)


@pytest.mark.parametrize(
    ("wrong", "words"), [(0, "an audit confirms it"), (2, "neither confirms nor revokes it yet"), (30, "revokes it")]
)
def test_an_audit_is_told_in_numbers(wrong: int, words: str) -> None:
    told = promised(replace(HOLDING, audit=audit(PROMISE, 0.5, 60, wrong)))
    said = told.headline if wrong == 30 else told.details[-1]
    assert words in said
    assert f"{wrong} of 60 accepted rows were wrong" in said
    assert told.headline.startswith("no promise") == (wrong == 30)
