"""Hugging Face: the multiclass sentiment set (Sp1786/multiclass-sentiment-analysis-dataset), and others like it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcs_annotator.core.tabular import as_arrow, columns_of, text_column
from pcs_annotator.errors import MissingPackage, TableError

if TYPE_CHECKING:
    import pyarrow as pa

SENTIMENTS = ("negative", "neutral", "positive")
"""By number: 0, 1, 2."""
GOLD = ("sentiment", "label")
SPLITS = ("test", "validation", "train")
"""Which part to take when nobody says; the first that there is."""


def read_sentiment_file(place: str) -> pa.Table:
    """Return a file of the set (CSV, JSONL or Parquet) with gold labels by name, whether it has names or numbers."""
    path = Path(place)
    table = as_arrow(path)
    if not set(GOLD) & set(table.column_names):
        listed = ", ".join(table.column_names)
        raise TableError(f"{path.name} has neither a column 'sentiment' nor 'label', only {listed}: name it so")
    return with_sentiments(table, path.name)


def read_hugging_face(place: str) -> pa.Table:
    """Return a dataset of Hugging Face, `OWNER/NAME` or `OWNER/NAME@SPLIT`, with labels by name where it has names.

    Raises:
        MissingPackage: The package `datasets` is not installed.
    """
    try:
        import datasets  # type: ignore[import-not-found,unused-ignore]  # for those who have it
    except ImportError as error:
        raise MissingPackage(
            f"hf:{place} needs the package datasets: pip install datasets; or download the files and name one of them"
        ) from error
    name, _, split = place.partition("@")
    try:
        parts = datasets.load_dataset(name)
    except Exception as error:  # whatever the package raises, its first line says why
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise TableError(f"hf:{place} cannot be loaded ({reason}): check the name and the connection") from error
    split = split or next((one for one in SPLITS if one in parts), next(iter(parts), ""))
    if split not in parts:
        raise TableError(f"hf:{place}: there is no part {split!r}; there are {', '.join(parts)}")
    table = as_arrow(parts[split].with_format("arrow")[:])
    if "sentiment" in table.column_names:
        return with_sentiments(table, f"hf:{place}")
    return _with_class_names(table, parts[split].features)


def with_sentiments(table: pa.Table, source: str) -> pa.Table:
    """Return the table with a column `gold`: negative, neutral or positive, whatever the file calls them.

    A number counts as the package's own: 0 negative, 1 neutral, 2 positive.
    """
    columns = columns_of(table)
    name = next(name for name in GOLD if name in columns)
    gold: list[str | None] = []
    for row, value in enumerate(text_column(name, columns[name]).to_pylist(), 1):
        word = (value or "").strip().casefold()
        if word in ("0", "1", "2"):
            word = SENTIMENTS[int(word)]
        if word and word not in SENTIMENTS:
            raise TableError(
                f"{source}, row {row}, column {name!r}: {value!r} is no sentiment; "
                f"write {', '.join(SENTIMENTS)}, or 0, 1, 2"
            )
        gold.append(word or None)
    return _with_gold(table, gold)


def _with_class_names(table: pa.Table, features: Any) -> pa.Table:
    names = getattr(features.get("label"), "names", None)
    if not names:
        return table
    codes = columns_of(table)["label"].to_pylist()
    # -1 is the package's own word for a row without a label
    return _with_gold(table, [names[code] if code is not None and code >= 0 else None for code in codes])


def _with_gold(table: pa.Table, gold: list[str | None]) -> pa.Table:
    import pyarrow as pa

    if "gold" in table.column_names:
        table = table.drop_columns(["gold"])
    return table.append_column("gold", pa.array(gold, pa.string()))
