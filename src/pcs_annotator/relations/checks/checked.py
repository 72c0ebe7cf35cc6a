"""A relation whose rewrites are checked before anybody is asked about them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.relations.base import Context, Need, Relation
from pcs_annotator.relations.checks.run import check_rewrite


@dataclass(frozen=True, slots=True)
class CheckedRelation:
    """A relation under the name that the user wrote, with every rewrite checked.

    Attributes:
        inner: What rewrites.
        name: As it appears in tables.
        judged: Whether the model that rewrites is also asked if a rewrite means the same.
    """

    inner: Relation
    name: str
    judged: bool = False

    @property
    def version(self) -> str:
        """Version of what rewrites."""
        return self.inner.version

    @property
    def needs(self) -> frozenset[Need]:
        """What the rewriting cannot work without."""
        return self.inner.needs

    @property
    def deterministic(self) -> bool:
        """Whether the same text always gives the same rewrite."""
        return self.inner.deterministic

    @property
    def expects(self) -> Expectation:
        """What rewrites are held to."""
        return self.inner.expects

    def calls(self, text: str) -> float:
        """Return the calls of the first attempt; how many second ones there will be, nobody knows."""
        return self.inner.calls(text)

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the rewrite if it passes; a rejected one is tried once more, with the reason told to the rewriter."""
        first = await self._attempt(text, context)
        if first.status != "rejected" or self.inner.deterministic:
            return first
        second = await self._attempt(text, context.hinting(first.reason))
        return second if second.status == "changed" else first

    async def _attempt(self, text: str, context: Context) -> Variant:
        variant = replace(await self.inner.rewrite(text, context), relation=self.name)
        if variant.status != "changed" or variant.text is None:
            return variant
        judge = context.ask if self.judged else None
        verdicts = await check_rewrite(text, variant.text, self.inner.expects, context.parser, judge)
        failed = [verdict for verdict in verdicts if not verdict.passed]
        if not failed:
            return replace(variant, checks=verdicts)
        reason = "; ".join(verdict.detail for verdict in failed)
        return replace(variant, status="rejected", text=None, refused=variant.text, reason=reason, checks=verdicts)
