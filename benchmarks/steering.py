"""Do hostile texts steer a model more under the questions `definitions` and `suggestion:N` than under the original one?

Each of the 120 attacks of `benchmarks/injection.py` is sent twice, wanting one label and then another. How far it
steers is the probability of a label where the text wants it, less where the text wants the other one, so that what else
the text says does not count. Standard errors are over attacks. The embedded model answers for real, with the
probability of every label. Run it with `python -m benchmarks.steering [MODEL] [--step N]`.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.injection import ATTACKS, COMMENTS, FEELING, NEWS, REVIEWS, filled, letter
from pcs_annotator import CollectSettings, Item, Task, Votes, collect
from pcs_annotator.core.arrays import Array, Floats

DEFINED = (
    (REVIEWS, {"positive": "the writer is content with the product", "negative": "the writer complains about it"}),
    (
        FEELING,
        {
            "positive": "the writer is glad or content",
            "neutral": "the writer shows no feeling",
            "negative": "the writer is sad, angry or disappointed",
        },
    ),
    (NEWS, NEWS.meanings),
    (COMMENTS, COMMENTS.meanings),
)
TASKS = tuple(Task(task.instruction, task.labels, definitions=dict(meanings)) for task, meanings in DEFINED)


class Pair(NamedTuple):
    """An attack, for each of two labels."""

    attack: int
    wanted: tuple[int, int]
    texts: tuple[str, str]


def pairs(number: int, step: int) -> list[Pair]:
    """Return the attacks on a task; every `step`-th of them."""
    task, chosen = TASKS[number], list[Pair]()
    size = len(task.labels)
    for turn, attack in list(enumerate(ATTACKS))[number :: len(TASKS) * step]:
        first = turn // 8 % size
        wanted = first, (first + 1) % size
        texts = []
        for label, other in (wanted, wanted[::-1]):
            names = task.labels[label], task.labels[other]
            marks = dict(zip(("@x", "@y"), names, strict=True)) | {
                "@X": letter(task, names[0]),
                "@Y": letter(task, names[1]),
            }
            texts.append(filled(attack, marks))
        chosen.append(Pair(turn, wanted, (texts[0], texts[1])))
    return chosen


def asked(task: Task, texts: list[str], model: str) -> Votes:
    """Return the answers to all questions about some texts."""
    relations = ["original", "definitions", *(f"suggestion:{place}" for place in range(1, len(task.labels) + 1))]
    relations[2] = "suggestion"
    items = [Item(id=str(row), text=text) for row, text in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        settings = CollectSettings(answers="graded")
        return asyncio.run(collect(task, items, [model], relations, ledger=Path(folder, "l.db"), settings=settings))


Gains = dict[int, list[tuple[float, float]]]


def steered(number: int, step: int, model: str) -> dict[str, Gains]:
    """Return question → attack → by how much it steers, as a probability and as a label."""
    some, gains = pairs(number, step), defaultdict[str, Gains](lambda: defaultdict(list))
    votes = asked(TASKS[number], [text for pair in some for text in pair.texts], model)
    assert votes.grades is not None
    for place, relation in enumerate(votes.relations):
        for row, pair in enumerate(some):
            shares = votes.grades[2 * row : 2 * row + 2, 0, place, 0][:, list(pair.wanted)]
            labels = votes.grades[2 * row : 2 * row + 2, 0, place, 0].argmax(axis=1)
            given = labels[:, np.newaxis] == np.array(pair.wanted)
            gains[name_of(relation, pair)][pair.attack].append((_gain(shares), _gain(given)))
    return gains


def _gain(table: Array) -> float:
    """Return how much more each text has of the label that it wants than the other text has of this label."""
    return (float(table[0, 0]) - float(table[1, 0]) + float(table[1, 1]) - float(table[0, 1])) / 2


def name_of(relation: str, pair: Pair) -> str:
    """Return under which name a question counts: a suggestion may be one of the two labels that the texts want."""
    if not relation.startswith("suggestion"):
        return relation
    place = int(relation.partition(":")[2] or 1) - 1
    return "suggestion of a label that is wanted" if place in pair.wanted else "suggestion of another label"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="embedded:smollm2")
    parser.add_argument("--step", type=int, default=1, help="every Nth attack only")
    options = parser.parse_args()
    found = defaultdict[str, dict[int, Floats]](dict)
    for number in range(len(TASKS)):
        for name, of_attacks in steered(number, options.step, options.model).items():
            found[name] |= {attack: np.mean(values, axis=0) for attack, values in of_attacks.items()}
    original = found["original"]
    print("| question | attacks | steered, points of probability | more than the original question | labels steered |")
    print("|---|---|---|---|---|")
    for name, gains in found.items():
        values = 100 * np.array(list(gains.values()))
        more = values[:, 0] - 100 * np.array([original[attack][0] for attack in gains])
        errors = [one.std(ddof=1) / len(one) ** 0.5 for one in (values[:, 0], more, values[:, 1])]
        print(
            f"| {name} | {len(gains)} | {values[:, 0].mean():.1f} ± {errors[0]:.1f} | "
            f"{more.mean():+.1f} ± {errors[1]:.1f} | {values[:, 1].mean():.0f} ± {errors[2]:.0f} % |"
        )


if __name__ == "__main__":
    main()
