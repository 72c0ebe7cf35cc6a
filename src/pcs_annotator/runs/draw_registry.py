"""Which rows were drawn for people, and how: `drawn.csv`, and the one random order behind every simple draw.

The unit of a draw is a row. People label its text once, and that label is the label of every drawn row with this text:
so a text is drawn as often as its rows are, and bounds and estimates about rows hold in tables with many copies.

Each simple draw, for `to_label.csv`, by `pcs gold` and in the queue *Random* of a review, walks the same fixed random
order of the rows without gold in the data. A row whose text has a label already is drawn, too, without being shown. So
the rows that the order has reached are always a simple random sample of those rows, whatever else people have labelled.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pcs_annotator.core.arrays import Mask
from pcs_annotator.core.events import fixed_places
from pcs_annotator.core.identity import same_texts, text_hash, with_copies
from pcs_annotator.core.task import Item
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.tables.people import DrawnRow, read_drawn

Draws = Mapping[int, Sequence[DrawnRow]]


def draws_by_row(folder: RunFolder | None, items: Sequence[Item]) -> dict[int, list[DrawnRow]]:
    """Return row → how it was chosen, of all rows that were ever drawn or written out for people."""
    drawn = read_drawn(folder.drawn) if folder else []
    places = {(item.id, text_hash(item.text)): row for row, item in enumerate(items)} if drawn else {}
    by_row: dict[int, list[DrawnRow]] = {}
    for draw in drawn:
        if (row := places.get((draw.id, draw.text_hash))) is not None:
            by_row.setdefault(row, []).append(draw)
    return by_row


def only_at_random(draws: Iterable[DrawnRow]) -> bool:
    """Return whether a row was drawn at random, and in no other way."""
    return {draw.kind for draw in draws} == {"at random"}


def walk(items: Sequence[Item], labels: Sequence[str | None], outside: Mask, texts: int) -> list[DrawnRow]:
    """Return all rows that the random order reaches until so many texts without a label are found, copies included.

    `outside` are rows that are not in the order: those with gold in the data. Rows that were drawn before and have no
    label yet come first again.
    """
    same = same_texts([item.text for item in items]).tolist()
    labelled = {same[row] for row, label in enumerate(labels) if label}
    reached, shown = list[DrawnRow](), set[int]()
    for row in fixed_places([item.id for item in items]).tolist():
        if outside[row]:
            continue
        if same[row] not in labelled:
            if len(shown | {same[row]}) > texts:
                break
            shown.add(same[row])
        reached.append(DrawnRow(items[row].id, "at random", text_hash(items[row].text)))
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


def reached_at_random(items: Sequence[Item], draws: Draws, judged: Mask, sampled: Mask) -> Mask:
    """Return which rows drawn at random belong to the random sample, though nobody labelled them as part of it.

    `judged` are rows that have a label, or about which people could not agree; `sampled`, those labelled as drawn at
    random. Up to the first row that is not judged and the last that was labelled as drawn, all rows of the order belong
    to the sample. Beyond one of the two, some texts still wait for people, or have a label because somebody chose them,
    so only copies of sampled texts do; beyond both, none: a text must not count more often than it was drawn.
    """
    reached = np.zeros(len(items), dtype=np.bool_)
    reached[[row for row, some in draws.items() if any(draw.kind == "at random" for draw in some)]] = True
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
