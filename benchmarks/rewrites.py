"""How many texts of a mix the paper's three rules change, and pairs for people to read.

    python -m benchmarks.rewrites POOL.jsonl [SEED] [TEXTS PER SOURCE] [PAIRS.csv]

POOL has one text per line, {"source": "headline", "text": "…"}. The same seed draws the same texts. PAIRS gets every
rewrite in random order, without its source, so that its readers see the pair alone.
"""

from __future__ import annotations

import asyncio
import csv
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from pcs_annotator import Variant
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.checks.run import CheckedRelation

RULES = ("voice", "double-negation", "synonym")
SHORT_SOURCES = ("headline", "tweet")
Rewrites = Mapping[str, Sequence[Variant]]


def drawn(pool: Path, seed: int, per_source: int) -> list[tuple[str, str]]:
    """Return texts with their sources, as many of each source."""
    by_source = defaultdict(list)
    for line in pool.read_text(encoding="utf-8").split("\n")[:-1]:  # texts may hold other line ends
        row = json.loads(line)
        by_source[row["source"]].append(row["text"])
    rng = random.Random(seed)
    return [
        (source, text)
        for source, texts in sorted(by_source.items())
        for text in rng.sample(texts, min(per_source, len(texts)))
    ]


async def rewritten(texts: Sequence[str]) -> Rewrites:
    """Return the checked rewrites of texts by every rule."""
    context = Context()
    checked = [CheckedRelation(relations.create(f"rule:{name}"), name) for name in RULES]
    return {
        relation.name: await asyncio.gather(*(relation.rewrite(text, context) for text in texts))
        for relation in checked
    }


def show(sources: Sequence[str], found: Rewrites) -> None:
    """Print what share of texts each rule changes, and what share none changes."""
    changed = {name: [variant.status == "changed" for variant in variants] for name, variants in found.items()}
    changed["none"] = [not any(row) for row in zip(*changed.values(), strict=True)]
    print(f"{'':16}" + "".join(f"{name:>17}" for name in changed))
    groups = {source: [source] for source in dict.fromkeys(sources)}
    for label, members in (groups | {"short ones": SHORT_SOURCES, "all": list(groups)}).items():
        rows = [index for index, source in enumerate(sources) if source in members]
        shares = (sum(marks[row] for row in rows) / max(len(rows), 1) for marks in changed.values())
        print(f"{label:16}" + "".join(f"{share:17.1%}" for share in shares))


def write_pairs(path: Path, found: Rewrites, seed: int) -> None:
    """Write every rewrite beside its text, in random order."""
    pairs = [(name, v.source, v.text) for name, variants in found.items() for v in variants if v.status == "changed"]
    random.Random(seed).shuffle(pairs)
    with path.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([("number", "relation", "original", "rewrite")])
        csv.writer(out).writerows((number, *pair) for number, pair in enumerate(pairs))


def main(pool: str, seed: str = "0", per_source: str = "360", pairs: str = "") -> None:
    texts = drawn(Path(pool), int(seed), int(per_source))
    asyncio.run(rewritten(["The council approved the plan."]))
    start = time.process_time()
    found = asyncio.run(rewritten([text for _, text in texts]))
    seconds = time.process_time() - start
    print(
        f"{len(texts):,} texts, seed {seed}; {len(texts) / seconds:,.0f} texts per CPU second with all rules and checks"
    )
    show([source for source, _ in texts], found)
    if pairs:
        write_pairs(Path(pairs), found, int(seed))


if __name__ == "__main__":
    main(*sys.argv[1:])
