"""Passages and values in cells of gold: with positions, as tools for annotation write them, or quoted from the text."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from pcs_annotator.base.errors import LabelError
from pcs_annotator.base.text import did_you_mean, first_line, row_number, series
from pcs_annotator.core.passages import LEAST_OVERLAP, NONE, VALUE, Extraction, Passage, normal_value, overlap
from pcs_annotator.core.placing import Places
from pcs_annotator.core.task import Item
from pcs_annotator.tables.arrow import json_cell

ANY_TYPE = Extraction(types=())
"""What is looked for in a file that says itself which types it has."""
EXAMPLES = {"text": "Oslo", "number": "1200.5", "date": "2024-03-31"}
_EMPTY = ("", "null", "NaN")  # cells without gold
_WANTED = 'write [{"start": 3, "end": 9, "type": "…"}], [] for a text without passages, or leave the cell empty'
_GAP = re.compile(r"(?:\\n|\s)+")  # Label Studio writes ends of lines as a backslash and an n


class _Mark(NamedTuple):
    """What a cell says about a passage: where it is, or what it says, or both."""

    type: str  # empty if the cell does not say it
    start: Any = None
    end: Any = None
    quotation: str = ""


def gold_of_texts(
    items: Sequence[Item], gold: Sequence[str | None], extraction: Extraction, names: tuple[str, str]
) -> list[tuple[Passage, ...] | None]:
    """Return the gold passages of every text; None where nobody has said anything.

    Messages call table and column by these names.
    """
    name, column = names
    labels = gold or [None] * len(items)
    rows = enumerate(zip(items, labels, strict=True), row_number(name, 1))
    where = f", column {column}"
    return [gold_passages(label, item.text, extraction, f"{name}, row {row}{where}") for row, (item, label) in rows]


def gold_passages(cell: object, text: str, extraction: Extraction, where: str) -> tuple[Passage, ...] | None:
    """Return the passages in a gold cell, in the order of the text; None for an empty cell, which says nothing.

    A cell is a JSON list of objects or of `[start, end, type]`, an object type → quotations, or a quotation in each
    line, `type: quotation` unless there is one type only. Positions count characters from 0. Of a quotation that the
    text has several times, the first is meant, and if the cell repeats it, the next. The place of a value is (0, 0) if
    the text has it in other words. `where` is what messages call the cell.
    """
    shown = cell.strip() if isinstance(cell, str) else (json_cell(cell) or "").strip()
    if shown in _EMPTY:
        return None
    if shown.casefold() in (NONE, "[]"):
        return ()
    if extraction.is_value:
        return (_value(shown, text, extraction, where),)
    places, passages = Places(text), dict[Passage, None]()
    for mark in _marks(shown, extraction.types, places, where):
        type_ = _known_type(mark.type, extraction.types, where)
        spans = places.all_of(mark.quotation) if mark.start is None else (_span(mark, text, where),)
        if not spans:
            raise LabelError(f"{where}: {mark.quotation!r:.60} is not in the text: copy the passage from there")
        new = [passage for span in spans if (passage := Passage(*span, type_)) not in passages]
        passages |= dict.fromkeys(new[:1])
    _refuse_twins(sorted(passages), text, where)
    return tuple(sorted(passages))


def _value(shown: str, text: str, extraction: Extraction, where: str) -> Passage:
    value = normal_value(shown, extraction.format)
    if value is None:
        wanted = f"write it like {EXAMPLES[extraction.format]}, {NONE} if the text has none, or leave the cell empty"
        raise LabelError(f"{where}: {shown!r:.60} is no unambiguous {extraction.format}: {wanted}")
    start, end = Places(text).of(shown) or (0, 0)
    return Passage(start, end, VALUE, value)


def _marks(shown: str, types: Sequence[str], places: Places, where: str) -> Iterator[_Mark]:
    if shown[0] not in "[{":
        whole = len(types) == 1 and places.of(shown) is not None
        yield from (_quoted(line, types) for line in ([shown] if whole else shown.splitlines()) if line.strip())
        return
    try:
        content = json.loads(shown)
    except (ValueError, RecursionError) as error:
        raise LabelError(f"{where}: {shown!r:.60} is not valid JSON ({first_line(error)}): {_WANTED}") from None
    if isinstance(content, dict) and all(isinstance(entry, list) for entry in content.values()):
        content = [{"type": name, "quotation": quotation} for name, entry in content.items() for quotation in entry]
    for entry in content if isinstance(content, list) else [content]:
        yield from _entry_marks(entry, types, where)


def _entry_marks(entry: object, types: Sequence[str], where: str) -> Iterator[_Mark]:
    """Yield what an entry of a list says: an object, `[start, end, type]` or a quotation."""
    about = entry if isinstance(entry, dict) else {}
    start, end = (about.get(name, about.get(f"{name}_offset")) for name in ("start", "end"))
    quotation = about.get("quotation") or about.get("text") or ""
    names = about.get("labels") or about.get("type") or about.get("label") or ""
    if isinstance(entry, str) and entry.strip():
        yield _quoted(entry, types)
    elif isinstance(entry, list) and len(entry) == 3 and isinstance(entry[2], str):
        yield _Mark(entry[2], *entry[:2])
    elif isinstance(quotation, str) and (quotation or start is not None):
        yield from (_Mark(str(name), start, end, quotation) for name in (names if isinstance(names, list) else [names]))
    else:
        raise LabelError(f"{where}: {entry!r:.60} is not a passage: {_WANTED}")


def _quoted(line: str, types: Sequence[str]) -> _Mark:
    """Return the quotation in a line, after its type; where there is one type only, the type may be left out."""
    name, colon, quotation = line.partition(":")
    named = colon and (len(types) != 1 or name.strip().casefold() == types[0].casefold())
    return _Mark(name.strip(), quotation=quotation.strip()) if named else _Mark("", quotation=line.strip())


def _known_type(name: str, types: Sequence[str], where: str) -> str:
    """Return a type as it is spelled among those asked for; the only one if a passage has none."""
    if not types and name:
        return name
    spelled = {type_.casefold(): type_ for type_ in types}
    wanted = name.strip().casefold() or (next(iter(spelled)) if len(spelled) == 1 else "")
    if wanted not in spelled:
        problem = f"{name!r:.60} is not a type of passages" if name else "a passage has no type"
        choice = f"write {series([*map(repr, types)], 'or')}" if types else "name its type"
        raise LabelError(f"{where}: {problem}; {did_you_mean(name, types)}{choice}")
    return spelled[wanted]


def _span(mark: _Mark, text: str, where: str) -> tuple[int, int]:
    """Return the position of a passage, which must be inside of the text and have the words that the cell quotes."""
    start, end = (border if type(border) is int else -1 for border in mark[1:3])
    if not 0 <= start < end <= len(text):
        problem = f"the text has {len(text):,} characters, and no passage from {mark.start!r} to {mark.end!r}"
        raise LabelError(f"{where}: {problem}: count from 0, and end after the last character of the passage")
    quoted, there = (_GAP.sub(" ", words).strip() for words in (mark.quotation, text[start:end]))
    if quoted not in ("", there):
        problem = f"from {start} to {end} the text has {there!r:.60}, not {quoted!r:.60}"
        raise LabelError(f"{where}: {problem}: correct the positions, or leave them out")
    return start, end


def _refuse_twins(passages: Sequence[Passage], text: str, where: str) -> None:
    """Raise if a passage is there twice, with slightly different borders: only one of the two could be found."""
    for first, second in combinations(passages, 2):
        if first.type == second.type and overlap(first, second) >= LEAST_OVERLAP:
            names = " and ".join(f"{text[start:end]!r:.60} ({start}–{end})" for start, end, *_ in (first, second))
            raise LabelError(f"{where}: {names} are nearly the same passage of type {first.type!r}: keep one of them")
