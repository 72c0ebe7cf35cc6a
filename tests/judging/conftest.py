from collections.abc import Iterator

import pytest

from pcs_annotator.judging.solver import one_thread


@pytest.fixture(scope="session", autouse=True)
def linear_algebra_in_one_thread() -> Iterator[None]:
    """Fit as the pipeline does; on a busy machine, threads that wait for each other take ten times as long."""
    with one_thread():
        yield
