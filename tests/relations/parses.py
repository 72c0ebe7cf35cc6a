"""Parses for tests of rules."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pcs_annotator.relations.parse import Parser

if TYPE_CHECKING:
    from spacy.tokens import Doc


def parse_all(parser: Parser, texts: Iterable[str]) -> list[Doc]:
    """Return the parses of several texts, made in one batch."""

    async def gathered() -> list[Doc]:
        return list(await asyncio.gather(*map(parser.parse, texts)))

    return asyncio.run(gathered())
