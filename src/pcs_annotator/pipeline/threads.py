"""How many threads learning may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra to one thread: the matrices are tiny, and threads would only wait for each other."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
