"""Groups of texts, such as languages or sources: a promise may be made for each, and figures are shown for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.core.votes import NO_GROUP
from pcs_annotator.relations.language import language_of
from pcs_annotator.tables.arrow import columns_of, text_column

if TYPE_CHECKING:
    import pyarrow as pa

LANGUAGE = "language"  # without a column of this name, the language of a text is detected
MOST_GROUPS = 50


def groups_of(by: str, table: pa.Table, texts: Sequence[str], name: str = "the table") -> list[str] | None:
    """Return the group of every row: what the column `by` says, `(none)` for an empty cell; None for no `by`.

    The language is detected if there is no such column.
    """
    if not by:
        return None
    columns = columns_of(table)
    if by not in columns:
        check_column(by, [*columns], name)
        return [given_or_detected(by, text) for text in texts]
    return [(cell or "").strip() or NO_GROUP for cell in text_column(by, columns[by]).to_pylist()]


def check_column(by: str, columns: Sequence[str], name: str) -> None:
    """Raise if a table has no column of groups, and they cannot be detected."""
    if by and by not in columns and by != LANGUAGE:
        detected = f"or use {LANGUAGE}, which is detected without a column"
        raise TableError(f"{name} has no column {by!r} (--by): add it, {detected}; there are {', '.join(columns)}")


def given_or_detected(by: str, text: str, given: str | None = None) -> str:
    """Return the group of a single text: the one that was given, else its language if that is asked for."""
    return (given or "").strip() or (language_of(text) if by == LANGUAGE else "") or NO_GROUP


def refuse_many(by: str, groups: Sequence[str]) -> None:
    """Raise if a column has too many values to be groups."""
    if (number := len(set(groups))) > MOST_GROUPS:
        raise ConfigError(
            f"column {by!r} has {number:,} groups, and at most {MOST_GROUPS} can have a promise each: name another "
            "column with --by, or join some groups in a new one, such as months instead of days"
        )
