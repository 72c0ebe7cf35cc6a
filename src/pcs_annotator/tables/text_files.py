"""Files of tables that are texts, in whatever encoding."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.encodings import UTF8, Encoding, NotText, Utf8Stream, find_encoding
from pcs_annotator.tables.table_files import TableFile

LOOKED_AT = 64 * 1024**2
"""How many bytes tell the encoding of a file elsewhere, or of one of which only the first rows are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile(TableFile):
    """A table that is a text; `_encodings` has its encoding once it is known."""

    _encodings: list[Encoding] = field(default_factory=list, compare=False, repr=False)

    def _encoding(self, limit: int | None = None) -> Encoding:
        """Return the encoding, after one look at the file; the first `limit` rows are enough."""
        if not self._encodings:
            most = LOOKED_AT if self.remote or limit is not None else None
            try:
                found = find_encoding(self._stream, self.name, self.reading.encoding, most)
            except NotText:
                self._refuse_other_kind()
                raise TableError(f"{self.name} is not a text file: give a CSV, Excel or Parquet file") from None
            self._encodings.append(found)
        return self._encodings[0]

    def _note(self) -> str:
        """Return what was guessed about the file."""
        encoding = self._encoding()
        return f"is read as {encoding.shown} (guessed; --encoding overrides)" if encoding.guessed else ""

    def _utf8(self) -> Any:
        """Open the file as a stream of UTF-8, whatever its own encoding."""
        name = self._encoding().name
        return self._stream() if name == UTF8 else io.BufferedReader(Utf8Stream(self._stream(), name))
