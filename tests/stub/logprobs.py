"""The log-probabilities of the stub's answers: tokens as servers send them, with probabilities that tests know."""

import json
import math
import re
from functools import lru_cache
from typing import Any

from tests.stub.answers import Answer
from tests.stub.behaviour import pick
from tests.stub.questions import Question

OTHER_WORDS = 0.02
"""The share of the probability that goes to no label."""
CAPITALISED = 0.03
"""The share of a label's probability that goes to it with a capital first letter."""
NEVER = -9999.0
_PIECES = re.compile(r"</|\{\"|\"\}|\": ?\"|\s?\w+|[^\w\s]|\s")
_FILLERS = ("The", " the", "It", "\n", "This", "mixed", "**", "Based", "unknown", "\\u00e9", "None", "Text", "1", "_",
            "I", " a", "Sentiment", "!", "Positive,", "neither")  # fmt: skip


def probabilities(question: Question, chosen: str, labels: tuple[str, ...]) -> dict[str, float]:
    """Return label → the probability that the stub gives to it: more than half to the one that it answers."""
    # few different weights, so that answers can be cached: a slow server would distort benchmarks of its client
    weights = {label: 1 + 7 * pick(4, question.model, question.text, label) for label in labels}
    weights[chosen] = sum(weights.values())
    total = sum(weights.values())
    return {label: (1 - OTHER_WORDS) * weight / total for label, weight in weights.items()}


def logprobs(question: Question, answer: Answer, labels: tuple[str, ...], *, sampled: bool) -> str:
    """Return the log-probabilities of an answer as JSON; `sampled` reports the choice made, instead of the model's."""
    asked = dict(question.parts)
    lines = tuple((Answer(f"<{name}>{label}</{name}>", label=label), asked[name]) for name, label in answer.parts)
    shares = tuple(
        (line, tuple(probabilities(question, line.label, some).items()) if line.label else ())
        for line, some in lines or ((answer, labels),)
    )
    return _json(shares, question.top_logprobs, sampled, question.counted)


Shares = tuple[tuple[str, float], ...]


@lru_cache(maxsize=4096)
def _json(lines: tuple[tuple[Answer, Shares], ...], count: int, sampled: bool, counted: bool) -> str:
    tokens: list[dict[str, Any]] = []
    for line, shares in lines:
        tokens += [_entry("\n", _certain("\n"), count)] if tokens else []
        tokens += _content(line, dict(shares), count)
    if sampled:
        tokens = _after_sampling(tokens)
    return json.dumps(_counted(tokens) if counted else {"content": tokens, "refusal": None}, separators=(",", ":"))


def _content(answer: Answer, shares: dict[str, float], count: int) -> list[dict[str, Any]]:
    if not answer.label:
        return [_entry(piece, _certain(piece), count) for piece in _pieces(answer.text)]
    before, _, after = answer.text.partition(answer.label)
    closing = (_pieces(after) or ("",))[0]
    found = [_entry(piece, _certain(piece), count) for piece in _pieces(before)]
    said: tuple[str, ...] = ()
    for piece in _pieces(answer.label):
        found.append(_entry(piece, _choices(shares, said, closing), count))
        said += (piece,)
    ending = _choices(shares, said, closing)
    return found + [
        _entry(piece, ending if place == 0 else _certain(piece), count) for place, piece in enumerate(_pieces(after))
    ]


def _counted(tokens: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "tokens": [token["token"] for token in tokens],
        "token_logprobs": [token["logprob"] for token in tokens],
        "top_logprobs": [{top["token"]: top["logprob"] for top in token["top_logprobs"]} for token in tokens],
    }


def _after_sampling(tokens: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for token in tokens:
        for top in token["top_logprobs"]:
            top["logprob"] = 0.0 if top["token"] == token["token"] else NEVER
        token["logprob"] = 0.0
    return tokens


@lru_cache(maxsize=1024)
def _pieces(text: str) -> tuple[str, ...]:
    return tuple(_PIECES.findall(text))


def _choices(shares: dict[str, float], said: tuple[str, ...], closing: str) -> dict[str, float]:
    """Return token → probability after some tokens of a label."""
    found: dict[str, float] = {}
    for label, share in shares.items():
        pieces = (*_pieces(label), closing)
        if pieces[: len(said)] == said:
            following = pieces[len(said)]
            found[following] = found.get(following, 0.0) + share
    if not said:
        for token, share in list(found.items()):
            if token.capitalize() not in found:
                found[token], found[token.capitalize()] = (1 - CAPITALISED) * share, CAPITALISED * share
        return {**found, _FILLERS[0]: OTHER_WORDS}
    total = sum(found.values())
    return {token: share / total for token, share in found.items()}


def _certain(piece: str) -> dict[str, float]:
    return {piece: 0.99998}


def _entry(token: str, choices: dict[str, float], count: int) -> dict[str, Any]:
    logs = {other: round(math.log(share), 8) for other, share in choices.items()}
    for place, filler in enumerate(_FILLERS):
        if len(logs) >= count:
            break
        logs.setdefault(filler, -14.5 - place / 3)
    tops = sorted(logs.items(), key=lambda pair: -pair[1])[:count]
    return {**_top(token, logs[token]), "top_logprobs": [_top(*pair) for pair in tops]}


def _top(token: str, log: float) -> dict[str, Any]:
    return {"token": token, "logprob": log, "bytes": list(token.encode())}
