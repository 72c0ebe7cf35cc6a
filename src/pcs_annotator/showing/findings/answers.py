"""Findings about models, relations and their answers: missing, unreadable, unstable, or unlike all others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.variant import ORIGINAL, VariantCount
from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED
from pcs_annotator.core.weights import Flag, FlagKind
from pcs_annotator.judging.evaluation.flips import FlipMatrix, flip_matrices
from pcs_annotator.judging.metrics.metrics import exact_interval
from pcs_annotator.relations.languages import MOST, languages_of
from pcs_annotator.runs.run_result import Facts, percent

FEW_VOTES = 0.2
MANY_UNREADABLE = 0.1
LEAST_UNREADABLE = 5
MANY_FLIPS = 0.15
FAR_BELOW = 0.2


def about_answers(facts: Facts) -> Iterator[Flag]:
    """Yield what is or may be wrong with models, relations and their answers."""
    yield from _flips(facts)
    yield from _disagreeing(facts)
    yield from _not_for_this_language(facts)
    yield from _few_votes(facts)
    yield from _unreadable(facts)
    yield from texts_cut(facts.cut, len(facts.votes))


def _flips(facts: Facts) -> Iterator[Flag]:
    """Yield the models whose labels depend on the question; a promise that holds has allowed for that."""
    certificate = facts.learned.model.certificate
    if certificate is not None and certificate.holds:
        return
    often: defaultdict[str, list[FlipMatrix]] = defaultdict(list)
    for one in flip_matrices(facts.votes):
        if one.flips.pairs and exact_interval(one.flips.changed, one.flips.pairs).low > MANY_FLIPS:
            often[one.annotator].append(one)
    if not often:
        return
    detail = (
        f"{'; '.join(_worst(model, found) for model, found in often.items())}: these labels depend on how the question "
        "is put; say in the instruction how labels differ, use a better model, or leave out a relation that changes "
        "what the text means (pcs relations try)"
    )
    yield Flag("label flips", detail)


def _worst(model: str, found: Sequence[FlipMatrix]) -> str:
    worst = max(found, key=lambda one: one.flips.changed / one.flips.pairs)
    pairs, changed = worst.flips
    more = f" (as well as under {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{model} changes {percent(changed / pairs)} of its {pairs:,} answers under {worst.relation}{more}"


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
    for place, name in enumerate(votes.annotators):
        mine = np.stack([same[:, place].sum(axis=1), both[:, place].sum(axis=1)]).astype(float)
        rest = total - 2 * mine
        known = (mine[1] > 0) & (rest[1] > 0)
        if known.sum() < 2 or any(detail.startswith(f"{name} ") for detail in useless):
            continue
        alone, together = (counts[0, known] / counts[1, known] for counts in (mine, rest))
        gap = together - alone
        if gap.mean() < FAR_BELOW + 2 * gap.std(ddof=1) / np.sqrt(len(gap)):
            continue
        detail = (
            f"{name} agrees with the other models on {percent(alone.mean())} of {len(gap):,} texts, and they with each "
            f"other on {percent(together.mean())}: look at its answers with pcs ledger export, and leave it out if "
            "they are wrong"
        )
        yield Flag("disagreeing annotator", detail)


class _Ends(NamedTuple):
    """How the rewrites of one relation ended without a text to ask about."""

    not_applicable: Counter[str]
    rejected: Counter[str]


def _not_for_this_language(facts: Facts) -> Iterator[Flag]:
    """Yield the rules that did not apply to many texts because of their language, and what to use instead."""
    limits = facts.language_limits
    if limits and facts.texts is not None:
        yield Flag("not for this language", languages_of(facts.texts).limited(limits, len(facts.votes)))


def _few_votes(facts: Facts) -> Iterator[Flag]:
    votes = facts.votes
    if votes.silent.all():  # then the models are to blame, not the relations
        return
    for place, name in enumerate(votes.relations):
        cells = votes.codes[:, :, place]
        voted = (cells >= 0).any(axis=(1, 2))
        explained = facts.texts is not None and facts.language_limits.get(name, 0) > MOST * (~voted).sum()
        if name == ORIGINAL or voted.sum() >= FEW_VOTES * len(votes) or explained:
            continue
        unreadable = int((~voted & (cells == ABSTAINED).any(axis=(1, 2))).sum())
        cast = "no votes" if not voted.any() else f"votes on only {voted.sum():,} of {len(votes):,} texts"
        kind: FlagKind = "relation with few votes" if voted.any() else "relation without votes"
        left = len(votes) - int(voted.sum()) - unreadable
        yield Flag(kind, f"{name} cast {cast}: {_why(_ends(facts.rewrites, name), unreadable, left)}")


def _ends(rewrites: Sequence[VariantCount], relation: str) -> _Ends:
    ends = _Ends(Counter(), Counter())
    for one in rewrites:
        if one.relation == relation and one.status in ends._fields:
            getattr(ends, one.status)[one.reason] += one.times
    return ends


def _why(ends: _Ends, unreadable: int, left: int) -> str:
    """Return why a relation has few votes, the commonest cause first, and what helps against that one.

    `left` counts texts without any answer under the relation, whether or not it is known how their rewrite ended.
    """
    unasked = max(left - ends.not_applicable.total() - ends.rejected.total(), 0)
    causes = [
        (
            ends.not_applicable.total(),
            f"it did not apply to {{}} texts{_commonest(ends.not_applicable)}",
            "leave it out of --relations, or look for others with pcs relations check",
        ),
        (
            ends.rejected.total(),
            f"a check rejected {{}} rewrites{_commonest(ends.rejected)}",
            "look at the rejected rewrites in the report, or use a better --rewriter",
        ),
        (
            unreadable,
            "no answer to {} texts was readable",
            "look at the answers with pcs ledger export, or use a model that keeps to the labels",
        ),
        (unasked, "{} texts were not asked about", "run the same command again, or leave it out of --relations"),
    ]
    causes = sorted((cause for cause in causes if cause[0]), key=lambda cause: -cause[0])
    return f"{', '.join(what.format(f'{times:,}') for times, what, _ in causes)}; {causes[0][2]}"


def _commonest(reasons: Counter[str]) -> str:
    top = next((reason for reason, _ in reasons.most_common(1)), "")
    return f" ({'most often: ' if len(reasons) > 1 else ''}{top})" if top else ""


def _unreadable(facts: Facts) -> Iterator[Flag]:
    for place, name in enumerate(facts.votes.annotators):
        codes = facts.votes.codes[:, place]
        asked, silent = int((codes != NOT_ASKED).sum()), int((codes == ABSTAINED).sum())
        if LEAST_UNREADABLE <= silent < asked and silent >= MANY_UNREADABLE * asked:
            detail = (
                f"{silent:,} of {asked:,} answers of {name} have no readable label: look at them with pcs ledger "
                "export, or use a model that keeps to the labels"
            )
            yield Flag("unreadable answers", detail)


def texts_cut(cut: Mapping[str, int], texts: int) -> Iterator[Flag]:
    """Yield the annotators that saw only a part of some texts."""
    for name, times in cut.items():
        detail = (
            f"{times:,} of {texts:,} texts do not fit into the context of {name}, which saw only a part of "
            "them: use a model with a longer context, or split these texts"
        )
        yield Flag("texts cut", detail)
