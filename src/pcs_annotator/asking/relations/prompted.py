"""Rewrites made by a model, from a prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pcs_annotator.asking.models.base import Message, Request, Sampling
from pcs_annotator.asking.relations.base import AskRewriter
from pcs_annotator.core.variant import Variant


@dataclass(frozen=True, slots=True)
class PromptedRelation:
    """A rewrite by a model.

    Attributes:
        name: As it appears in tables.
        prompt: What the model is told to do with the text that follows.
    """

    name: str
    prompt: str
    needs_rewriter: ClassVar[bool] = True

    async def rewrite(self, text: str, ask: AskRewriter) -> Variant:
        """Return what the model wrote, unless it wrote nothing, changed nothing or was cut off."""
        messages = (Message("system", self.prompt), Message("user", text))
        # a rewrite is about as long as the text; twice that, and a little for short ones, is room enough
        sampling = Sampling(temperature=0.0, max_tokens=64 + len(text) // 2)
        reply = await ask(Request(messages=messages, sampling=sampling))
        rewritten = reply.text.strip()
        if not rewritten or reply.finish == "filter":
            return Variant(relation=self.name, status="not_applicable", reason="the model wrote nothing")
        if reply.finish == "length":
            return Variant(relation=self.name, status="rejected", reason="the rewrite was cut off")
        if rewritten == text.strip():
            return Variant(relation=self.name, status="not_applicable", reason="the rewrite changed nothing")
        return Variant(relation=self.name, status="changed", text=rewritten)
