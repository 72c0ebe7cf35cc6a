"""`draws.jsonl`: which rows were drawn for people, how, and what they said; and the order behind every simple draw.

The log has every draw, verdict, undo, row written to `to_label.csv` and label from a person's file, one line each,
never changed. Each variable of a run has its own numbers, in lines that name it.

The unit of a draw is a row. People label its text once, and that label is the label of every drawn row with this text.
Each simple draw, for `to_label.csv`, by `pcs gold` and in the queue *Random* of a review, walks the same fixed random
order of the rows without gold in the data. A row whose text has a label already is drawn, too, without being shown. So
the rows that the order has reached are always a simple random sample of those rows, whatever else people have labelled.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import orjson

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.core.arrays import Mask
from pcs_annotator.core.events import (
    Draw,
    Event,
    FiledLabel,
    Picked,
    Queue,
    ReviewEvent,
    SampleKind,
    Undo,
    Verdict,
    fixed_places,
)
from pcs_annotator.core.identity import same_texts, text_hash, with_copies
from pcs_annotator.core.task import Item
from pcs_annotator.runs.paths import RunFolder

E = TypeVar("E", bound=Event)
PickedRows = Mapping[int, Sequence[Picked]]


def _types(hint: Any) -> frozenset[type]:
    """Return the types of values for a type hint; JSON may have whole numbers for others."""
    if get_origin(hint) is UnionType:
        return frozenset().union(*map(_types, get_args(hint)))
    if get_origin(hint) is Literal:
        return frozenset({str})
    return frozenset({float, int} if hint is float else {get_origin(hint) or hint})


_NAMES = {Draw: b"draw", Verdict: b"verdict", Undo: b"undo", Picked: b"picked", FiledLabel: b"gold"}
KINDS: Mapping[str, type[Event]] = {name.decode(): kind for kind, name in _NAMES.items()}
TYPES: Mapping[type[Event], Mapping[str, frozenset[type]]] = {
    kind: {name: _types(hint) for name, hint in get_type_hints(kind).items()} for kind in KINDS.values()
}
"""Kind of event → field → types that its values have."""


def read_events(path: Path, part: str | None = "") -> list[Event]:
    """Return the events of a log about a part, or about any for None; a last line without an end is left out."""
    if not path.exists():
        return []
    *whole, rest = path.read_bytes().split(b"\n")
    if rest:
        warn_user(f"{path.name}: the last line was cut off and is not read")
    return list(_events(path, whole, part))


def append_events(path: Path, events: Sequence[Event], part: str = "") -> None:
    """Add events about a part of a run to its log; when this returns, they are on disk."""
    about = b'"part":%b,' % orjson.dumps(part) if part else b""
    lines = b"".join(b'{"kind":"%b",%b%b\n' % (_NAMES[type(event)], about, orjson.dumps(event)[1:]) for event in events)
    is_new = not path.exists()
    with path.open("ab+") as file:
        if not is_new and file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")  # closes a line that was cut off; it stays, and is passed over
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())
    if is_new and os.name == "posix":  # its name must be on disk too; not every system lets a folder be opened
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _events(path: Path, lines: Sequence[bytes], part: str | None) -> Iterator[Event]:
    cut, numbers = [], dict[tuple[str, int], int]()
    for row, line in enumerate(lines, 1):
        try:
            values = orjson.loads(line)
            about = values.pop("part", "")
            if part not in (None, about):
                continue
            event = _event(values)
            number = about, getattr(event, "number", -row)
            if numbers.setdefault(number, row) != row:
                raise ValueError(f"; its number is that of line {numbers[number]}")
            yield event
        except orjson.JSONDecodeError:
            cut.append(row)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            why = error if isinstance(error, ValueError) else ""
            remedy = "correct or remove that line; the others stay as they are"
            raise TableError(f"{path.name}, line {row} is not an event of a review{why}: {remedy}") from None
    if cut:
        warn_user(f"{path.name}: lines that were cut off are not read: {', '.join(map(str, cut))}")


def _event(values: dict[str, Any]) -> Event:
    kind = KINDS[values.pop("kind")]
    if kind is Undo:
        values["verdicts"] = tuple(values["verdicts"])
    event = kind(**values)
    for name, types in TYPES[kind].items():
        value = getattr(event, name)
        if type(value) not in types or (name == "probability" and value is not None and not 0 < value <= 1):
            raise ValueError(f"; its {name} is {value!r}")
    if isinstance(event, Undo) and {*map(type, event.verdicts)} - {int}:
        raise ValueError(f"; its verdicts are {event.verdicts!r}")
    if isinstance(event, Draw | Verdict) and event.queue not in get_args(Queue):
        raise ValueError(f"; no queue is called {event.queue!r}")
    if isinstance(event, Picked | FiledLabel) and event.chosen not in get_args(SampleKind):
        raise ValueError(f"; no row is chosen {event.chosen!r}")
    return event


def review_events(path: Path, part: str = "") -> list[ReviewEvent]:
    """Return the events of a review in a log."""
    return [event for event in read_events(path, part) if isinstance(event, ReviewEvent)]


def events_of(folder: RunFolder | None, kind: type[E]) -> list[E]:
    """Return the events of a kind in the log of a folder."""
    events = read_events(folder.draws, folder.part) if folder else []
    return [event for event in events if isinstance(event, kind)]


def has_results(folder: RunFolder) -> bool:
    """Return whether there is something to lose in a folder: results, or what people were shown and said."""
    return folder.labels.exists() or any(not isinstance(event, Picked) for event in read_events(folder.draws, None))


def picked_by_row(folder: RunFolder | None, items: Sequence[Item]) -> dict[int, list[Picked]]:
    """Return row → how it was chosen, of all rows that were ever written out for people."""
    picked = events_of(folder, Picked)
    rows = {(item.id, text_hash(item.text)): row for row, item in enumerate(items)} if picked else {}
    by_row: dict[int, list[Picked]] = {}
    for event in picked:
        if (row := rows.get((event.id, event.text_hash))) is not None:
            by_row.setdefault(row, []).append(event)
    return by_row


def only_at_random(picked: Iterable[Picked]) -> bool:
    """Return whether a row was drawn at random, and in no other way."""
    return {event.chosen for event in picked} == {"at random"}


def walk(items: Sequence[Item], labels: Sequence[str | None], outside: Mask, texts: int) -> list[Picked]:
    """Return all rows that the random order reaches until so many texts without a label are found, copies included.

    `outside` are rows that are not in the order: those with gold in the data.
    """
    same = same_texts([item.text for item in items]).tolist()
    labelled = {same[row] for row, label in enumerate(labels) if label}
    reached, shown = list[Picked](), set[int]()
    for row in fixed_places([item.id for item in items]).tolist():
        if outside[row]:
            continue
        if same[row] not in labelled:
            if len(shown | {same[row]}) > texts:
                break
            shown.add(same[row])
        reached.append(Picked(id=items[row].id, text_hash=text_hash(items[row].text), chosen="at random"))
    return reached


def label_copies(labels: list[str | None], texts: Sequence[str], drawn: Iterable[int]) -> list[int]:
    """Give drawn rows without a label of their own that of their text, and return which rows these are."""
    waiting = [row for row in drawn if labels[row] is None]
    if not waiting:
        return []
    same = same_texts(texts).tolist()
    label_of = {same[row]: labels[row] for row in reversed(range(len(labels))) if labels[row]}
    copies = [row for row in waiting if same[row] in label_of]
    for row in copies:
        labels[row] = label_of[same[row]]
    return copies


def reached_at_random(items: Sequence[Item], picked: PickedRows, judged: Mask, sampled: Mask) -> Mask:
    """Return which rows drawn at random belong to the random sample, though nobody labelled them as part of it.

    `judged` are rows that have a label, or about which people could not agree; `sampled`, those labelled as drawn at
    random. Up to the first row that is not judged and the last that was labelled as drawn, all rows of the order belong
    to the sample. Beyond one of the two, some texts still wait for people, or have a label because somebody chose them,
    so only copies of sampled texts do; beyond both, none: a text must not count more often than it was drawn.
    """
    reached = np.zeros(len(items), dtype=np.bool_)
    reached[[row for row, some in picked.items() if any(event.chosen == "at random" for event in some)]] = True
    if not reached.any():
        return reached
    order = fixed_places([item.id for item in items])
    order = order[reached[order]]
    waiting, labelled = np.flatnonzero(~judged[order]), np.flatnonzero(sampled[order])
    first = int(waiting[0]) if len(waiting) else len(order)
    last = int(labelled[-1]) if len(labelled) else -1
    near, far = sorted((first, last + 1))
    reached[order[far:]] = False
    beyond = order[near:far]
    reached[beyond] = with_copies(same_texts([item.text for item in items]), sampled)[beyond]
    return reached & judged
