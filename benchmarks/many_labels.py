"""A taxonomy of 1,000 labels, invented: are the right labels asked about, and do confidence and promise hold?

Ten areas of ten groups of ten labels; a label has a name and a meaning of six words of its own, and a text some of
these words in other forms, words of other labels, and words that mean nothing. Labels are as common as 1/rank. Three
stubs answer with the right label if it is listed, mostly, and else with a sibling that is, or any. Each is asked in
three ways about 1,000 texts, of which 300 have gold. Run it with `python -m benchmarks.many_labels [REPETITIONS]`.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from pcs_annotator import PcsWarning, run
from pcs_annotator.core.chat import Request
from pcs_annotator.core.ngrams import recall_of
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.runs.resolve_config import task_of

AREAS, GROUPS, LEAVES, GOLD, NEW, MAX_ERROR = 10, 10, 10, 300, 700, 0.1
RIGHT = {"scripted:large": 0.9, "scripted:middle": 0.8, "scripted:small": 0.7}
CONSONANTS, VOWELS, ENDINGS = "bdfgklmnprstvz", "aeiou", ("", "s", "ed", "ing", "er")


class Taxonomy(NamedTuple):
    """Labels as paths, what they mean, and texts with their labels."""

    meanings: dict[str, str]
    texts: list[str]
    truth: list[str]


class Measured(NamedTuple):
    """Figures of one taxonomy, of texts without gold."""

    recall: float
    accuracy: float
    too_sure: float
    accepted: float
    wrong: float
    seconds: float


def invented(rng: np.random.Generator) -> Taxonomy:
    """Return a taxonomy of invented words, and texts about it."""
    taken: set[str] = set()

    def word() -> str:
        while True:
            drawn = "".join(rng.choice(list(CONSONANTS)) + rng.choice(list(VOWELS)) for _ in range(rng.integers(3, 5)))
            if drawn not in taken:
                taken.add(drawn)
                return drawn

    words: dict[str, list[str]] = {}
    for _ in range(AREAS):
        area = word()
        for group in [word() for _ in range(GROUPS)]:
            words |= {f"{area}/{group}/{word()} {word()}": [word() for _ in range(6)] for _ in range(LEAVES)}
    labels = [list(words)[place] for place in rng.permutation(len(words))]
    fillers = [word() for _ in range(400)]
    common = 1 / np.arange(1, len(labels) + 1)
    truth = [labels[place] for place in rng.choice(len(labels), GOLD + NEW, p=common / common.sum())]
    texts = []
    for number, label in enumerate(truth):
        own = [f"{one}{rng.choice(ENDINGS)}" for one in rng.choice(words[label], rng.integers(2, 6), replace=False)]
        others = [rng.choice(words[other]) for other in rng.choice(labels, 3)]
        said = rng.permutation([*own, *others, *rng.choice(fillers, 12)])
        texts.append(f"{number} {' '.join(said)}")
    return Taxonomy({label: " ".join(own) for label, own in words.items()}, texts, truth)


def chance(*parts: object) -> float:
    """Return a number from 0 to 1 that depends on the parts alone."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest()) / 2**64


def answer(request: Request, *, name: str, truth: dict[str, str]) -> str:
    """Return what a stub says: texts are hard for all stubs, and each errs on its own as well."""
    assert request.parts is not None
    listed = [line.removeprefix("- ").partition(":")[0] for line in request.parts.menu.splitlines()]
    text, label = request.parts.text, truth[request.parts.text]
    if label in listed and (chance(text) + chance(name, text, request.parts)) / 2 < RIGHT[name]:
        return label
    near = [one for one in listed if one.rpartition("/")[0] == label.rpartition("/")[0] and one != label]
    return (near or listed)[int(chance(text, "wrong" if near else name) * len(near or listed))]


def measure(seed: int) -> Measured:
    """Run a taxonomy end to end, and compare its labels with the truth."""
    world = invented(np.random.default_rng(seed))
    known = dict(zip(world.texts, world.truth, strict=True))
    stubs = [ScriptedModel(partial(answer, name=name, truth=known), name=name) for name in RIGHT]
    data = {"text": world.texts, "gold": [*world.truth[:GOLD], *[""] * NEW]}
    started = time.perf_counter()
    with TemporaryDirectory() as folder, one_thread():
        place = Path(folder) / "pcs.toml"
        place.write_text("[task.meanings]\n" + "".join(f'"{key}" = "{one}"\n' for key, one in world.meanings.items()))
        result = run(
            data,
            Path(folder) / "run",
            config=place,
            models=stubs,
            labels=list(world.meanings),
            kind="one",
            relations=["original", "order", "wording"],
            max_error=MAX_ERROR,
        )
    seconds = time.perf_counter() - started
    found = result.outcomes[GOLD:]
    right = np.array([one.label == label for one, label in zip(found, world.truth[GOLD:], strict=True)])
    sure = np.array([one.confidence for one in found], dtype=np.float64)
    accepted = np.array([one.decision == "accept" for one in found])
    recall = recall_of(task_of(result.config), world.texts[GOLD:], world.truth[GOLD:])
    wrong = float(1 - right[accepted].mean()) if accepted.any() else 0.0
    return Measured(
        recall, float(right.mean()), float(sure.mean() - right.mean()), float(accepted.mean()), wrong, seconds
    )


def main(repetitions: int = 4) -> None:
    found = [measure(seed) for seed in range(repetitions)]
    mean = Measured(*np.mean(found, axis=0).tolist())
    print(f"{repetitions} taxonomies of {AREAS * GROUPS * LEAVES:,} labels, {GOLD} gold rows, {NEW:,} other texts")
    print(f"right label among 30 candidates: {mean.recall:.3f}, least {min(one.recall for one in found):.3f}")
    print(f"accuracy {mean.accuracy:.3f}")
    print("confidence less accuracy, points: " + ", ".join(f"{100 * one.too_sure:.1f}" for one in found))
    broken = sum(one.wrong > MAX_ERROR for one in found)
    print(f"accepted {mean.accepted:.0%}, of these wrong {mean.wrong:.1%}; promises broken: {broken} of {repetitions}")
    print(f"seconds per run: {mean.seconds:.0f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore", PcsWarning)
    main(*map(int, sys.argv[1:]))
