"""The published figures of Salimian et al., which `published.toml` has: L is Llama-3-8B, M Mistral-7B, G Gemma-2-9B.

Keys are (dataset, models); the models of one panel are joined by `+` in the order L, M, G.
"""

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.judging.metrics.significance import stars

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


_TABLES = tomllib.loads(files(__package__).joinpath("published.toml").read_text(encoding="utf-8"))
_COLUMNS = ("No MR", "MR1", "MR2", "MR3", PCS)
SINGLE_IMPROVEMENT, SINGLE_P_VALUE = 9.3, 0.01
SEVERAL_IMPROVEMENT = 5.8
SEVERAL: dict[Key, tuple[float, ...]] = {
    (dataset, models): tuple(row) for dataset, rows in _TABLES["several"].items() for models, row in rows.items()
}
"""tab:MajorityVoting: the majority vote and PCS."""
BY_RELATION: dict[Key, dict[str, float]] = {
    (dataset, models): dict(zip(_COLUMNS, row, strict=True))
    for dataset, rows in _TABLES["by_relation"].items()
    for models, row in rows.items()
}
SINGLE = {key: (row["No MR"], row[PCS]) for key, row in BY_RELATION.items() if "+" not in key[1]}
"""tab:singleLLMs: zero-shot and PCS."""
BASELINES = {
    dataset: {
        name: PublishedBaseline(auroc, p[0] if p else None, "" if name == PCS else stars(p[0] if p else 0.0))
        for name, (auroc, *p) in rows.items()
    }
    for dataset, rows in _TABLES["baselines"].items()
}
COMPARISONS = {
    (one, other): PublishedComparison(p[0] if p else None, improvement)
    for one, rows in _TABLES["comparisons"].items()
    for other, (improvement, *p) in rows.items()
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
