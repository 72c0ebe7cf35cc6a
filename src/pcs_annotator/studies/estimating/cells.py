"""Columns of a user's table as arrays: texts, numbers, or codes; and reading some columns of a large table alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.arrays import Array, Floats
from pcs_annotator.tables.table_files import gathered
from pcs_annotator.tables.table_formats import local_file
from pcs_annotator.tables.tabular import columns_of, text_column

if TYPE_CHECKING:
    import pyarrow as pa


class Encoded(NamedTuple):
    """A column of texts: for every row the place of its text, and all texts. Missing ones are empty."""

    codes: Array
    texts: Array

    @property
    def cells(self) -> Array:
        """The text of every row; equal texts are one object, so that a million rows take little memory."""
        return self.texts[self.codes]


def encoded_column(table: pa.Table, name: str, of: str = "", among: Sequence[str] = ()) -> Encoded:
    """Return a column of a table; `of` says what it has, and `among` which columns there are, for messages."""
    import pyarrow.compute as pc

    found = columns_of(table)
    if name not in found:
        raise ConfigError(f"there is no column {name!r}{of}; there are {', '.join(among or found)}")
    texts = pc.utf8_trim_whitespace(pc.fill_null(text_column(name, found[name]), "")).dictionary_encode()
    return Encoded(texts.indices.to_numpy(), np.array(texts.dictionary.to_pylist(), dtype=object))


def cells_of(table: pa.Table, name: str, of: str = "") -> Array:
    """Return a column as texts, empty where nothing is known."""
    return encoded_column(table, name, of).cells


def numbers_of(table: pa.Table, name: str) -> Floats | None:
    """Return a column as numbers, nan where empty; None if some cell is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(text_column(name, columns_of(table)[name]))
    try:
        found = pc.if_else(pc.equal(texts, ""), None, texts).cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return None if np.isnan(found).all() or np.isinf(found).any() else found


def read_columns(path: Path, wanted: Collection[str]) -> pa.Table:
    """Return those of the wanted columns that a file has; others are not read."""
    import pyarrow as pa

    file = local_file(path)
    schema = pa.schema([field for field in file.contents().schema if field.name in wanted])
    return gathered(file.batches(schema), schema, file.name, packed=file.packed)
