"""Speed of the rules: sentences per second on one core, on invented sentences.

Run it with `.venv/bin/python benchmarks/relations.py`. The figures depend on the machine and are noisy; nothing asserts
them. The ratio to `original`, which changes nothing, varies less between machines.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence

from pcs_annotator import Relation, Variant
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.combine import known_relations

COUNT = 20_000

_SUBJECTS = (
    "The council",
    "A regional court",
    "The port authority",
    "Two ministers",
    "The museum's board",
    "The union",
)
_VERBS = ("approved", "did not reject", "published", "hasn't finished", "defended", "will review", "is not selling")
_OBJECTS = (
    "a plan for five new bridges",
    "the long report on water",
    "twelve contracts",
    "the budget for 1,500 schools",
)
_TAILS = (
    "after the mayor said that it's too early for a vote",
    "while critics warned that prices rose by 20 percent",
    "because they are waiting for a decision of the ministry",
    "on Monday, the second day of the talks in the capital",
)


def invented_sentences(count: int, seed: int = 0) -> list[str]:
    """Return different news-like sentences of about 100 characters."""
    rng = random.Random(seed)
    return [
        f"{rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} {rng.choice(_OBJECTS)} {rng.choice(_TAILS)}, paper {number}."
        for number in range(count)
    ]


async def rewrite_all(relation: Relation, texts: Sequence[str]) -> list[Variant]:
    return [await relation.rewrite(text, Context()) for text in texts]


def show(name: str, floor: float) -> float:
    """Print one relation's figures and return its CPU seconds per text."""
    relation = relations.create(name)
    asyncio.run(rewrite_all(relation, invented_sentences(8, seed=1)))
    texts = invented_sentences(COUNT)
    start = time.process_time()
    variants = asyncio.run(rewrite_all(relation, texts))
    seconds = (time.process_time() - start) / COUNT
    changed = sum(variant.status == "changed" for variant in variants)
    ratio = f"{seconds / floor:8.1f} ×" if floor else " " * 10
    print(f"  {name:26}{1 / seconds:12,.0f} texts/s{ratio}{changed / COUNT:10.0%} changed", flush=True)
    return seconds


def main() -> None:
    rules = [relation for relation in known_relations() if relation.name.startswith("rule:")]
    print(f"{len(rules)} rules on one core, CPU time; × is the cost of a rewrite that changes nothing")
    floor = show(ORIGINAL, 0.0)
    for relation in sorted(rules, key=lambda relation: relation.name):
        show(relation.name, floor)


if __name__ == "__main__":
    main()
