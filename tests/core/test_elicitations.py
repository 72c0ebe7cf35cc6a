import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.base.errors import UnknownNameError
from pcs_annotator.core.elicitations import (
    PHRASES,
    base_annotator,
    calls_of,
    elicitations,
    elicited_name,
    guesses_of,
    kind_of,
    top_k_kind,
)

KINDS = st.sampled_from(["1s-top-1", "1s-top-2", "2s-top-12", "ling-1s"])


@given(annotator=st.text(min_size=1), kind=KINDS)
def test_annotator_and_kind_are_read_back_from_the_name(annotator: str, kind: str) -> None:
    name = elicited_name(annotator, kind)

    assert (base_annotator(name), kind_of(name)) == (annotator, kind)


@pytest.mark.parametrize("name", ["gemma", "google/gemma-2-9b", "a/1s-top-0", "a/3s-top-2", "/ling-1s", "ling-1s", ""])
def test_plain_annotator_has_no_kind_and_is_its_own_base(name: str) -> None:
    assert (base_annotator(name), kind_of(name)) == (name, "")


@pytest.mark.parametrize("kind", ["", "top-2", "1s-top-0", "3s-top-2", "1s-top-2x", "1s-top-k"])
def test_unknown_kind_is_refused_with_the_known_ones(kind: str) -> None:
    with pytest.raises(UnknownNameError, match=f"{kind!r}.*1s-top-2"):
        elicited_name("gemma", kind)


def test_number_of_guesses_is_part_of_the_kind() -> None:
    assert [guesses_of(top_k_kind(steps, 3)) for steps in (1, 2)] == [3, 3]
    assert [guesses_of(kind) for kind in ("ling-1s", "")] == [1, 1]


def test_answers_in_two_steps_take_two_calls() -> None:
    assert {kind: calls_of(kind) for kind in ("", "1s-top-2", "2s-top-2", "ling-1s")} == {
        "": 1,
        "1s-top-2": 1,
        "2s-top-2": 2,
        "ling-1s": 1,
    }


def test_phrases_go_from_almost_certain_to_almost_no_chance() -> None:
    values = list(PHRASES.values())

    assert len(PHRASES) == 17
    assert next(iter(PHRASES)) == "Almost Certain"
    assert list(PHRASES)[-1] == "Almost No Chance"
    assert values == sorted(values, reverse=True)
    assert 0 < values[-1] < values[0] < 1


def test_a_registered_kind_is_part_of_an_annotators_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Percent:
        calls = 2

    monkeypatch.setitem(elicitations._factories, "percent", Percent)
    assert elicited_name("groq:gemma", "percent") == "groq:gemma/percent"
    assert kind_of("groq:gemma/percent") == "percent"
    assert base_annotator("groq:gemma/percent") == "groq:gemma"
    assert calls_of("percent") == 2
