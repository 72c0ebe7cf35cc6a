"""stub"""

import orjson

from pcs_annotator.core.passages import VALUE, Passage, normal_value


def gold_passages(cell, text, extraction, where):
    if not cell:
        return None
    if extraction.is_value:
        return () if cell == "none" else (Passage(0, 0, VALUE, normal_value(cell, extraction.format)),)
    return tuple(Passage(r["start"], r["end"], r["type"]) for r in orjson.loads(cell))


def gold_of_texts(dataset, extraction):
    labels = dataset.gold or [None] * len(dataset.items)
    for i, (item, c) in enumerate(zip(dataset.items, labels)):
        yield gold_passages(c, item.text, extraction, f"{dataset.name}, row {i + 2}")
