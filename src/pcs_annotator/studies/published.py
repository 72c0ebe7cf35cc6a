"""The published figures of Salimian et al. as data: L is Llama-3-8B, M Mistral-7B, G Gemma-2-9B.

Keys are (dataset, models); the models of one panel are joined by `+` in the order L, M, G.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pcs_annotator.core.variant import ORIGINAL

Key = tuple[str, str]

DATASETS = ("sentiment", "gossipcop", "politifact")
PCS = "PCS"
RELATIONS = {ORIGINAL: "No MR", "voice": "MR1", "double-negation": "MR2", "synonym": "MR3"}
"""Our relation names → the paper's."""

_MODELS = {
    "L": re.compile(r"(?<![a-z])llama-?3-8b"),
    "M": re.compile(r"(?<![a-z])mistral-7b"),
    "G": re.compile(r"(?<![a-z])gemma-?2-9b"),
}


class PublishedBaseline(NamedTuple):
    """A row of tab:baseline, Gemma-2-9B alone; the p-value is against PCS, None where the paper prints p < .001."""

    auroc: float
    p_value: float | None
    stars: str


class PublishedComparison(NamedTuple):
    """A row of tab:pvalues; the p-value is None where the paper prints p < .01, the improvement is in percent."""

    p_value: float | None
    improvement: float


def _rows(values: Sequence[Sequence[float]], models: Sequence[str]) -> dict[Key, tuple[float, ...]]:
    keys = [(dataset, model) for dataset in DATASETS for model in models]
    return {key: tuple(row) for key, row in zip(keys, values, strict=True)}


SINGLE_IMPROVEMENT, SINGLE_P_VALUE = 9.3, 0.01

SEVERAL = _rows(
    [
        *((0.87, 0.87), (0.76, 0.80), (0.85, 0.88), (0.86, 0.87)),
        *((0.75, 0.81), (0.59, 0.70), (0.67, 0.72), (0.69, 0.75)),
        *((0.86, 0.91), (0.88, 0.91), (0.85, 0.89), (0.88, 0.91)),
    ],
    ["M+G", "L+M", "L+G", "L+M+G"],
)
"""tab:MajorityVoting: the majority vote and PCS."""
SEVERAL_IMPROVEMENT = 5.8

BASELINES = {
    "sentiment": {
        PCS: PublishedBaseline(0.87, None, ""),
        "1s-top-2": PublishedBaseline(0.82, 0.033, "*"),
        "2s-top-2": PublishedBaseline(0.81, 0.022, "*"),
        "ling-1s": PublishedBaseline(0.73, None, "***"),
        "spuq": PublishedBaseline(0.67, None, "***"),
    },
    "gossipcop": {
        PCS: PublishedBaseline(0.80, None, ""),
        "ling-1s": PublishedBaseline(0.75, 0.059, "n.s."),
        "spuq": PublishedBaseline(0.71, 0.002, "**"),
        "1s-top-2": PublishedBaseline(0.57, None, "***"),
        "2s-top-2": PublishedBaseline(0.57, None, "***"),
    },
    "politifact": {
        PCS: PublishedBaseline(0.86, None, ""),
        "2s-top-2": PublishedBaseline(0.85, 0.441, "n.s."),
        "ling-1s": PublishedBaseline(0.78, 0.041, "*"),
        "spuq": PublishedBaseline(0.78, 0.051, "n.s."),
        "1s-top-2": PublishedBaseline(0.60, None, "***"),
    },
}

_COLUMNS = ("No MR", "MR1", "MR2", "MR3", PCS)
BY_RELATION = {
    key: dict(zip(_COLUMNS, row, strict=True))
    for key, row in _rows(
        [
            (0.68, 0.71, 0.53, 0.75, 0.82),
            (0.70, 0.62, 0.52, 0.61, 0.70),
            (0.85, 0.77, 0.62, 0.74, 0.87),
            (0.86, 0.80, 0.58, 0.79, 0.87),
            (0.54, 0.58, 0.56, 0.63, 0.62),
            (0.62, 0.63, 0.58, 0.68, 0.72),
            (0.72, 0.72, 0.64, 0.71, 0.80),
            (0.69, 0.70, 0.65, 0.74, 0.75),
            (0.88, 0.85, 0.77, 0.77, 0.88),
            (0.73, 0.77, 0.77, 0.69, 0.86),
            (0.85, 0.81, 0.77, 0.81, 0.86),
            (0.88, 0.89, 0.82, 0.85, 0.91),
        ],
        ["L", "M", "G", "L+M+G"],
    ).items()
}

SINGLE = {key: (row["No MR"], row[PCS]) for key, row in BY_RELATION.items() if "+" not in key[1]}
"""tab:singleLLMs: zero-shot and PCS."""

COMPARISONS = {
    (PCS, "No MR"): PublishedComparison(None, 8.67),
    (PCS, "MR1"): PublishedComparison(None, 10.30),
    (PCS, "MR2"): PublishedComparison(None, 31.03),
    (PCS, "MR3"): PublishedComparison(None, 9.95),
    ("No MR", "MR1"): PublishedComparison(0.35, 0.03),
    ("No MR", "MR2"): PublishedComparison(None, 19.49),
    ("No MR", "MR3"): PublishedComparison(0.37, 0.10),
    ("MR1", "MR2"): PublishedComparison(None, 19.54),
    ("MR1", "MR3"): PublishedComparison(0.63, 0.40),
    ("MR3", "MR2"): PublishedComparison(None, 18.82),
}


def published_key(dataset: str, annotators: Sequence[str]) -> Key | None:
    """Return the paper's names for a dataset and some models; None if one of them is not in the paper.

    >>> published_key("simulated gossipcop", ["gemma-2-9b", "meta-llama-3-8b-instruct"])
    ('gossipcop', 'L+G')
    >>> published_key("gossipcop", ["tinyllama-1.1b"]) is None
    True
    """
    named = [name for name in DATASETS if name in dataset.casefold()]
    letters = {letter for name in annotators for letter, like in _MODELS.items() if like.search(name.casefold())}
    if len(named) != 1 or len(letters) != len(annotators):
        return None
    return named[0], "+".join(letter for letter in _MODELS if letter in letters)
