"""Prompts and replies of the listed rows, as far as there is room, as data for the page: what recurs is there once."""

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from pcs_annotator.asking.annotators.prompt import MARKER
from pcs_annotator.asking.engine.job import Exchange
from pcs_annotator.core.chat import Message, sendable
from pcs_annotator.runs.folder_votes import evidence_of
from pcs_annotator.showing.report.view import Row, View

MOST_QUESTIONS = 4_000  # looked up for a page, which takes about half a second
LEAST_BYTES, MOST_BYTES = 20_000, 70_000
MOST_OF_ROWS = 275_000  # bytes of all data about rows, so that the page stays below 400 kB
Pool = dict[str, int]  # what recurs, as JSON → its place


class Replies(NamedTuple):
    """What models were asked, and what they replied."""

    by_row: Mapping[str, Sequence[Any]]  # ID → one line for every question
    pool: Sequence[Any] = ()  # markers, messages, prompts and replies, which lines name by their places


def replies(view: View, rows: Sequence[Row], taken: int) -> Replies:
    """Return prompts and replies of the least certain rows; `taken` is how many bytes the rows themselves have."""
    result, votes, pool = view.result, view.result.votes, Pool()
    room = min(max(MOST_OF_ROWS - view.parts * taken, LEAST_BYTES), MOST_BYTES) // view.parts
    cells = {names: at for at, names in enumerate(product(votes.relations, votes.annotators))}
    uncertain = sorted(rows, key=lambda row: row.certainty)[: max(MOST_QUESTIONS // view.parts // len(cells), 1)]
    evidence = evidence_of(result.folder, result.config, [row.item for row in uncertain], result.own)
    by_row = dict[str, Sequence[Any]]()
    for row, exchanges in zip(uncertain, evidence.exchanges, strict=False):
        larger = dict(pool)
        asked = ((cells.get((exchange.relation, exchange.annotator)), exchange) for exchange in exchanges)
        lines = [[cell, *_line(larger, row, exchange)] for cell, exchange in asked if cell is not None]
        room -= len("".join([*larger][len(pool) :]).encode("utf-8", "replace")) + len(compact_json(lines))
        if room < 0:
            break
        pool = larger
        by_row |= {row.item.id: lines} if lines else {}
    return Replies(by_row, [json.loads(value) for value in pool])


def _line(pool: Pool, row: Row, exchange: Exchange) -> list[Any]:
    """Return the places of prompt, marker and reply, the tokens of both, and the seconds."""
    variant, reply = row.variants.get(exchange.relation), exchange.reply
    texts = {sendable(text) for text in (row.item.text, variant and variant.text) if text}
    messages, markers = zip(*(_message(message, texts) for message in exchange.messages), strict=True)
    prompt = [_place(pool, message) for message in messages]
    used = reply.usage.input_tokens, reply.usage.output_tokens, round(reply.latency, 1)
    return [_place(pool, prompt), _place(pool, markers[-1]), _place(pool, reply.text), *used]


def _message(message: Message, texts: Collection[str]) -> tuple[list[str], str]:
    """Return a message and its marker; if it has the text of its row, as what stands before and after that."""
    for marker in MARKER.findall(message.content)[-1:]:
        before, *between, after = message.content.split(marker)
        if between in [["\n", f"\n{text}\n"] for text in texts]:
            return [message.role, before, after], marker
    return [message.role, message.content], ""


def _place(pool: Pool, value: object) -> int:
    return pool.setdefault(compact_json(value), len(pool))


def compact_json(value: object) -> str:
    """Return a value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
