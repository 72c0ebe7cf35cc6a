"""Findings about labels: without gold, wrong too often, unlike gold, missing, or not accepted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pcs_annotator.core.task import is_empty
from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.core.weights import Flag
from pcs_annotator.judging.metrics.metrics import exact_interval
from pcs_annotator.judging.metrics.significance import mcnemar
from pcs_annotator.judging.promising.drift import MIN_CHANGE, homogeneity
from pcs_annotator.runs.certificate_text import promised
from pcs_annotator.runs.run_result import Facts, percent
from pcs_annotator.showing.figures_text import SHOWN

MANY_TIMES = 2.0
MANY_CHOSEN = 0.1
FEW_ACCEPTED = 0.05
GIVEN_AWAY = 0.99
RARE = 0.05
"""Of labels with a smaller share of gold, only those that are never given are called too rare."""
MAX_P_VALUE = 0.01
"""How likely it may be that some label of a run seems to be given too often or too rarely by chance alone."""
MANY_ROWS_PER_LABEL, EXPECTED_ROWS = 10, 3
"""How many rows a label that is never given must be missed on, at least: without gold, and by its share of gold."""
SAY_WHAT_IT_MEANS = "say in the instruction, or in [task.meanings] of pcs.toml, what it means"


def about_labels(facts: Facts) -> Iterator[Flag]:
    """Yield what is or may be wrong with labels and gold."""
    yield from _revoked(facts)
    yield from _without_gold(facts)
    yield from _chosen_gold(facts)
    yield from _chance(facts)
    yield from _told_by_the_text(facts)
    yield from _one_label(facts)
    yield from _accepted(facts)
    yield from _unlike_gold(facts)
    yield from _never_given(facts)
    yield from _without_label(facts)


def _revoked(facts: Facts) -> Iterator[Flag]:
    certificate = facts.learned.model.certificate
    if certificate is not None and certificate.revoked:
        detail = f"{promised(certificate).headline}; no label is accepted until a new fit: label more random rows"
        yield Flag("promise fell away", detail)


def _without_gold(facts: Facts) -> Iterator[Flag]:
    if not len(facts.gold_codes):
        detail = (
            "how often the labels are right is unknown, even where all answers agree: label some rows (30 are a start) "
            "and run pcs fit"
        )
        yield Flag("no gold labels", detail)


def _chosen_gold(facts: Facts) -> Iterator[Flag]:
    gold = len(facts.gold_codes)
    chosen = gold - len(facts.random_gold_codes)
    if chosen and chosen >= MANY_CHOSEN * gold:
        detail = (
            f"{chosen:,} of {gold:,} gold rows were chosen, not drawn at random, and are mostly harder than others, so "
            "figures look worse than they are; a promise counts random rows alone"
        )
        yield Flag("gold chosen", detail)


def _told_by_the_text(facts: Facts) -> Iterator[Flag]:
    """Yield that the text alone gives its label away, which mostly means that the label was written into it."""
    text = facts.learned.model.text
    if text is not None and text.accuracy >= GIVEN_AWAY:
        detail = (
            f"the words of a text tell its gold label in {percent(text.accuracy)} of gold rows: check that the label "
            "was not written into the text, and that gold was not made by searching for words"
        )
        yield Flag("texts tell labels", detail)


def _chance(facts: Facts) -> Iterator[Flag]:
    """Yield that scores tell labels apart no better than guesses would, by the held-out class AUROC."""
    if not facts.learned.figures:
        return
    auroc = facts.learned.figures[0].auroc
    low, high = auroc.interval.rounded(2)
    figures = f"a class AUROC of {auroc.value:.2f} [{low:.2f}, {high:.2f}] on {auroc.n:,} gold rows"
    if auroc.interval.high < 0.5:
        detail = f"labels are told apart worse than by chance: {figures}; check that gold and labels mean the same"
        yield Flag("confidence below chance", detail)
    elif auroc.interval.low <= 0.5:
        detail = f"PCS may tell labels apart no better than chance: {figures}; use better models, or label more rows"
        yield Flag("chance not ruled out", detail)


def _one_label(facts: Facts) -> Iterator[Flag]:
    """Yield that one label for all rows would be right as often, unless held-out labels are clearly better."""
    found = facts.learned.against_gold
    if found is None:
        return
    gold, right = found.table.sum(axis=0), int(np.trace(found.table))
    top = int(gold.argmax())
    both = int(found.table[top, top])
    only_ours, only_theirs = right - both, int(gold[top]) - both
    if only_ours > only_theirs and mcnemar(only_ours, only_theirs) < SHOWN:
        return
    better = "not clearly better" if only_ours > only_theirs else "no better"
    what = (
        f"the labels are {better} than always giving {found.labels[top]!r}: {percent(right / found.n)} of "
        f"{found.n:,} held-out gold rows are right, against {percent(gold[top] / found.n)}"
    )
    remedy = "say in the instruction how labels differ, compare models with pcs compare, or label more rows"
    yield Flag("no better than one label", f"{what}; {remedy}")


def _accepted(facts: Facts) -> Iterator[Flag]:
    """Yield that a promise was asked for, and that hardly any label is accepted."""
    model = facts.learned.model
    fell_away = any(flag.kind == "promise fell away" for flag in model.weights.diagnostics.flags)
    if model.certificate is None or model.certificate.revoked or fell_away:
        return
    decisions = [outcome.decision for outcome in facts.outcomes if outcome.label is not None]
    accepted = decisions.count("accept")
    if accepted >= FEW_ACCEPTED * len(decisions):
        return
    more = f"allow more errors than {percent(model.certificate.promise.max_error)} (--max-error)"
    if model.certificate.holds:
        what = f"only {accepted:,} of {len(decisions):,} labels are accepted, because few are sure enough"
        remedy = f"use a better model, ask more questions, or {more}"
    else:
        what = f"none of {len(decisions):,} labels is accepted, because there is no promise"
        gold = "label more random rows (those in to_label.csv of a run folder) and run pcs fit"
        remedy = f"{'use better models' if model.certificate.hopeless else gold}, or {more}"
    yield Flag("nothing accepted", f"{what}: {remedy}")


def _unlike_gold(facts: Facts) -> Iterator[Flag]:
    """Yield the labels whose share is far from that among gold, beyond what samples of this size show by chance."""
    labels, gold, given = facts.votes.labels, facts.random_gold_codes, facts.label_counts
    rows = given.total()
    if not rows or not len(gold):
        return
    expected = np.bincount(gold, minlength=len(labels))
    often, rarely = [], []
    for code, label in enumerate(labels):
        share, usual = given[label] / rows, expected[code] / len(gold)
        usually, here = (np.array([one, n - one]) for one, n in ((expected[code], len(gold)), (given[label], rows)))
        if not given[label] or homogeneity(usually, here) >= MAX_P_VALUE / len(labels):
            continue
        detail = (
            f"{label!r} is the label of {percent(share)} of {rows:,} rows, but of {percent(usual)} of the "
            f"{len(gold):,} gold rows: look at rows with"
        )
        if share >= usual + MIN_CHANGE or share >= MANY_TIMES * usual:
            often.append(f"{detail} this label and say in the instruction what it does not mean")
        elif share <= usual - MIN_CHANGE or (MANY_TIMES * share <= usual and usual >= RARE):
            rarely.append(f"{detail} this gold label and {SAY_WHAT_IT_MEANS}")
    if len(labels) == 2 and often:  # then the other says the same
        rarely = []
    unless = "unless the gold rows were chosen to have another mix of labels"
    yield from (Flag("label given too often", f"{detail}, {unless}") for detail in often)
    yield from (Flag("label given too rarely", f"{detail}, {unless}") for detail in rarely)


def _never_given(facts: Facts) -> Iterator[Flag]:
    """Yield the labels that no row has: those that gold leads to expect or, without gold, all if rows are many."""
    labels, gold, given = facts.votes.labels, facts.random_gold_codes, facts.label_counts
    rows = given.total()
    expected = np.bincount(gold, minlength=len(labels))
    for code, label in enumerate(labels):
        if given[label]:
            continue
        if not len(facts.gold_codes) and rows >= MANY_ROWS_PER_LABEL * len(labels):
            detail = f"if there are such texts, {SAY_WHAT_IT_MEANS}; if not, leave it out of the labels"
            yield Flag("label never given", f"none of {rows:,} rows is labelled {label!r}: {detail}")
        elif len(gold) and rows * exact_interval(int(expected[code]), len(gold)).low >= EXPECTED_ROWS:
            share = percent(expected[code] / len(gold))
            detail = f"but {share} of the {len(gold):,} gold rows are: look at those and {SAY_WHAT_IT_MEANS}"
            yield Flag("label never given", f"none of {rows:,} rows is labelled {label!r}, {detail}")


def _without_label(facts: Facts) -> Iterator[Flag]:
    empty = np.array([outcome.label is None for outcome in facts.outcomes], dtype=np.bool_)
    unasked = empty & (facts.votes.codes == NOT_ASKED).all(axis=(1, 2, 3))
    blank = np.zeros_like(empty)
    if facts.texts is not None:
        blank = empty & np.array([is_empty(text) for text in facts.texts], dtype=np.bool_)
    for rows, why in (
        (unasked & ~blank, "because no question was answered: run again, with a higher limit if one was reached"),
        (empty & ~unasked & ~blank, "because no model gave a usable answer"),
        (blank, "because the text is empty"),
    ):
        if count := int(rows.sum()):
            yield Flag(
                "rows without a label", f"{f'{count:,} rows have' if count > 1 else '1 row has'} no label, {why}"
            )
