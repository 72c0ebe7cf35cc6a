"""The variants of a run folder, for those who show them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from pcs_annotator.core.tabular import as_arrow
from pcs_annotator.core.variant import Status, Variant
from pcs_annotator.files.runs import RunFolder

if TYPE_CHECKING:
    import pyarrow as pa


class VariantCount(NamedTuple):
    """How often a relation came to the same end for the same reason."""

    relation: str
    status: Status
    reason: str
    times: int


def read_variants(folder: RunFolder, ids: Collection[str] | None = None) -> dict[tuple[str, str], Variant]:
    """Return item id and relation → variant, of some items or of all; empty when the folder holds none.

    The original text is no entry, and a variant's source is left empty: it is the item's text.
    """
    table = _table(folder)
    if table is None:
        return {}
    if ids is not None:
        import pyarrow as pa
        import pyarrow.compute as pc

        table = table.filter(pc.is_in(table["id"], value_set=pa.array(sorted(ids), pa.string())))
    return {(row["id"], row["relation"]): _variant(row) for row in table.to_pylist()}


def count_variants(folder: RunFolder) -> Iterator[VariantCount]:
    """Yield how the rewrites ended, the commonest end of each relation first."""
    table = _table(folder)
    if table is None:
        return
    ends = table.group_by(["relation", "status", "reason"]).aggregate([([], "count_all")]).to_pylist()
    for row in sorted(ends, key=lambda row: (row["relation"], -row["count_all"], row["status"], row["reason"] or "")):
        yield VariantCount(row["relation"], row["status"], row["reason"] or "", row["count_all"])


def _table(folder: RunFolder) -> pa.Table | None:
    return as_arrow(folder.variants) if folder.variants.exists() else None


def _variant(row: dict[str, str | None]) -> Variant:
    return Variant(
        relation=row["relation"] or "",
        status=row["status"],  # type: ignore[arg-type]  # written from a Variant
        text=row["text"],
        reason=row["reason"] or "",
        refused=row["refused"],
    )
