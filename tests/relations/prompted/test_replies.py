"""150 replies in the manner of many models: what comes of each is the rewrite without any dirt, or nothing."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from pcs_annotator import Variant
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.checks.run import CheckedRelation
from pcs_annotator.relations.parse import Parser
from pcs_annotator.relations.prompted.prompted import built_in


class Row(NamedTuple):
    relation: str
    source: str
    reply: str
    gives: str


def read_rows() -> dict[str, Row]:
    families = tomllib.loads(Path(__file__).with_name("replies.toml").read_text(encoding="utf-8"))
    sources = families.pop("sources")
    rows = {}
    for family, replies in families.items():
        for number, given in enumerate(replies, 1):
            relation, source, good = given["text"] if "text" in given else sources[given["source"]]
            reply = given.get("reply", "{good}").replace("{source}", source).replace("{good}", good)
            rows[f"{family}-{number}-{given['model']}"] = Row(relation, source, reply, given.get("gives", good))
    return rows


ROWS = read_rows()
assert len(ROWS) == 150


class NoParser(Parser):
    """Spares the time to load spaCy; it could only reject more."""

    available = False


async def rewritten(row: Row) -> Variant:
    async def ask(request: Request) -> Reply:
        return Reply(text=row.reply)

    relation = CheckedRelation(built_in(row.relation), row.relation)
    return await relation.rewrite(row.source, Context(ask=ask, parser=NoParser()))


@pytest.fixture(scope="module")
def variants() -> dict[str, Variant]:
    async def all_rows() -> list[Variant]:
        return await asyncio.gather(*map(rewritten, ROWS.values()))

    return dict(zip(ROWS, asyncio.run(all_rows()), strict=True))


@pytest.mark.parametrize("name", ROWS)
def test_a_reply_gives_the_clean_rewrite_or_none(name: str, variants: dict[str, Variant]) -> None:
    assert (variants[name].text or "") == ROWS[name].gives
