"""A comparison in a few plain sentences, the same on the command line and on the page."""

from __future__ import annotations

from pcs_annotator.base.text import counted
from pcs_annotator.judging.evaluation.relation_value import two_digits
from pcs_annotator.judging.metrics.significance import BootstrapTest, p_text, rows_to_tell
from pcs_annotator.runs.certificate_text import promised, without_gold
from pcs_annotator.showing.figures_text import SHOWN
from pcs_annotator.showing.formats import number, percent, signed
from pcs_annotator.studies.compare.comparison import Comparison, SideCost
from pcs_annotator.studies.compare.sides import PART_HAS_NO_PROMISE, Side

LEAST_DIFFERENCE = 0.02
"""The smallest difference in accuracy for which the number of rows that it takes is named."""
SAME_COST = 0.02
NOT_REQUESTED = "no promise was requested"


def verdict(found: Comparison) -> list[str]:
    """Return what the comparison comes to: accuracy first, then agreement and cost."""
    return [_accuracy(found), *_auroc(found), _agreement(found), about_cost(*found.costs)]


def _accuracy(found: Comparison) -> str:
    figures = found.figures
    if figures is None:
        return f"Which of the two is right more often is not known: {found.no_figures.rstrip('.')}."
    test = figures.accuracy
    if test.p_value < SHOWN:
        size = number(100 * abs(test.difference), 1)
        basis = f"95 % {_ends(test)}; {counted(test.n, 'gold row')}, {p_text(test.p_value)}"
        return f"B is {'more' if test.difference > 0 else 'less'} accurate than A by {size} points ({basis})."
    worth = max(abs(test.difference), LEAST_DIFFERENCE)
    needed = rows_to_tell(test, worth)
    return (
        f"No difference in accuracy can be told from {counted(test.n, 'gold row')}: B − A is "
        f"{signed(100 * test.difference, 1)} points (95 % {_ends(test)}; {p_text(test.p_value)}). To tell a difference "
        f"of {number(100 * worth, 1)} points, about {two_digits(needed):,} would be needed."
    )


def _auroc(found: Comparison) -> list[str]:
    """Return whether one side separates the labels better; nothing if that cannot be told."""
    if found.figures is None or found.figures.auroc.p_value >= SHOWN:
        return []
    test = found.figures.auroc
    better = "better" if test.difference > 0 else "worse"
    ends = " to ".join(signed(end) for end in test.interval.rounded(3))
    return [
        f"B separates the labels {better} than A: its class AUROC is {signed(test.difference)} "
        f"(95 % {ends}; {p_text(test.p_value)})."
    ]


def _agreement(found: Comparison) -> str:
    share = percent(found.differing, found.rows)
    kappa = "" if found.kappa.value is None else f"; Cohen's κ = {number(found.kappa.value)}"
    return f"They give different labels to {found.differing:,} of {counted(found.rows, 'row')} ({share}{kappa})."


def about_cost(ours: SideCost, theirs: SideCost) -> str:
    """Return how many times as much B costs, or how many times as many calls it makes if a price is unknown."""
    if ours.usd and theirs.usd:
        times, same, more = theirs.usd / ours.usd, "Both cost the same", "B costs {} × as much as A"
    elif ours.calls and theirs.calls:
        times, same, more = theirs.calls / ours.calls, "Both make as many calls", "B makes {} × as many calls as A"
    else:
        return "What they cost is not known: no calls are recorded."
    return f"{same}." if abs(times - 1) < SAME_COST else f"{more.format(number(times, 2 if times < 1 else 1))}."


def promise_of(side: Side) -> str:
    """Return what is promised about the labels that a side accepts."""
    model = side.result.learned.model
    if not side.part.whole:
        return PART_HAS_NO_PROMISE
    if model.by_agreement:
        return without_gold(side.result.counts).headline
    return NOT_REQUESTED if model.certificate is None else promised(model.certificate).headline


def _ends(test: BootstrapTest) -> str:
    low, high = (100 * end for end in test.interval.rounded(3))
    return f"{number(low, 1)} to {number(high, 1)}"
