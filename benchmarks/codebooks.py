"""Any number of labels per text, simulated; and what several variables cost in one call.

Eight labels that 5 to 50 % of the texts have, three models that find and invent them at rates of their own, 300 gold
rows, 2,000 other texts. Labels are learned together, as in a codebook. Printed are: mean confidence less accuracy
per label, macro-F1 of our labels, of the majority and of the best single model, and how often a promise of at most 10 %
errors among the accepted was shown and broken. The same for whole sets of labels, with errors of labels independent,
and with texts that are hard for all labels: in a third of the texts 15 % of the answers are turned round. Then pairs of
texts: judges that answer `a` whatever they read in some of the cases, with the texts in one order and in both. Run it
with `python -m benchmarks.codebooks [REPETITIONS]`.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import pcs_annotator as pcs
from pcs_annotator import Annotator, PcsWarning, Task, Votes
from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.asking.annotators.length import estimate_tokens
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.task import AskedTogether, Part
from pcs_annotator.judging.fit_model import Learning, fit_model, labelled_rows
from pcs_annotator.judging.heldout import HeldOut
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.sets import WHOLE, fit_whole_sets, whole_rows
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.models.scripted import ScriptedModel

LABELS, MODELS, GOLD, NEW, MAX_ERROR = 8, 3, 300, 2_000, 0.1
HARD, TURNED = 1 / 3, 0.15


class Measured(NamedTuple):
    """Figures of one label on new texts."""

    too_sure: float
    ours: float  # F1
    majority: float
    best_single: float
    accepted: float
    broken: float


def f1(found: Codes, truth: Codes) -> float:
    """Return the F1 of label 0, which applies."""
    both = ((found == 0) & (truth == 0)).sum()
    return float(2 * both / max((found == 0).sum() + (truth == 0).sum(), 1))


class Labelled(NamedTuple):
    """New texts as judged for one label, and gold rows as judged by fits that did not see them."""

    sure: Floats
    right: Mask
    trial: HeldOut


class OfSets(NamedTuple):
    """Figures of whole sets on new texts."""

    too_sure: float
    product_too_sure: float
    right: float
    accepted: float
    promised: float
    broken: float


def simulated(label: int, rng: np.random.Generator, hard: Mask | None = None) -> tuple[Codes, Codes]:
    """Return the truth of all texts for one label, 0 where it applies, and what each model says."""
    truth = (rng.random(GOLD + NEW) > np.linspace(0.05, 0.5, LABELS)[label]).astype(np.int8)
    found, invented = rng.uniform(0.6, 0.95, MODELS), rng.uniform(0.02, 0.15, MODELS)
    says = rng.random((GOLD + NEW, MODELS)) < np.where(truth[:, np.newaxis] == 0, found, invented)
    if hard is not None:
        says ^= hard[:, np.newaxis] & (rng.random(says.shape) < TURNED)
    return truth, np.where(says, 0, 1).astype(np.int8)


def votes_of(said: Codes) -> Votes:
    return Votes(
        codes=said[:, :, np.newaxis],
        ids=[str(row) for row in range(len(said))],
        annotators=[f"model{one}" for one in range(MODELS)],
        relations=["original"],
        labels=["yes", "no"],
    )


def measure(label: int, seed: int, hard: Mask | None = None) -> tuple[Measured, Labelled]:
    drawn = [simulated(one, np.random.default_rng(1_000 * seed + one), hard) for one in range(LABELS)]
    truth, said = drawn[label]
    votes = votes_of(said)
    others = [labelled_rows(votes_of(said[:GOLD]), truth[:GOLD]) for truth, said in drawn]
    votes = replace(votes, siblings=[*others[:label], *others[label + 1 :]])
    gold = np.where(np.arange(len(truth)) < GOLD, truth, UNLABELLED).astype(np.int8)
    with one_thread():
        model, trial = fit_model(votes, gold, Learning(optimiser="auto", promise=Promise(max_error=MAX_ERROR)))
    new, right_label = votes.take(slice(GOLD, None)), truth[GOLD:]
    judged = model.judged(new)
    assert judged.probabilities is not None
    assert judged.accepted is not None
    assert trial is not None
    right = judged.best == right_label
    sure = judged.probabilities.max(axis=1)
    wrong = 1 - right[judged.accepted].mean() if judged.accepted.any() else 0.0
    best = int(np.argmax([f1(said[:GOLD, one], truth[:GOLD]) for one in range(MODELS)]))
    majority = (said[GOLD:].sum(axis=1) > MODELS / 2).astype(np.int8)
    found = Measured(
        float(sure.mean() - right.mean()),
        f1(judged.best, right_label),
        f1(majority, right_label),
        f1(said[GOLD:, best], right_label),
        float(judged.accepted.mean()),
        float(wrong > MAX_ERROR),
    )
    return found, Labelled(sure, right, trial)


def measure_sets(labels: list[Labelled], max_error: float) -> OfSets:
    """Return figures of a promise about whole sets."""
    _, judged = whole_rows([one.trial for one in labels])
    model = fit_whole_sets(judged, Promise(max_error=max_error))
    assert model.certificate is not None
    product, right = np.prod([one.sure for one in labels], axis=0), np.all([one.right for one in labels], axis=0)
    sure = model.confidence(product)
    accepted = model.certificate.accepts(sure, np.zeros(NEW, dtype=np.int8), WHOLE)
    wrong = 1 - right[accepted].mean() if accepted.any() else 0.0
    return OfSets(
        float((sure - right).mean()),
        float((product - right).mean()),
        float(right.mean()),
        float(accepted.mean()),
        float(model.certificate.holds),
        float(wrong > max_error),
    )


def show_sets(what: str, found: list[OfSets]) -> None:
    means = OfSets(*np.mean(found, axis=0).tolist())
    print(
        f"whole sets, {what}: {means.right:.1%} right, confidence less that {100 * means.too_sure:+.1f} points", end=""
    )
    print(f" (product {100 * means.product_too_sure:+.1f}); promised in {means.promised:.0%} of {len(found)}", end="")
    print(f", accepted {means.accepted:.0%}, broken {means.broken:.1%}")


def tokens(parts: tuple[Part, ...]) -> int:
    """Return the tokens of the prompts that ask about a text of 60 words: in one call, or in one per variable."""
    model, text = ScriptedModel(lambda request: "", name="scripted:one"), "some words of a text " * 12
    together = AskedTogether(parts, parts[0].name)
    task = Task(parts[0].instruction, parts[0].labels, together=together if len(parts) > 1 else None)
    asked = Annotator(model).question(task, text, model)
    assert isinstance(asked, Question)
    return sum(estimate_tokens(message.content) for message in asked.request.messages)


def judge(number: int, bias: float, noise: float) -> Callable[[str], str]:
    """Return a model that says which text is better, with errors; in a share of the pairs, always the first one."""

    def answers(question: str) -> str:
        row, first, second = map(
            int, re.findall(r"Answer (\d+) is worth (\d+).*?is worth (\d+)", question, re.DOTALL)[-1]
        )
        rng = np.random.default_rng([number, row, first, second])
        if np.random.default_rng([number, row]).random() < bias:
            return "<label>a</label>"
        better = "tie" if first == second else "a" if first > second else "b"
        return f"<label>{rng.choice(['a', 'b', 'tie']) if rng.random() < noise else better}</label>"

    answers.__name__ = f"judge_{number}"
    return answers


def pairs(relations: list[str], gold: int, seed: int, rows: int = 600) -> tuple[float, float]:
    """Return accuracy on pairs without gold, and how much oftener the first text wins there than it should."""
    worth = np.random.default_rng(seed).integers(1, 9, (rows, 2))
    truth = np.where(worth[:, 0] == worth[:, 1], "tie", np.where(worth[:, 0] > worth[:, 1], "a", "b"))
    texts = {
        name: [f"Answer {row} is worth {one}." for row, one in enumerate(worth[:, at])] for at, name in enumerate("ab")
    }
    known = [label if row < gold else None for row, label in enumerate(truth.tolist())]
    table = pa.table({"id": [str(row) for row in range(rows)], **texts, "gold": pa.array(known, pa.string())})
    judges = [judge(10 * seed + number, bias, 0.2) for number, bias in enumerate((0.2, 0.3, 0.4))]
    with TemporaryDirectory() as place:
        found = pcs.run(
            table,
            Path(place, "run"),
            pair=("a", "b"),
            labels=("a", "b", "tie"),
            models=judges,
            relations=relations,
            text=False,
        )
    said = np.array([one.label for one in found.outcomes])[gold:]
    wins = [(labels == "a").mean() - (labels == "b").mean() for labels in (said, truth[gold:])]
    return float((said == truth[gold:]).mean()), float(wins[0] - wins[1])


def main(repetitions: int = 50) -> None:
    found, errors = np.empty((repetitions, LABELS, len(Measured._fields))), (MAX_ERROR, 2 * MAX_ERROR)
    sets: dict[tuple[str, float], list[OfSets]] = {}
    for seed in range(repetitions):
        hard = np.random.default_rng(seed).random(GOLD + NEW) < HARD
        for what, among in (("errors independent", None), ("texts hard for all labels", hard)):
            figures, labels = zip(*(measure(label, seed, among) for label in range(LABELS)), strict=True)
            found[seed] = figures if among is None else found[seed]
            for most in errors:
                sets.setdefault((what, most), []).append(measure_sets(list(labels), most))
    means = Measured(*found.mean(axis=(0, 1)).tolist())
    print(f"{repetitions} repetitions, {LABELS} labels, {MODELS} models, {GOLD} gold rows")
    print("confidence less accuracy, per label, points:", np.round(100 * found[..., 0].mean(axis=0), 1).tolist())
    print(f"macro-F1: ours {means.ours:.3f}, majority {means.majority:.3f}, best single {means.best_single:.3f}")
    print(f"accepted: {means.accepted:.0%}; promises broken: {means.broken:.1%} of {repetitions * LABELS}")
    for (what, most), of_sets in sets.items():
        show_sets(f"{what}, at most {most:.0%}", of_sets)
    parts = tuple(
        Part(f"v{one}", "Which of these does the text talk about?", ("one", "two", "three")) for one in range(5)
    )
    alone = sum(tokens((part,)) for part in parts)
    print(f"tokens of five variables: {tokens(parts)} in one call, {alone} in five ({tokens(parts) / alone:.0%})")
    for gold in (0, 200):
        for relations in (["original"], ["original", "order"]):
            accuracy, lead = np.mean([pairs(relations, gold, seed) for seed in range(5)], axis=0)
            print(f"pairs, {gold} gold, {', '.join(relations)}: accuracy {accuracy:.3f}, lead of the first {lead:+.3f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore", PcsWarning)
    main(*map(int, sys.argv[1:]))
