"""The stub's decisions, without a socket."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.stub import Behaviour, StubServer
from tests.stub.behaviour import Dice, TokenBucket
from tests.stub.questions import fenced, read_question
from tests.stub.talking import question


@pytest.mark.parametrize(
    "message",
    [
        "ab12cd34\nsome\ntext\nab12cd34",
        "Between ab12cd34 lines:\n=== ab12cd34 ===\nsome\ntext\n=== end ab12cd34 ===\nNow answer.",
        "<text-ab12cd34>\nsome\ntext\n</text-ab12cd34>",
        "<text-ab12cd34>some\ntext</text-ab12cd34>",
        "some\ntext",
    ],
)
def test_text_is_found_between_many_kinds_of_markers(message: str) -> None:
    assert fenced(message) == "some\ntext"


def test_labels_are_found_in_a_list() -> None:
    body = question(system="Answer <label>NAME</label> with one of:\n- good: all is well\n- bad: it is not\n")
    assert read_question(body, "/").labels == ("good", "bad")


def test_retries_of_a_question_get_fresh_decisions() -> None:
    dice = Dice(Behaviour(share_500=0.5))
    kinds = Counter(dice.draw(b"question", attempt)[0] for attempt in range(1000))
    assert 400 < kinds["500"] < 600


def test_jitter_is_drawn_by_hash() -> None:
    dice = Dice(Behaviour(latency_s=1, jitter_s=1))
    delays = [dice.draw(b"%d" % number, 0)[1] for number in range(1000)]
    assert delays == [dice.draw(b"%d" % number, 0)[1] for number in range(1000)]
    assert 1 <= min(delays) < 1.1
    assert 1.9 < max(delays) <= 2


def test_token_bucket_allows_its_rate_and_no_more() -> None:
    now = 0.0
    bucket = TokenBucket(100, 10, lambda: now)
    passed = 0
    for step in range(3000):  # 1,000 calls per second for 3 seconds
        now = step / 1000
        passed += not bucket.take()
    assert 305 <= passed <= 311
    assert bucket.take() == pytest.approx(0.01, abs=0.01)


def test_shares_and_addresses_are_checked() -> None:
    with pytest.raises(ValueError, match="at most 1"):
        Behaviour(share_429=0.7, share_500=0.7)
    with pytest.raises(ValueError, match=r"127\.0\.0\.1 only"):
        StubServer(host="0.0.0.0")
    with pytest.raises(ValueError, match="no such behaviour: latency;"):
        Behaviour().changed({"latency": 1})
