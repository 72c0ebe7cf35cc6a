"""Combined relations: one after the other, or the first that applies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from pcs_annotator.core.task import Phrasing
from pcs_annotator.core.variant import CheckResult, Expectation, Status, Variant
from pcs_annotator.relations.base import Context, MadeOf, Original, QuestionRelation, Relation, rephrased
from pcs_annotator.relations.checks.run import CheckedRelation
from pcs_annotator.relations.language import LIMITS, why_not_english
from pcs_annotator.relations.rule import NotApplicable, SentenceRule, TextRule


@dataclass(frozen=True, slots=True)
class InTurn(MadeOf):
    """`a+b`: each part changes the result of the one before; all must apply."""

    name: str
    parts: tuple[Relation, ...]

    @property
    def expects(self) -> Expectation:
        """What all parts together may do."""
        parts = [part.expects for part in self.parts]
        shortest, longest = (prod(getattr(part, end) for part in parts) for end in ("shortest", "longest"))
        return replace(_all_that_any_may(parts), shortest=shortest, longest=longest)

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question after all parts that change it."""
        for part in self.parts:
            question = rephrased(part, question)
        return question

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the text after all parts, or not applicable if one part fails."""
        current = text
        status: Status = "original"
        checks: tuple[CheckResult, ...] = ()
        for part in self.parts:
            step = await part.rewrite(current, context)
            if step.text is None:
                reason = f"{part.name}: {step.reason}"
                return Variant(relation=self.name, status="not_applicable", reason=reason, source=text)
            current, checks = step.text, checks + step.checks
            if step.status != "original":
                status = step.status
        return Variant(relation=self.name, status=status, text=current, source=text, checks=checks)


@dataclass(frozen=True, slots=True)
class FirstOf(MadeOf):
    """`a|b`: the first part that applies; a free part before a paid one saves calls."""

    name: str
    parts: tuple[Relation, ...]

    @property
    def expects(self) -> Expectation:
        """What any part may do."""
        return _all_that_any_may([part.expects for part in self.parts])

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the first accepted rewrite, or the result of the last part if there is none."""
        variant = Variant(relation=self.name, status="not_applicable", source=text)
        for part in self.parts:
            variant = replace(await part.rewrite(text, context), relation=self.name)
            if variant.status == "changed":
                break
        return variant


def text_parts(relation: Relation) -> tuple[Relation, ...]:
    """Return the relations that a relation applies to texts, in order; none if it leaves texts as they are."""
    if isinstance(relation, InTurn):
        return tuple(part for part in relation.parts if text_parts(part))
    return () if isinstance(relation, QuestionRelation | Original) else (relation,)


def ruled_out(relation: Relation, text: str) -> str:
    """Return why the language or script of a text keeps a relation from applying; empty if it does not.

    Only rules have such limits, and asking them is free: none of them is parsed.
    """
    if isinstance(relation, CheckedRelation):
        return ruled_out(relation.inner, text)
    if isinstance(relation, InTurn):
        return next(filter(None, (ruled_out(part, text) for part in relation.parts)), "")
    if isinstance(relation, FirstOf):
        reasons = [ruled_out(part, text) for part in relation.parts]
        return reasons[-1] if all(reasons) else ""
    if isinstance(relation, SentenceRule) or (isinstance(relation, TextRule) and relation.english):
        reason = why_not_english(text)
    elif isinstance(relation, TextRule):
        result = relation.function(text)
        reason = result.reason if isinstance(result, NotApplicable) else ""
    else:
        return ""
    return reason if reason in LIMITS else ""


def _all_that_any_may(parts: Sequence[Expectation]) -> Expectation:
    flags = ("reorders", "misspells", "renumbers")
    allowed = {flag: any(getattr(part, flag) for part in parts) for flag in flags}
    return Expectation(
        negations="doubled" if any(part.negations == "doubled" for part in parts) else "kept",
        shortest=min(part.shortest for part in parts),
        longest=max(part.longest for part in parts),
        **allowed,
    )
