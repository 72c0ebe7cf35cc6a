"""Findings about a run, each in one sentence that says what to do: models, relations, answers, labels, gold."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import get_args

import numpy as np

from pcs_annotator.base.text import counted
from pcs_annotator.core.task import is_empty
from pcs_annotator.core.variant import ORIGINAL, VariantCount
from pcs_annotator.core.votes import ABSTAINED, NOT_ASKED
from pcs_annotator.core.weights import Flag, FlagKind
from pcs_annotator.judging.metrics.coefficients import FlipMatrix, flip_matrices
from pcs_annotator.judging.metrics.figures import exact_interval
from pcs_annotator.judging.metrics.significance import mcnemar
from pcs_annotator.judging.promise.drift import MIN_CHANGE, homogeneity
from pcs_annotator.relations.limits import MOST, languages_of
from pcs_annotator.runs.certificate_text import promised
from pcs_annotator.runs.run_result import Facts, percent
from pcs_annotator.showing.formats import SHOWN

FEW_VOTES = 0.2
MANY_UNREADABLE = 0.1
LEAST_UNREADABLE = 5
MANY_FLIPS = 0.15
FAR_BELOW = 0.2
MANY_TIMES = 2.0
MANY_CHOSEN = 0.1
FEW_ACCEPTED = 0.05
GIVEN_AWAY = 0.99
RARE = 0.05  # of labels with a smaller share of gold, only those that are never given are called too rare
MAX_P_VALUE = 0.01
"""How likely it may be that some label of a run seems to be given too often or too rarely by chance alone."""
MANY_ROWS_PER_LABEL, EXPECTED_ROWS = 10, 3
"""How many rows a label that is never given must be missed on, at least: without gold, and by its share of gold."""
LOOK_AT_ANSWERS = "look at its answers (column reply of ledger.db)"
SAY_WHAT_IT_MEANS = "say in the instruction, or in [task.meanings] of pcs.toml, what it means"


def _flips(facts: Facts) -> Iterator[Flag]:
    """Yield the models whose labels depend on the question; a promise that holds has allowed for that."""
    certificate = facts.learned.model.certificate
    if certificate is not None and certificate.holds:
        return
    often: defaultdict[str, list[FlipMatrix]] = defaultdict(list)
    for matrix in flip_matrices(facts.votes):
        if matrix.flips.pairs and exact_interval(matrix.flips.changed, matrix.flips.pairs).low > MANY_FLIPS:
            often[matrix.annotator].append(matrix)
    sentences = []
    for model, matrices in often.items():
        worst = max(matrices, key=lambda times: times.flips.changed / times.flips.pairs)
        pairs, changed = worst.flips
        more = f" (as well as under {len(matrices) - 1} more)" if len(matrices) > 1 else ""
        sentences.append(
            f"{model} changes {percent(changed / pairs)} of its {pairs:,} answers under {worst.relation}{more}"
        )
    remedy = "say in the instruction how labels differ, use a better model, or leave out a relation that changes what"
    if sentences:
        why = f"these labels depend on how the question is put; {remedy} the text means (pcs relations try)"
        yield Flag("label flips", f"{'; '.join(sentences)}: {why}")


def _disagreeing(facts: Facts) -> Iterator[Flag]:
    """Yield the models that agree with the others far less than these do with each other, on the original texts."""
    votes = facts.votes
    if len(votes.annotators) < 3:
        return
    codes = votes.codes[:, :, votes.relations.index(votes.original), 0]
    apart = ~np.eye(len(votes.annotators), dtype=np.bool_)
    both = (codes >= 0)[:, :, None] & (codes >= 0)[:, None, :] & apart
    same = both & (codes[:, :, None] == codes[:, None, :])
    total = np.stack([same.sum(axis=(1, 2)), both.sum(axis=(1, 2))])
    useless = [flag.detail for flag in facts.learned.model.weights.diagnostics.flags if "annotator" in flag.kind]
    for index, name in enumerate(votes.annotators):
        mine = np.stack([same[:, index].sum(axis=1), both[:, index].sum(axis=1)]).astype(float)
        rest = total - 2 * mine
        comparable = (mine[1] > 0) & (rest[1] > 0)
        if comparable.sum() < 2 or any(detail.startswith(f"{name} ") for detail in useless):
            continue
        alone, together = (counts[0, comparable] / counts[1, comparable] for counts in (mine, rest))
        gap = together - alone
        if gap.mean() >= FAR_BELOW + 2 * gap.std(ddof=1) / np.sqrt(len(gap)):
            what = f"{name} agrees with the other models on {percent(alone.mean())} of {len(gap):,} texts, and they"
            remedy = f"{LOOK_AT_ANSWERS}, and leave it out if they are wrong"
            yield Flag("disagreeing annotator", f"{what} with each other on {percent(together.mean())}: {remedy}")


def _not_for_this_language(facts: Facts) -> Iterator[Flag]:
    """Yield the rules that did not apply to many texts because of their language, and what to use instead."""
    limits = facts.language_limits
    if limits and facts.texts is not None:
        yield Flag("not for this language", languages_of(facts.texts).limited(limits, len(facts.votes)))


def _few_votes(facts: Facts) -> Iterator[Flag]:
    votes = facts.votes
    if votes.silent.all():  # then the models are to blame, not the relations
        return
    for index, name in enumerate(votes.relations):
        cells = votes.codes[:, :, index]
        voted = (cells >= 0).any(axis=(1, 2))
        explained = facts.texts is not None and facts.language_limits.get(name, 0) > MOST * (~voted).sum()
        if name == ORIGINAL or voted.sum() >= FEW_VOTES * len(votes) or explained:
            continue
        unreadable = int((~voted & (cells == ABSTAINED).any(axis=(1, 2))).sum())
        cast = "no votes" if not voted.any() else f"votes on only {voted.sum():,} of {len(votes):,} texts"
        kind: FlagKind = "relation with few votes" if voted.any() else "relation without votes"
        left = len(votes) - int(voted.sum()) - unreadable
        ended = [rewrite for rewrite in facts.rewrites if rewrite.relation == name]
        yield Flag(kind, f"{name} cast {cast}: {_why(ended, unreadable, left)}")


def _why(rewrites: Sequence[VariantCount], unreadable: int, left: int) -> str:
    """Return why a relation has few votes, the commonest cause first, and what helps against that one.

    `left` counts texts without any answer under the relation, whether or not it is known how their rewrite ended.
    """
    ends = {"not_applicable": Counter[str](), "rejected": Counter[str]()}
    for rewrite in rewrites:
        if rewrite.status in ends:
            ends[rewrite.status][rewrite.reason] += rewrite.times
    unused, rejected = ends.values()
    reading = f"{LOOK_AT_ANSWERS.replace('its', 'the')}, or use a model that keeps to the labels"
    checking = "look at the rejected rewrites in the report, or use a better --rewriter"
    leaving = "leave it out of --relations, or try others: pcs relations list"
    asking = "run the same command again, or leave it out of --relations"
    causes = [
        (unused.total(), "it did not apply to {:,} texts", _commonest(unused), leaving),
        (rejected.total(), "a check rejected {:,} rewrites", _commonest(rejected), checking),
        (unreadable, "no answer to {:,} texts was readable", "", reading),
        (max(left - unused.total() - rejected.total(), 0), "{:,} texts were not asked about", "", asking),
    ]
    causes = sorted((cause for cause in causes if cause[0]), key=lambda cause: -cause[0])
    return f"{', '.join(what.format(times) + reason for times, what, reason, _ in causes)}; {causes[0][3]}"


def _commonest(reasons: Counter[str]) -> str:
    top = next((reason for reason, _ in reasons.most_common(1)), "")
    return f" ({'most often: ' if len(reasons) > 1 else ''}{top})" if top else ""


def _unreadable(facts: Facts) -> Iterator[Flag]:
    for index, name in enumerate(facts.votes.annotators):
        codes = facts.votes.codes[:, index]
        asked, silent = int((codes != NOT_ASKED).sum()), int((codes == ABSTAINED).sum())
        if LEAST_UNREADABLE <= silent < asked and silent >= MANY_UNREADABLE * asked:
            what = f"{silent:,} of {asked:,} answers of {name} have no readable label"
            remedy = "look at them (column reply of ledger.db), or use a model that keeps to the labels"
            yield Flag("unreadable answers", f"{what}: {remedy}")


def texts_cut(cut: Mapping[str, int], texts: int) -> Iterator[Flag]:
    """Yield the annotators that saw only a part of some texts."""
    for name, times in cut.items():
        what = f"{times:,} of {texts:,} texts do not fit into the context of {name}, which saw only a part of them"
        yield Flag("texts cut", f"{what}: use a model with a longer context, or split these texts")


def _revoked(facts: Facts) -> Iterator[Flag]:
    certificate = facts.learned.model.certificate
    if certificate is not None and certificate.revoked:
        detail = f"{promised(certificate).headline}; no label is accepted until a new fit: label more random rows"
        yield Flag("promise fell away", detail)


def _without_gold(facts: Facts) -> Iterator[Flag]:
    if not len(facts.gold_codes):
        what = "nobody knows how often the labels are right, even where all answers agree"
        yield Flag("no gold labels", f"{what}: label some rows (30 are a start) and run pcs fit")


def _chosen_gold(facts: Facts) -> Iterator[Flag]:
    gold = len(facts.gold_codes)
    chosen = gold - len(facts.random_gold_codes)
    if chosen and chosen >= MANY_CHOSEN * gold:
        what = f"{chosen:,} of {gold:,} gold rows were chosen, not drawn at random, and may be harder or easier than"
        so = "figures describe these rows, not the table; a promise counts only random rows"
        yield Flag("gold chosen", f"{what} others: {so}")


def _told_by_the_text(facts: Facts) -> Iterator[Flag]:
    """Yield that the text alone gives its label away, which mostly means that the label was written into it."""
    text = facts.learned.model.text
    if text is not None and text.accuracy >= GIVEN_AWAY:
        what = f"the words of a text give away its gold label in {percent(text.accuracy)} of gold rows"
        remedy = "check that the label was not written into the text, and that gold was not made by searching for words"
        yield Flag("texts tell labels", f"{what}: {remedy}")


def _chance(facts: Facts) -> Iterator[Flag]:
    """Yield that answers tell labels apart no better than guesses; texts may make the labels right all the same."""
    if not facts.learned.figures:
        return
    auroc, read = facts.learned.figures[0].auroc, facts.learned.model.text is not None
    low, high = auroc.interval.rounded(2)
    figures = f"a class AUROC of {auroc.value:.2f} [{low:.2f}, {high:.2f}] on {auroc.n:,} gold rows"
    if auroc.interval.high < 0.5 and not read:
        detail = f"the models' answers tell labels apart worse than chance: {figures}"
        yield Flag("confidence below chance", f"{detail}; check that gold and labels mean the same")
    elif auroc.interval.low <= 0.5:
        detail = f"the models' answers may tell labels apart no better than chance: {figures}"
        remedy = "what is right comes from the texts; better models would add to it" if read else "use better models"
        yield Flag("chance not ruled out", f"{detail}; {remedy}{'' if read else ', or label more rows'}")


def _one_label(facts: Facts) -> Iterator[Flag]:
    """Yield that one label for all rows would be right as often, unless held-out labels are clearly better."""
    against_gold = facts.learned.against_gold
    if against_gold is None or not against_gold.by_label:
        return
    gold, right = against_gold.table.sum(axis=0), int(np.trace(against_gold.table))
    top = int(gold.argmax())
    both = int(against_gold.table[top, top])
    only_ours, only_theirs = right - both, int(gold[top]) - both
    if only_ours > only_theirs and mcnemar(only_ours, only_theirs) < SHOWN:
        return
    better = "not clearly better" if only_ours > only_theirs else "no better"
    what = (
        f"the labels are {better} than always giving {against_gold.labels[top]!r}: {percent(right / against_gold.n)} "
        f"of {against_gold.n:,} held-out gold rows are right, against {percent(gold[top] / against_gold.n)}"
    )
    remedy = "say in the instruction how labels differ, compare models with pcs compare, or label more rows"
    yield Flag("no better than one label", f"{what}; {remedy}")


def _accepted(facts: Facts) -> Iterator[Flag]:
    """Yield that a promise was asked for, that hardly any label is accepted, and what would help."""
    model = facts.learned.model
    if model.certificate is None or model.certificate.revoked:
        return
    decisions = [outcome.decision for outcome in facts.outcomes if outcome.label is not None]
    accepted = decisions.count("accept")
    if accepted >= FEW_ACCEPTED * len(decisions):
        return
    if any(flag.kind == "promise fell away" for flag in model.weights.diagnostics.flags):
        return
    if model.certificate.holds:
        what = f"only {accepted:,} of {len(decisions):,} labels are accepted, because few are sure enough"
        remedy = "use a better model, or ask more questions"
    else:
        what = f"none of {len(decisions):,} labels is accepted, because there is no promise"
        remedy = "label more random rows (those in to_label.csv of a run folder) and run pcs fit, use better models, or"
        remedy += " let people label the least certain rows (pcs finish)"
    yield Flag("nothing accepted", f"{what}: {remedy}")


def _unlike_gold(facts: Facts) -> Iterator[Flag]:
    """Yield the labels whose share is far from that among gold, beyond what samples of this size show by chance."""
    labels, gold, label_counts = facts.votes.labels, facts.random_gold_codes, facts.label_counts
    rows = label_counts.total()
    if not rows or not len(gold):
        return
    expected = np.bincount(gold, minlength=len(labels))
    often, rarely = [], []
    for code, label in enumerate(labels):
        times = label_counts[label]
        share, usual = times / rows, expected[code] / len(gold)
        of_gold = np.array([expected[code], len(gold) - expected[code]])
        of_rows = np.array([times, rows - times])
        if not times or homogeneity(of_gold, of_rows) >= MAX_P_VALUE / len(labels):
            continue
        detail = f"{label!r} is the label of {percent(share)} of {rows:,} rows, but of {percent(usual)} of the "
        detail += f"{len(gold):,} gold rows: look at rows with"
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
    labels, gold, label_counts = facts.votes.labels, facts.random_gold_codes, facts.label_counts
    rows = label_counts.total()
    expected = np.bincount(gold, minlength=len(labels))
    for code, label in enumerate(labels):
        if label_counts[label]:
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
        if missing := int(rows.sum()):
            yield Flag("rows without a label", f"{counted(missing, 'row has', 'rows have')} no label, {why}")


_FINDINGS: Sequence[Callable[[Facts], Iterator[Flag]]] = (
    *(_flips, _disagreeing, _not_for_this_language, _few_votes, _unreadable),
    lambda facts: texts_cut(facts.cut, len(facts.votes)),
    *(_revoked, _without_gold, _chosen_gold, _chance, _told_by_the_text, _one_label, _accepted, _unlike_gold),
    lambda facts: (Flag("labels chosen per text", text.rstrip(".")) for text in [facts.candidates] if text),
    *(_never_given, _without_label),
)


def what_to_look_at(facts: Facts) -> list[Flag]:
    """Return all findings, the most important first."""
    flags = [*facts.learned.model.weights.diagnostics.flags, *(flag for find in _FINDINGS for flag in find(facts))]
    return sorted(flags, key=lambda flag: get_args(FlagKind).index(flag.kind))
