"""How many good rewrites the checks reject, how many spoilt ones, and how long they take.

Every rule makes good rewrites of news sentences from the development data, which is read in place (`../shared/data`, or
`PCS_SHARED_DATA`). Each is then spoilt in five ways. Run it with `python benchmarks/checks.py [SENTENCES] [SEED]`.
"""

from __future__ import annotations

import asyncio
import csv
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from pcs_annotator import Expectation
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.check_words import Rewrite, length, numbers, unchanged
from pcs_annotator.relations.checks import run_checks
from pcs_annotator.relations.combine import known_relations

DATA = Path(os.environ.get("PCS_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
STRANGERS = ("Michael Jackson", "Velmora Quist", "Canada", "Apple", "Angela Merkel", "Boeing", "Lisbon", "Tom Hanks")

_HELPER = re.compile(r"\b(is|are|was|were|will|would|can|could|should|has|have|had|must|may|might)\b(?! not|n't)")
_NOT = re.compile(r" not\b|n't\b|n’t\b|\bnever ")
_DIGITS = re.compile(r"(?<![\w.,])\d+(?![\w])")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)*\b")

Good = tuple[str, str, Expectation]


def flip_negation(text: str, rng: random.Random) -> str | None:
    if _NOT.search(text):
        return _NOT.sub("", text, count=1)
    return _HELPER.sub(r"\1 not", text, count=1) if _HELPER.search(text) else None


def change_number(text: str, rng: random.Random) -> str | None:
    found = list(_DIGITS.finditer(text))
    if not found:
        return None
    chosen = rng.choice(found)
    return text[: chosen.start()] + str(int(chosen.group()) + rng.randint(1, 9)) + text[chosen.end() :]


def replace_name(text: str, rng: random.Random) -> str | None:
    found = list(_NAME.finditer(text))
    if not found:
        return None
    chosen = rng.choice(found)
    stranger = rng.choice([name for name in STRANGERS if name not in text])
    return text[: chosen.start()] + stranger + text[chosen.end() :]


def drop_words(text: str, rng: random.Random) -> str | None:
    found = text.split()
    left = len(found) - round(0.4 * len(found))
    if len(found) < 6:
        return None
    if rng.random() < 0.5:
        return " ".join(found[:left])
    return " ".join(found[place] for place in sorted(rng.sample(range(len(found)), left)))


def swap_names(text: str, rng: random.Random) -> str | None:
    found = list(_NAME.finditer(text))
    pairs = [
        (one, other)
        for one in found
        for other in found
        if one.start() < other.start()
        and not set(one.group().split()) & set(other.group().split())
        and not re.fullmatch(r",? (?:and|or|&) (?:the )?|, ", text[one.end() : other.start()])
    ]
    if not pairs:
        return None
    one, other = rng.choice(pairs)
    between = text[one.end() : other.start()]
    return text[: one.start()] + other.group() + between + one.group() + text[other.end() :]


SPOILERS: dict[str, Callable[[str, random.Random], str | None]] = {
    "negation flipped": flip_negation,
    "number changed": change_number,
    "name replaced": replace_name,
    "40 % dropped": drop_words,
    "two names swapped": swap_names,
}


def sentences(count: int, seed: int) -> list[str]:
    with (DATA / "babe" / "items.csv").open(encoding="utf-8") as file:
        found = [row["text"] for row in csv.DictReader(file)]
    random.Random(seed).shuffle(found)
    return found[:count]


async def good_rewrites(texts: list[str]) -> dict[str, list[Good]]:
    made: dict[str, list[Good]] = {}
    for relation in known_relations():
        if not relation.name.startswith("rule:"):
            continue
        found = [await relation.rewrite(text, Context()) for text in texts]
        made[relation.name] = [(each.source, each.text, relation.expects) for each in found if each.text is not None]
    return made


def rejected(rewrites: Iterable[Good]) -> tuple[int, int, Counter[str]]:
    total, count = 0, 0
    by: Counter[str] = Counter()
    for source, text, expects in rewrites:
        total += 1
        failed = [verdict.check for verdict in run_checks(Rewrite(source, text, expects)) if not verdict.passed]
        count += bool(failed)
        by.update(failed[:1])
    return count, total, by


def report(what: str, rewrites: Iterable[Good]) -> None:
    count, total, by = rejected(rewrites)
    print(f"{what:32} {count:5} of {total:5} rejected ({count / max(total, 1):6.1%})  {dict(by.most_common(4))}")


def spoil(good: Iterable[Good], spoiler: Callable[[str, random.Random], str | None], seed: int) -> list[Good]:
    rng = random.Random(seed)
    spoilt = [(source, spoiler(text, rng), expects) for source, text, expects in good]
    return [(source, text, expects) for source, text, expects in spoilt if text is not None]


def time_checks() -> None:
    source = (
        "The mayor of Norwick said on Monday that the council would spend 40 million crowns on the old bridge, " * 2
    )
    source = source[:150]
    surface, everything = [], []
    for number in range(2000):
        # A new text each time, so that no cache helps.
        rewrite = Rewrite(f"{source} {number}", f"{source.replace('said', 'stated')} {number}")
        start = time.perf_counter()
        unchanged(rewrite), length(rewrite), numbers(rewrite)  # only the time counts
        surface.append(time.perf_counter() - start)
        run_checks(rewrite)
        everything.append(time.perf_counter() - start)
    surface.sort()
    everything.sort()
    print(f"surface checks {surface[1000] * 1e6:.0f} µs, all {everything[1000] * 1e6:.0f} µs (median)")


def main(count: int = 300, seed: int = 0) -> None:
    time_checks()
    if not DATA.is_dir():
        print(f"no development data at {DATA}: set PCS_SHARED_DATA to its folder")
        return
    made = asyncio.run(good_rewrites(sentences(count, seed)))
    for name, good in made.items():
        report(f"good: {name}", good)
    everything = [rewrite for good in made.values() for rewrite in good]
    report("good: all", everything)
    chosen = random.Random(seed).sample(everything, min(len(everything), 2 * count))
    for what, spoiler in SPOILERS.items():
        spoilt = spoil(chosen, spoiler, seed)
        report(f"spoilt: {what}", spoilt)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
