from __future__ import annotations

from pathlib import Path

from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import Variant
from pcs_annotator.files.runs import RunFolder
from pcs_annotator.files.vote_files import writing_variants
from pcs_annotator.pipeline.run_folder import VariantCount, count_variants, read_variants

ITEMS = [Item(id=name, text=f"text {name}") for name in "abc"]
CHANGED = Variant(relation="voice", status="changed", text="rewritten")
IDLE = Variant(relation="voice", status="not_applicable", reason="no object")
REFUSED = Variant(relation="synonym", status="rejected", reason="a number changed", refused="text 7")


def _folder(path: Path) -> RunFolder:
    folder = RunFolder(path)
    with writing_variants(folder.variants) as note:
        for item in ITEMS:
            note(item, Variant(relation="original", status="original", text=item.text))
            note(item, CHANGED if item.id == "a" else IDLE)
            note(item, REFUSED)
    return folder


def test_variants_are_read_back_by_item_and_relation(tmp_path: Path) -> None:
    found = read_variants(_folder(tmp_path))
    assert len(found) == 6
    assert found["a", "voice"] == CHANGED
    assert found["b", "voice"] == IDLE
    assert found["c", "synonym"] == REFUSED


def test_variants_of_some_items_only(tmp_path: Path) -> None:
    found = read_variants(_folder(tmp_path), ["a", "unknown"])
    assert {item for item, _ in found} == {"a"}
    assert read_variants(_folder(tmp_path), []) == {}


def test_ends_are_counted_with_the_commonest_first(tmp_path: Path) -> None:
    assert list(count_variants(_folder(tmp_path))) == [
        VariantCount("synonym", "rejected", "a number changed", 3),
        VariantCount("voice", "not_applicable", "no object", 2),
        VariantCount("voice", "changed", "", 1),
    ]


def test_a_folder_without_variants_has_none(tmp_path: Path) -> None:
    assert read_variants(RunFolder(tmp_path)) == {}
    assert list(count_variants(RunFolder(tmp_path))) == []
