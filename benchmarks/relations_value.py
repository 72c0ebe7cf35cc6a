"""What one more question adds beside the original: every relation of the recorded votes, hard and graded.

    python -m benchmarks.relations_value [--spread]

It needs the recorded votes of the development data. Gains are in points of class AUROC, cross-validated on all rows of
three sets with each of the two larger models alone, and averaged: over all texts, and where the relation applies. The
error is the standard error of the mean over rows; it takes the two models of a set as errors that go together, and sets
as independent. With `--spread`, the gain on every set and model is shown.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.development_data import DATA, load
from benchmarks.graded import QWEN, SETS
from pcs_annotator import PcsWarning, Votes
from pcs_annotator.judging.evaluate.relation_value import RelationValue, relation_values
from pcs_annotator.judging.evaluate.scored import EvaluationOptions
from pcs_annotator.judging.metrics.significance import BootstrapTest
from pcs_annotator.judging.solver import one_thread

HOW = EvaluationOptions(resamples=300)
REWRITTEN = ("sentiment", "gossipcop")
"""Sets whose paraphrases and rewrites of the paper's relations were written by models."""
Found = Mapping[str, Mapping[tuple[str, str], tuple[RelationValue, int]]]


def measured(panels: Mapping[tuple[str, str], tuple[Votes, np.ndarray]]) -> Found:
    """Return relation → (set, model) → what it adds, and the number of rows."""
    found: dict[str, dict[tuple[str, str], tuple[RelationValue, int]]] = defaultdict(dict)
    for key, (votes, gold) in panels.items():
        values = relation_values(votes, gold, HOW)
        for one in values.relations:
            found[one.relation][key] = one, values.n
    return found


def mean(tests: Mapping[tuple[str, str], BootstrapTest]) -> str:
    """Return the mean gain in points, and its standard error."""
    by_set: dict[str, list[float]] = defaultdict(list)
    for (name, _), test in tests.items():
        by_set[name].append((test.interval.high - test.interval.low) / 4)
    error = np.sqrt(sum(sum(errors) ** 2 for errors in by_set.values())) / max(len(tests), 1)
    value = np.mean([test.difference for test in tests.values()]) if tests else np.nan
    return f"{100 * value:>8.1f} ± {100 * error:.1f}" if tests else f"{'–':>8}      "


def show(title: str, found: Found, *, spread: bool) -> None:
    """Print a line per relation, the largest gain first."""
    print(f"\n{title}")
    print(f"  {'':18}{'covers':>8}{'over all texts':>16}{'where it applies':>20}")

    def gain(values: Mapping[tuple[str, str], tuple[RelationValue, int]]) -> float:
        return float(np.mean([one.gain.difference for one, _ in values.values()]))

    for relation, values in sorted(found.items(), key=lambda item: -gain(item[1])):
        covers = np.mean([one.covered / rows for one, rows in values.values()])
        overall = mean({key: one.gain for key, (one, _) in values.items()})
        asked = mean({key: one.per_question for key, (one, _) in values.items() if one.per_question})
        print(f"  {relation:18}{covers:>8.0%}{overall:>16}{asked:>20}", flush=True)
        for (name, model), (one, _) in values.items() if spread else ():
            low, high = (100 * end for end in one.gain.interval)
            print(f"    {name:12}{model:24}{100 * one.gain.difference:>6.1f} [{low:.1f}, {high:.1f}]")


def graded_panels(*, hard: bool) -> dict[tuple[str, str], tuple[Votes, np.ndarray]]:
    """Return the votes of each model alone on each set; `hard` leaves out their log-probabilities."""
    panels = {}
    for name in SETS:
        votes, gold, _ = load(f"recorded/graded_{name}.csv.gz")
        for model in QWEN:
            one = votes.select(annotators=[model])
            panels[name, model] = (one.hard() if hard else one, gold)
    return panels


def rewritten_panels() -> dict[tuple[str, str], tuple[Votes, np.ndarray]]:
    """Return the votes on texts that models rewrote, one draw at temperature 0."""
    panels = {}
    for name in REWRITTEN:
        votes, gold, _ = load(f"recorded/votes_{name}.csv.gz")
        for model in QWEN:
            panels[name, model] = (votes.select(annotators=[f"{model}@0"], draws=1), gold)
    return panels


def main(arguments: Sequence[str]) -> None:
    warnings.simplefilter("ignore", PcsWarning)
    if not DATA.is_dir():
        print(f"no development data at {DATA}, so no figures")
        return
    spread = "--spread" in arguments
    with one_thread():
        print("what one more question adds beside the original, in points of class AUROC; ± one standard error")
        show("labels only, naive Bayes; rules and questions", measured(graded_panels(hard=True)), spread=spread)
        show("labels only, naive Bayes; rewritten by models", measured(rewritten_panels()), spread=spread)
        show("graded, scaling; rules and questions", measured(graded_panels(hard=False)), spread=spread)


if __name__ == "__main__":
    main(sys.argv[1:])
