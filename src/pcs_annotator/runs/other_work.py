"""Whether a run folder belongs to this work: its data, labels and instruction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from pcs_annotator.base.text import listed
from pcs_annotator.core.gold import same_text
from pcs_annotator.core.task import Item
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.run import Run
from pcs_annotator.runs.settings import Config
from pcs_annotator.tables import tables
from pcs_annotator.tables.sources import read_source


def data_hash(items: Iterable[Item]) -> str:
    """Return a hash of ids and texts, in whatever order."""
    found = blake2b(digest_size=16)
    for item in sorted(items, key=lambda item: item.id):
        found.update(f"{item.id}\0{item.text}\0".encode("utf-8", "replace"))
    return found.hexdigest()


def other_work(folder: RunFolder, config: Config, dataset: tables.Dataset, hashed: str = "") -> str:
    """Return why results in a folder are of other work than this: other data, labels or instruction; empty if not.

    Data may have grown: then old rows are still there, with the same texts. `hashed` is the hash of a large table.
    """
    if not folder.has_results or not folder.settings.exists():
        return ""
    run = Run.open(folder.path)
    earlier, start = run.config, run.start
    same_data = start.get("data_hash") == (hashed or data_hash(dataset.items)) or not folder.items.exists()
    return _other_task(earlier, config) or ("" if same_data else lost_rows(_items(folder, earlier), dataset))


def _other_task(earlier: Config, config: Config) -> str:
    ours, theirs = resolve_config.task_of(config), resolve_config.task_of(earlier)
    if {*map(str.casefold, ours.labels)} != {*map(str.casefold, theirs.labels)}:
        return f"with other labels ({', '.join(theirs.labels)})"
    given = (config.task.instruction, earlier.task.instruction)
    if (any(given) and ours.instruction.split() != theirs.instruction.split()) or ours.meanings != theirs.meanings:
        return f"of another instruction or other meanings of the labels ({theirs.instruction!r})"
    return ""


def _items(folder: RunFolder, config: Config) -> Sequence[Item]:
    return read_source(folder.items, resolve_config.columns_of(config)).items


def lost_rows(before: Sequence[Item], dataset: tables.Dataset) -> str:
    """Return which rows have another text now or are missing; empty if none are."""
    texts = {item.id: item.text for item in dataset.items}
    pairs = ((item, texts[item.id]) for item in before if item.id in texts)
    changed = [item.id for item, text in pairs if item.text != text and not same_text(item.text, text)]
    if changed:
        names = listed(map(repr, changed), len(changed))
        return f"of other data: {len(changed)} of {len(before)} rows have another text in {dataset.name} ({names})"
    gone = [item.id for item in before if item.id not in texts]
    if gone:
        names = listed(map(repr, gone), len(gone))
        return f"for {len(before)} rows, and {len(gone)} of them are missing now ({names})"
    return ""
