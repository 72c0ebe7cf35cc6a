"""Where texts come from: a table, or a public dataset in the layout that its makers gave it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pcs_annotator.files.fakenewsnet import read_fakenewsnet
from pcs_annotator.files.multiclass_sentiment import read_hugging_face, read_sentiment_file
from pcs_annotator.files.tables import Columns, Dataset, dataset_of, read_dataset

if TYPE_CHECKING:
    import pyarrow as pa

LOADERS: Mapping[str, Callable[[str], pa.Table]] = {
    "fakenewsnet": read_fakenewsnet,
    "hf": read_hugging_face,
    "sentiment": read_sentiment_file,
}
"""What stands before the colon → who reads what stands after it."""


def read_source(spec: Path | str, columns: Columns, limit: int | None = None) -> Dataset:
    """Return the texts of a source, with their gold labels where it has some.

    Args:
        spec: A file; `fakenewsnet:FOLDER`, or `fakenewsnet:FOLDER/SITE` for one site; `sentiment:FILE` for a file of
            the multiclass sentiment set; `hf:OWNER/NAME` or `hf:OWNER/NAME@SPLIT` from Hugging Face.
        columns: Where texts, ids and gold are, as far as known.
        limit: How many rows to take; None for all.
    """
    if not is_public_set(spec):
        return read_dataset(Path(spec), columns, limit)
    layout, _, place = str(spec).partition(":")
    return dataset_of(LOADERS[layout](place), str(spec), columns, limit)


def is_public_set(spec: Path | str) -> bool:
    """Return whether the source names the layout of a public dataset; a file of that name wins."""
    layout, colon, _ = str(spec).partition(":")
    return bool(colon) and layout in LOADERS and not Path(spec).exists()
