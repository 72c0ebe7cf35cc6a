from __future__ import annotations

import asyncio

import pytest

from pcs_annotator.asking.models.base import Reply, Request
from pcs_annotator.asking.relations.prompted import PromptedRelation
from pcs_annotator.core.variant import Variant


def rewritten(text: str, reply: Reply) -> tuple[Variant, Request]:
    asked: list[Request] = []

    async def ask(request: Request) -> Reply:
        asked.append(request)
        return reply

    variant = asyncio.run(PromptedRelation("voice", "Rewrite the text in the other voice.").rewrite(text, ask))
    return variant, asked[0]


def test_the_models_text_is_the_variant() -> None:
    variant, request = rewritten("The dog bit the man.", Reply(text=" The man was bitten by the dog.\n"))
    assert variant == Variant(relation="voice", status="changed", text="The man was bitten by the dog.")
    assert [message.content for message in request.messages] == [
        "Rewrite the text in the other voice.",
        "The dog bit the man.",
    ]


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        (Reply(text="  "), "not_applicable", "the model wrote nothing"),
        (Reply(text="…", finish="filter"), "not_applicable", "the model wrote nothing"),
        (Reply(text="The man was", finish="length"), "rejected", "the rewrite was cut off"),
        (Reply(text="The dog bit the man. "), "not_applicable", "the rewrite changed nothing"),
    ],
)
def test_what_is_no_rewrite_gives_no_text(reply: Reply, status: str, reason: str) -> None:
    variant, _ = rewritten("The dog bit the man.", reply)
    assert (variant.status, variant.reason, variant.text) == (status, reason, None)
