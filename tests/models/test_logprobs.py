"""Log-probabilities as servers send them, and as the ledger stores them."""

from math import inf, isnan, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.core.chat import TokenPosition
from pcs_annotator.models.logprobs import NOT_MARKED, OTHER_TEXT, UNKNOWN_FORM, pack, part_of, read_logprobs, unpack


def entry(token: str, log: float = -0.01, raw: bytes | None = None, **others: float) -> dict[str, Any]:
    """A token as OpenAI sends it; keywords are the other tokens."""
    tops = [top(token, log, raw), *(top(other, its) for other, its in others.items())]
    return {**top(token, log, raw), "top_logprobs": tops}


def top(token: str, log: float, raw: bytes | None = None) -> dict[str, Any]:
    return {"token": token, "logprob": log, "bytes": list(token.encode() if raw is None else raw)}


def read(entries: object, text: str) -> tuple[TokenPosition, ...] | str | None:
    return read_logprobs({"logprobs": {"content": entries}}, text)


def kept(entries: list[dict[str, Any]], text: str) -> list[str]:
    found = read(entries, text)
    assert isinstance(found, tuple), found
    return [position.token for position in found]


@pytest.mark.parametrize(
    ("tokens", "text", "expected"),
    [
        (["<", "label", ">", "pos", "itive", "</", "label", ">"], None, ["pos", "itive", "</"]),
        (["<label", ">pos", "itive</", "label>"], None, [">pos", "itive</"]),
        (["< Label", " >", "pos", "</ label>"], None, ["pos", "</ label>"]),
        (["{", '"answer', '":', ' "', "positive", '"}'], None, [' "', "positive", '"}']),
        (['{"', "label", '":["', "pos", '"]', "}"], None, ['":["', "pos", '"]']),
        (["positive"], None, ["positive"]),
        (["positive", "<|im_end|>"], "positive", ["positive", "<|im_end|>"]),
        (["e", "<|end|>"], "e", ["e", "<|end|>"]),
        ([" ", "positive", ""], "positive", ["positive", ""]),
        (["<think>", "hm", "</think>", "\n", "positive"], "positive", ["positive"]),
        (["<label>", "a", "</label>", " no, ", "<label>", "b", "</label>"], None, ["b", "</label>"]),
        (
            ["<", "tone", ">", "co", "ld", "</", "tone", ">\n", "<topic>", "tax", "</topic>"],
            None,
            ["<tone>", "co", "ld", "</", "<topic>", "tax", "</topic>"],
        ),
        (
            ["<think>", "<tone>", "warm", "</tone>", "</think>", "<Tone>", "cold", "</Tone>"],
            None,
            ["<tone>", "cold", "</Tone>"],
        ),
        (
            ['{"', "tone", '": "', "warm", '", "', "topic", '":["', "tax", '"]}'],
            None,
            ["<tone>", '": "', "warm", '", "', "<topic>", '":["', "tax", '"]}'],
        ),
        (["<tone>", "warm", "</tone>", " no, ", "<tone>", "cold"], None, ["<tone>", "cold"]),
        (["very ", "good ", "news ", "of "] * 5, None, ["very ", "good ", "news ", "of "] * 3),
    ],
)
def test_only_the_tokens_of_the_answer_are_kept(tokens: list[str], text: str | None, expected: list[str]) -> None:
    assert kept([entry(token) for token in tokens], "".join(tokens) if text is None else text) == expected


def test_the_answer_to_one_of_several_questions_is_found_by_its_name() -> None:
    tokens = ["<tone>", "warm", "</tone>", "<topic>", "tax", "</topic>"]
    found = read([entry(token, -0.2, other=-2.0) for token in tokens], "".join(tokens))
    tax, warm = part_of(found, "Topic"), part_of(found, "tone")
    assert isinstance(tax, tuple)
    assert isinstance(warm, tuple)
    assert [one.token for one in warm] == ["warm", "</tone>"]
    assert tax[0] == TokenPosition("tax", (("tax", -0.2), ("other", -2.0)))
    assert unpack(pack(found)) == found
    assert part_of(found, "frames") == NOT_MARKED
    assert part_of(None, "tone") is None
    assert part_of(OTHER_TEXT, "tone") == OTHER_TEXT


def test_alternatives_include_the_token_that_was_sampled_and_are_rounded() -> None:
    found = read([{**top("b", -3.14159265), "top_logprobs": [top("a", -0.05)]}], "b")
    assert found == (TokenPosition("b", (("a", -0.05), ("b", -3.1416))),)
    assert read([{"token": "b", "logprob": -0.1}], "b") == (TokenPosition("b", ()),)


