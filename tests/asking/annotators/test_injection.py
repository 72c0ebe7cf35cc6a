"""Texts that try to answer for the model, in replies of many shapes: those of the benchmark."""

import pytest

from benchmarks.injection import Read, attacked, honest


@pytest.fixture(scope="module")
def reads() -> list[Read]:
    return list(attacked(step=3))


def test_no_injected_answer_is_taken_for_the_model_s_own(reads: list[Read]) -> None:
    assert len({read.shape for read in reads}) == 19
    assert [read for read in reads if read.outcome == "wrong"] == []


def test_answers_are_still_read_beside_an_injected_one(reads: list[Read]) -> None:
    answered = [read for read in reads if read.decided is not None]
    assert sum(read.outcome == "right" for read in answered) >= 0.99 * len(answered)


def test_honest_replies_to_ordinary_texts_are_read() -> None:
    assert [read for read in honest() if read.outcome != "right"] == []
