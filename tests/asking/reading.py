"""A check that items are read no faster than they are asked about."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from pcs_annotator import Item
from pcs_annotator.asking.engine import collect

Begin = Callable[[Iterator[Item]], Coroutine[Any, Any, object]]
"""Asks a slow model about items."""


def assert_read_as_needed(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start asking about 100,000 items, and check that few were read while the first wait for answers."""
    monkeypatch.setattr(collect, "SECONDS_TO_FINISH", 0.1)
    read = 0

    def stream() -> Iterator[Item]:
        nonlocal read
        for row in range(100_000):
            read += 1
            yield Item(id=str(row), text=f"Text {row}.")

    async def main() -> None:
        task = asyncio.create_task(begin(stream()))
        await asyncio.sleep(0.2)
        assert 0 < read < 200
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
