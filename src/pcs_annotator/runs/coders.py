"""What several people said about the rows of a run, in its data and in files that came later."""

from __future__ import annotations

from collections.abc import Sequence

from pcs_annotator.core.coders import Coders
from pcs_annotator.core.gold import as_known, same_text, text_hash
from pcs_annotator.runs.files import human_files
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.human_review import FromPeople
from pcs_annotator.tables.tables import Dataset, coder_labels


def take_coders(people: FromPeople, folder: RunFolder, dataset: Dataset, labels: Sequence[str]) -> None:
    """Add what several people said in a file; a later file wins over an earlier one, person by person."""
    assert people.gold is not None
    texts = {item.id: item.text for item in dataset.items}
    known_id, known_label = as_known(texts), as_known(labels)
    found = human_files.read_coders(people.gold, dataset.columns.text or "text", people.reading)
    given = [
        one._replace(
            text_hash=text_hash(texts[one.id]),
            labels={name: known_label(label) for name, label in one.labels.items()},
        )
        for one in (one._replace(id=known_id(one.id)) for one in found)
        if one.id in texts and (not one.text or same_text(one.text, texts[one.id]))
    ]
    if not given:
        return
    merged = {one.id: one for one in human_files.read_coders(folder.coders)} if folder.coders.exists() else {}
    for one in given:
        before = merged.get(one.id, one)
        same = before.text_hash == one.text_hash
        merged[one.id] = one._replace(labels={**(before.labels if same else {}), **one.labels})
    _coders(dataset, list(merged.values()), labels, people.gold.name)  # raises for a label that is none
    human_files.write_coders(folder.coders, list(merged.values()))


def coders_of(folder: RunFolder, dataset: Dataset, labels: Sequence[str]) -> Coders | None:
    """Return what several people said: in columns `gold_<name>` of the data, and in files that came later."""
    later = human_files.read_coders(folder.coders) if folder.coders.exists() else []
    return _coders(dataset, later, labels, dataset.name)


def _coders(
    dataset: Dataset, later: Sequence[human_files.GivenByCoders], labels: Sequence[str], table: str
) -> Coders | None:
    given = coder_labels(dataset)
    names = {name.casefold(): name for name in given}
    places = {(item.id, text_hash(item.text)): row for row, item in enumerate(dataset.items)} if later else {}
    for one in later:
        row = places.get((one.id, one.text_hash))
        if row is None:  # of a text that has changed
            continue
        for name, label in one.labels.items():
            own = names.setdefault(name.casefold(), name)
            given.setdefault(own, [None] * len(dataset.items))[row] = label
    return Coders.of(given, labels, [item.id for item in dataset.items], table)
