"""Names and numbers, shared by asking and judging, for annotators that also state how sure they are.

An elicited annotator has its own name in the votes, `<annotator>/<kind>`: its codes hold the best guess, and
`Votes.stated` the probabilities that it gave.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pcs_annotator.base.errors import UnknownNameError
from pcs_annotator.base.registry import Registry

elicitations: Registry[Any] = Registry(
    "elicitation", "pcs_annotator.elicitations", ["pcs_annotator.asking.annotators.elicitation"]
)
"""Every kind, users' own included; `asking/annotators/elicitation.py` says what each must do."""

LING_1S = "ling-1s"

_BUILT_IN = frozenset({"", LING_1S, "1s-top-k", "2s-top-k"})
_TOP_K = re.compile(r"([12])s-top-([1-9]\d{0,2})")

PHRASES: Mapping[str, float] = MappingProxyType(
    {
        "Almost Certain": 0.92,
        "Highly Likely": 0.87,
        "Very Good Chance": 0.81,
        "We Believe": 0.75,
        "Likely": 0.71,
        "Probably": 0.69,
        "Probable": 0.68,
        "Better than Even": 0.58,
        "About Even": 0.51,
        "Probably Not": 0.25,
        "We Doubt": 0.22,
        "Unlikely": 0.21,
        "Improbable": 0.17,
        "Chances are Slight": 0.14,
        "Little Chance": 0.13,
        "Highly Unlikely": 0.11,
        "Almost No Chance": 0.07,
    }
)
"""Phrase → probability: the mean of 123 answers to W. Fagen-Ulmschneider's survey *Perception of Probability Words*."""


def top_k_kind(steps: int, k: int) -> str:
    """Return the name of the kind that asks for k guesses with probabilities, in one or two steps.

    >>> top_k_kind(2, 4)
    '2s-top-4'
    """
    return _checked(f"{steps}s-top-{k}")


def elicited_name(annotator: str, kind: str) -> str:
    """Return the name in the votes of an annotator that is asked in that way.

    >>> elicited_name("groq:llama-3.1-8b", "ling-1s")
    'groq:llama-3.1-8b/ling-1s'
    """
    return f"{annotator}/{_checked(kind)}"


def kind_of(name: str) -> str:
    """Return the kind in an annotator's name; empty for an annotator that gives labels only.

    >>> kind_of("google/gemma-2-9b/1s-top-2"), kind_of("google/gemma-2-9b")
    ('1s-top-2', '')
    """
    base, _, kind = name.rpartition("/")
    return kind if base and _is_kind(kind) else ""


def base_annotator(name: str) -> str:
    """Return the name without its kind; a name without a kind is returned unchanged.

    >>> base_annotator("google/gemma-2-9b/1s-top-2")
    'google/gemma-2-9b'
    """
    kind = kind_of(name)
    return name.removesuffix(f"/{kind}") if kind else name


def guesses_of(kind: str) -> int:
    """Return how many guesses an answer of that kind holds.

    >>> guesses_of("1s-top-4"), guesses_of("ling-1s")
    (4, 1)
    """
    match = _TOP_K.fullmatch(kind)
    return int(match[2]) if match else 1


def calls_of(kind: str) -> int:
    """Return how many calls an answer of that kind takes.

    >>> calls_of("2s-top-2"), calls_of("1s-top-2"), calls_of("")
    (2, 1, 1)
    """
    if _is_own(kind):
        return int(getattr(elicitations.create(kind), "calls", 1))
    return 2 if kind.startswith("2s-top-") else 1


def _is_kind(kind: str) -> bool:
    return kind == LING_1S or _TOP_K.fullmatch(kind) is not None or _is_own(kind)


def _is_own(kind: str) -> bool:
    return kind not in _BUILT_IN and _TOP_K.fullmatch(kind) is None and kind in elicitations.names()


def _checked(kind: str) -> str:
    if not _is_kind(kind):
        others = "".join(f", {name}" for name in elicitations.names() if name not in _BUILT_IN)
        listed = f"1s-top-2, 2s-top-2 (any number of guesses up to 999), {LING_1S}{others}"
        raise UnknownNameError(f"no elicitation is called {kind!r}; known: {listed}")
    return kind
