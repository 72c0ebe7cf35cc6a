from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from pcs_annotator.core.task import Item


def test_item_has_no_room_for_gold() -> None:
    # gold that travels with the text would sooner or later end up in a prompt
    assert [field.name for field in fields(Item)] == ["id", "text"]

    with pytest.raises((AttributeError, TypeError)):
        Item(id="1", text="Fine weather.").gold = "positive"  # type: ignore[attr-defined]  # that is what is tested


def test_item_is_frozen_and_compares_by_value() -> None:
    item = Item(id="1", text="Fine weather.")

    assert item == Item(id="1", text="Fine weather.")
    with pytest.raises(FrozenInstanceError):
        item.text = "Rain."  # type: ignore[misc]  # that is what is tested
