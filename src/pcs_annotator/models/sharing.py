"""What several models share, connections to a host or weights in memory: made once, closed by the last holder."""

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")
_lock = threading.Lock()
_shared: dict[Hashable, tuple[Any, WeakSet[Any]]] = {}


def lease(key: Hashable, holder: object, make: Callable[[], T]) -> T:
    """Return what is shared under a key; it is kept until each holder has called `release`."""
    with _lock:
        if key not in _shared:
            _shared[key] = (make(), WeakSet())
        thing: T
        thing, holders = _shared[key]
        holders.add(holder)
        return thing


def release(key: Hashable, holder: object) -> Any | None:
    """Return what nobody holds any more, for the caller to close; None if others hold it, or the holder did not."""
    with _lock:
        thing, holders = _shared.get(key, (None, WeakSet[Any]()))
        if holder not in holders:
            return None
        holders.discard(holder)
        if holders:
            return None
        del _shared[key]
        return thing
