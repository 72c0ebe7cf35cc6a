"""Reports of these tests list as many rows as those of users."""

from collections.abc import Iterator

import pytest

from pcs_annotator.showing.report import view

MOST_ROWS = view.MOST_ROWS


@pytest.fixture(autouse=True, scope="module")
def long_reports() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view, "MOST_ROWS", MOST_ROWS)
        yield