def test_after_the_answer_alternatives_are_kept_only_if_they_could_have_made_it_longer() -> None:
    good = entry("good", -0.1, Hm=-14.0)
    for log, others in ((-0.2, ((" news", -1.5),)), (-1e-6, ())):
        closing = entry("</", log, None, **{" news": -1.5})
        found = read([entry("<label>"), good, closing, entry("label>")], "<label>good</label>")
        assert found == (
            TokenPosition("good", (("good", -0.1), ("Hm", -14.0))),
            TokenPosition("</", (("</", round(log, 4)), *others)),
        )


@pytest.mark.parametrize("shown", ["\\xe6\\xad", "\ufffd"])
def test_characters_that_tokens_share_are_put_together_from_their_bytes(shown: str) -> None:
    raw = "正".encode()
    entries = [entry("<label>"), entry(shown, raw=raw[:2]), entry("\\xa3", raw=raw[2:]), entry("</label>")]
    half, rest = (part.decode("utf-8", "surrogateescape") for part in (raw[:2], raw[2:]))
    assert kept(entries, "<label>正</label>") == [half, rest, "</label>"]
    without_bytes = [{**entry("\ufffd"), "bytes": None}, {**entry("\ufffd"), "bytes": None}]
    assert read(without_bytes, "正") == OTHER_TEXT


def test_the_older_protocol_is_read_too() -> None:
    logprobs = {
        "tokens": ["<label>", "pos", "</label>"],
        "token_logprobs": [-0.1, -0.2, -0.3],
        "top_logprobs": [{"<label>": -0.1}, {"pos": -0.2, "neg": -1.5}, None],
    }
    expected = (TokenPosition("pos", (("pos", -0.2), ("neg", -1.5))), TokenPosition("</label>", ()))
    assert read_logprobs({"logprobs": logprobs}, "<label>pos</label>") == expected
    tops = logprobs.pop("top_logprobs")
    assert read_logprobs({"logprobs": logprobs, "top_logprobs": tops}, "<label>pos</label>") == expected
    assert read_logprobs({"logprobs": logprobs}, "<label>pos</label>") == (
        TokenPosition("pos", ()),
        TokenPosition("</label>", ()),
    )


@pytest.mark.parametrize(
    "given",
    [
        {"content": "pos"},
        {"content": ["pos"]},
        {"content": [{"logprob": -1.0}]},
        {"content": [{"token": None, "logprob": -1.0}]},
        {"content": [{"token": "pos", "logprob": None, "top_logprobs": [{"token": "neg", "logprob": -1.0}]}]},
        {"content": [{"token": "pos", "logprob": -1.0, "top_logprobs": [{"token": "neg", "logprob": "-1"}]}]},
        {"content": [{"token": "pos", "logprob": -1.0, "top_logprobs": {"neg": -1.0}}]},
        {"content": [{"token": "pos", "logprob": -1.0, "top_logprobs": [[1, 2]]}]},
        {"content": [{"token": "é", "bytes": [999], "logprob": -1.0}]},
        {"tokens": ["pos"], "token_logprobs": []},
        {"tokens": ["pos"]},
        {"tokens": ["pos"], "token_logprobs": [-1.0], "top_logprobs": [["pos", -1.0]]},
        [1, 2],
        "yes",
    ],
)
def test_lists_of_the_wrong_shape_are_noticed(given: object) -> None:
    assert read_logprobs({"logprobs": given}, "pos") in (UNKNOWN_FORM, OTHER_TEXT)


def test_nothing_is_none_and_tokens_of_another_text_are_noticed() -> None:
    assert read_logprobs({"logprobs": None}, "pos") is read_logprobs({"logprobs": {}}, "pos") is None
    assert read(None, "pos") is read([], "pos") is None
    assert read([entry("▁positive")], "positive") != OTHER_TEXT
    assert read([entry("pos"), entry("Ġitive")], "positive") == OTHER_TEXT
    assert read([entry("negative")], "positive") == OTHER_TEXT


TOKENS = st.text(max_size=8) | st.binary(max_size=4).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
LOGS = st.floats(-20, 0).map(lambda log: round(log, 4)) | st.sampled_from([0.0, -9999.0, inf, -inf])
POSITIONS = st.lists(
    st.builds(TokenPosition, TOKENS, st.lists(st.tuples(TOKENS, LOGS), max_size=6).map(tuple)), max_size=4
).map(tuple)


@given(POSITIONS | st.text() | st.none())
def test_what_is_stored_comes_back(logprobs: tuple[TokenPosition, ...] | str | None) -> None:
    assert unpack(pack(logprobs)) == logprobs


def test_what_is_not_a_number_comes_back_as_such() -> None:
    found = unpack(pack((TokenPosition("a", (("a", nan),)),)))
    assert isinstance(found, tuple)
    assert isnan(found[0].alternatives[0][1])
