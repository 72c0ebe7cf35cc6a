"""What models quoted from the texts of a run, and the candidates that follow: every question says yes or no to each.

Long texts are asked about in windows that overlap. Replies are read again from the ledger, whatever made the calls, and
what they quote is kept in a table of its own; candidates follow from that table and the votes, which say who answered.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pcs_annotator.asking.annotators.extraction import read_quotations
from pcs_annotator.base.errors import TableError
from pcs_annotator.core.arrays import CODE, Codes
from pcs_annotator.core.passages import NO, YES, Extraction, Passage, around, candidates_of, normal_value
from pcs_annotator.core.placing import Places
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import Votes
from pcs_annotator.runs.folder_votes import Exchange, evidence_of
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.settings import Config
from pcs_annotator.tables.arrow import pa, parquet
from pcs_annotator.tables.vote_files import NOTE, read_note
from pcs_annotator.tables.write import write_table

WINDOW, OVERLAP = 24_000, 2_000  # characters; a passage that is longer than the overlap may be cut
MOST_PLACES = 20  # of a quotation that occurs more often, no more places are candidates
NOWHERE = -1
SCHEMA = pa.schema(
    [
        *((name, pa.int32()) for name in ("item", "draw", "start", "end")),
        *((name, pa.string()) for name in ("annotator", "relation", "type", "quotation", "value")),
    ]
)


class Window(NamedTuple):
    """A part of a text that a model is asked about in one call; most texts have one."""

    row: int  # of the text
    start: int
    item: Item


class Quoted(NamedTuple):
    """A quotation of one question, and where it stands in its text; `start` is `NOWHERE` if it does not."""

    item: int  # which window
    annotator: str
    relation: str
    draw: int
    type: str
    quotation: str
    value: str
    start: int
    end: int


class Candidates(NamedTuple):
    """What may be a passage of a text, and what every question says to it."""

    rows: Sequence[int]  # the text of each
    passages: Sequence[Passage]
    votes: Votes
    quotations: int  # how many there were
    nowhere: int  # and how many of them are not in their text, or are no value of the format


def windows_of(items: Sequence[Item]) -> list[Window]:
    """Return the parts of texts that models are asked about, in their order."""
    windows = []
    for row, item in enumerate(items):
        starts = range(0, max(len(item.text) - OVERLAP, 1), WINDOW - OVERLAP)
        for number, start in enumerate(starts, 1):
            name = item.id if number == 1 else f"{item.id} (part {number})"
            windows.append(Window(row, start, Item(id=name, text=item.text[start : start + WINDOW])))
    return windows


def quotations_of(
    folder: RunFolder, config: Config, windows: Sequence[Window], asked: str, objects: OwnObjects | None = None
) -> list[Quoted]:
    """Return what models quoted: from the folder's table, or from the ledger's replies if that has other questions."""
    path = folder.quotations
    if asked and read_note(path).get("asked") == asked:
        return _read(path)
    extraction = config.task.extraction
    assert extraction is not None
    evidence = evidence_of(folder, config, [window.item for window in windows], objects)
    if evidence.missing:
        raise TableError(f"{folder.home}: what models quoted is not known, because {evidence.missing}: repeat pcs run")
    quoted = [
        placed
        for window, exchanges in zip(windows, evidence.exchanges, strict=True)
        for placed in _placed(window, exchanges, extraction)
    ]
    table = pa.Table.from_pylist([entry._asdict() for entry in quoted], SCHEMA)
    write_table(path, table.replace_schema_metadata({NOTE: json.dumps({"asked": asked})}))
    return quoted


def _read(path: Path) -> list[Quoted]:
    columns = parquet.read_table(path).to_pydict()
    return [Quoted(*values) for values in zip(*(columns[name] for name in Quoted._fields), strict=True)]


def _placed(window: Window, exchanges: Sequence[Exchange], extraction: Extraction) -> Iterator[Quoted]:
    """Yield what replies about a window quote, with every place where it stands in the text."""
    places = Places(window.item.text)
    most = 1 if extraction.is_value else MOST_PLACES
    for exchange in exchanges:
        quoted = read_quotations(exchange.reply.text, extraction)
        question = exchange.row, exchange.annotator, exchange.relation, exchange.draw
        for type_, quotation, value in () if isinstance(quoted, str) else quoted:
            normal = normal_value(value, extraction.format) if extraction.is_value else ""
            spans = [] if normal is None else places.all_of(quotation)[:most]
            about = *question, type_, quotation, normal or value
            for start, end in spans:
                yield Quoted(*about, start + window.start, end + window.start)
            if not spans:
                yield Quoted(*about, NOWHERE, NOWHERE)


def candidates_in(
    items: Sequence[Item], windows: Sequence[Window], quoted: Sequence[Quoted], votes: Votes, extraction: Extraction
) -> Candidates:
    """Return the candidates of all texts; `votes` on windows say which questions were answered."""
    cells = {name: dict(zip(names, range(len(names)), strict=True)) for name, names in _axes(votes).items()}
    quoting: dict[int, dict[Passage, set[tuple[int, int, int]]]] = defaultdict(lambda: defaultdict(set))
    for entry in quoted:
        if entry.start != NOWHERE and entry.annotator in cells["annotator"]:
            cell = cells["annotator"][entry.annotator], cells["relation"][entry.relation], entry.draw
            value = entry.value if extraction.is_value else ""
            passage = Passage(entry.start, entry.end, entry.type, value)
            quoting[windows[entry.item].row][passage].add(cell)
    of_text = defaultdict[int, list[int]](list)
    for number, window in enumerate(windows):
        of_text[window.row].append(number)
    rows, passages, codes = list[int](), list[Passage](), list[Codes]()
    for row in sorted(quoting):
        meant = candidates_of({passage: len(who) for passage, who in quoting[row].items()}, extraction)
        for candidate in sorted({*meant.values()}):
            yes = [cell for passage, seed in meant.items() if seed == candidate for cell in quoting[row][passage]]
            about = [number for number in of_text[row] if _overlaps(windows[number], candidate)]
            rows.append(row)
            passages.append(candidate)
            codes.append(_codes_of(votes.codes[about], yes))
    shape = (0, *votes.codes.shape[1:])
    made = Votes(
        codes=np.stack(codes) if codes else np.empty(shape, dtype=CODE),
        ids=[f"{items[row].id}:{passage.name}" for row, passage in zip(rows, passages, strict=True)],
        annotators=votes.annotators,
        relations=votes.relations,
        labels=(YES, NO),
        texts=[around(items[row].text, passage) for row, passage in zip(rows, passages, strict=True)],
        units=[items[row].id for row in rows],
    )
    nowhere = {entry[:7] for entry in quoted if entry.start == NOWHERE}
    return Candidates(rows, passages, made, len({entry[:7] for entry in quoted}), len(nowhere))


def _axes(votes: Votes) -> Mapping[str, Sequence[str]]:
    return {"annotator": votes.annotators, "relation": votes.relations}


def _overlaps(window: Window, passage: Passage) -> bool:
    return passage.start < window.start + len(window.item.text) and passage.end > window.start


def _codes_of(answered: Codes, yes: Sequence[tuple[int, int, int]]) -> Codes:
    """Return what every question says to a candidate: no, unless it quotes it, where it was answered at all."""
    codes = np.where(answered >= 0, 1, answered).max(axis=0).astype(CODE)
    codes[tuple(np.array(sorted({*yes})).T)] = 0
    return codes


def about_quotations(candidates: Candidates, extraction: Extraction) -> str:
    """Return how many quotations cast no vote, in a sentence; empty if all did."""
    if not candidates.nowhere:
        return ""
    what = f" or are no {extraction.format}" if extraction.is_value and extraction.format != "text" else ""
    return (
        f"{candidates.nowhere:,} of {candidates.quotations:,} quotations are not in their text{what}, and cast no vote"
    )
