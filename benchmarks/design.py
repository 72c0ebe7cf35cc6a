"""Designed panels against the paper's panel and self-consistency, with equal calls, on recorded votes of small models.

Run it with `python -m benchmarks.design` from the root. Panels are chosen and optimisers fitted on 100 gold rows;
AUROC is measured on all other rows. Splits share rows, so the standard errors over splits are too small.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.development_data import DATA, PAPER_RELATIONS, Dataset, load
from pcs_annotator.core.arrays import Floats, Integers
from pcs_annotator.core.vote import Cell
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import PcsWarning
from pcs_annotator.judging.metrics.metrics import auroc
from pcs_annotator.judging.spending.design.panel import Prices, choose_panel, design_panel
from pcs_annotator.judging.spending.strategy import only
from pcs_annotator.judging.weighing.optimiser import fit_optimiser, optimisers
from pcs_annotator.judging.weighing.scoring import score

GOLD_ROWS, SPLITS = 100, 20
SMALL, LARGE = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"
LEARNERS = ("lr", "logit", "naive-bayes")
DUMMIES = {f"dummy-{turn}": 0.0 for turn in (1, 2, 3)}  # made by rules, so free


@dataclass(frozen=True)
class Case:
    """A dataset, some models, a budget per model, and prices."""

    title: str
    data: Dataset
    models: Sequence[str]
    calls: float
    prices: Prices

    @property
    def budget(self) -> float:
        """What one text may cost."""
        return self.calls * len(self.models)

    def splits(self) -> list[tuple[Integers, Integers]]:
        """Return the gold rows and test rows of every split."""
        orders = [np.random.default_rng(seed).permutation(len(self.data[0])) for seed in range(SPLITS)]
        return [(np.sort(order[:GOLD_ROWS]), np.sort(order[GOLD_ROWS:])) for order in orders]


def tested(case: Case, cells: Sequence[Cell], optimiser: str, rows: tuple[Integers, Integers]) -> float:
    """Return the AUROC of a panel on test rows, with an optimiser fitted on the gold rows."""
    votes, gold, _ = case.data
    panel, (learn, test) = only(votes, cells), rows
    weights = fit_optimiser(optimisers.create(optimiser), panel.take(learn), gold[learn], 0)
    return auroc(score(panel.take(test), weights), gold[test])


def rivals(case: Case) -> dict[str, list[Cell]]:
    """Return the panels to beat, as far as they fit into the budget."""
    votes = case.data[0]
    warm = [place for place, name in enumerate(votes.annotators) if name.endswith("@0.7")]
    cold = [place for place, name in enumerate(votes.annotators) if name.endswith("@0")]
    original = votes.relations.index("original")
    found = {
        "PCS": [Cell(a, votes.relations.index(name)) for a in cold for name in PAPER_RELATIONS],
        "SC": [Cell(a, original, draw) for a in warm for draw in range(int(case.calls))],
    }
    return {name: cells for name, cells in found.items() if case.prices.cost(votes, cells) <= case.budget}


def rival_figures(case: Case) -> Mapping[str, Floats]:
    """Return the AUROC per split of every rival with every optimiser."""
    return {
        f"{name} {optimiser}": np.array([tested(case, cells, optimiser, rows) for rows in case.splits()])
        for name, cells in rivals(case).items()
        for optimiser in ("uniform", *LEARNERS)
    }


def designed_figures(case: Case) -> tuple[Floats, Floats]:
    """Return AUROC and cost of the designed panel per split."""
    votes, gold, _ = case.data
    values, costs = [], []
    for rows in case.splits():
        choice = choose_panel(votes.take(rows[0]), gold[rows[0]], case.budget, case.prices)
        values.append(tested(case, choice.cells, choice.optimiser, rows))
        costs.append(choice.cost)
    return np.array(values), np.array(costs)


def cases(*, rewrites_count: bool) -> list[Case]:
    found = []
    for name in ("sentiment", "gossipcop"):
        votes, gold, names = load(f"recorded/votes_{name}.csv.gz")
        free = dict.fromkeys(votes.relations, 0.0)
        prices = Prices(by_relation=DUMMIES if rewrites_count else free)
        for models in ((SMALL,), (SMALL, LARGE)):
            asked = votes.select(annotators=[f"{model}@{heat}" for model in models for heat in ("0", "0.7")])
            at_price_of_pcs = [(4 * len(models) + 3) / len(models)] if rewrites_count else []
            for calls in (4, *at_price_of_pcs, 8):
                title = f"{name}, {len(models)} model{'s' * (len(models) > 1)}"
                found.append(Case(title, (asked, gold, names), models, calls, prices))
    return found


def best_of(figures: Mapping[str, Floats], *, learned: bool) -> tuple[str, Floats]:
    """Return the rival with the best mean, either with equal weights only or with any optimiser."""
    allowed = {name: values for name, values in figures.items() if learned or name.endswith("uniform")}
    best = max(allowed, key=lambda name: float(allowed[name].mean()))
    return best, allowed[best]


def show(*, rewrites_count: bool) -> None:
    print(f"\nRewriting calls {'count for all' if rewrites_count else 'do not count'}; AUROC × 100, {SPLITS} splits")
    print(
        f"{'case':22}{'budget':>7}{'designed':>10}{'its cost':>9}"
        f"   {'best rival, equal weights':38}   best rival, any optimiser"
    )
    gaps: list[list[float]] = []
    tables = []
    for case in cases(rewrites_count=rewrites_count):
        values, costs = designed_figures(case)
        figures = rival_figures(case)
        line = f"{case.title:22}{case.budget:7.0f}{100 * values.mean():10.2f}{costs.mean():9.1f}"
        gaps.append([])
        for learned in (False, True):
            name, theirs = best_of(figures, learned=learned)
            gap = 100 * (values - theirs)
            gaps[-1].append(float(gap.mean()))
            line += f"   {name:15}{100 * theirs.mean():6.2f} {gap.mean():+5.2f} ± {gap.std(ddof=1) / SPLITS**0.5:.2f}"
        print(line, flush=True)
        tables.append(f"{case.title:22}{case.budget:7.0f}  " + _listed(figures))
    print("mean gap over the cases: equal weights {:+.2f}, any optimiser {:+.2f}".format(*np.mean(gaps, axis=0)))
    print("rivals with uniform, lr, logit, naive-bayes:", *tables, sep="\n  ")


def _listed(figures: Mapping[str, Floats]) -> str:
    panels = dict.fromkeys(name.split()[0] for name in figures)
    rows = {panel: [100 * v.mean() for name, v in figures.items() if name.split()[0] == panel] for panel in panels}
    return "   ".join(f"{panel:3} " + " ".join(f"{value:.2f}" for value in values) for panel, values in rows.items())


def show_curve(votes: Votes, case: Case) -> None:
    rows = case.splits()[0][0]
    start = time.process_time()
    found = design_panel(votes.take(rows), case.data[1][rows], case.budget, case.prices)
    spent = time.process_time() - start
    print(f"\nQuality–cost curve, {case.title}, rewrites count, one split, {found.optimiser} ({spent:.1f} s CPU)")
    for panel in found.curve:
        low, high = panel.auroc.interval
        counts = Counter(f"{votes.annotators[cell.annotator]} {votes.relations[cell.relation]}" for cell in panel.cells)
        asked = ", ".join(f"{name} × {count}" if count > 1 else name for name, count in counts.items())
        print(f"  cost {panel.cost:4.0f}  AUROC {panel.auroc.value:.3f} [{low:.3f}, {high:.3f}]  {asked}")


def main() -> None:
    warnings.simplefilter("ignore", PcsWarning)
    if not DATA.is_dir():
        print(f"no development data at {DATA}")
        return
    show(rewrites_count=False)
    show(rewrites_count=True)
    for case in cases(rewrites_count=True):
        if case.calls == 8:
            show_curve(case.data[0], case)


if __name__ == "__main__":
    main()
