"""A short form of `benchmarks/chaos.py`: runs that are killed, stopped and frozen lose nothing and pay once."""

from __future__ import annotations

import sys

import pytest

from benchmarks.chaos import campaigns

pytestmark = pytest.mark.system


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has none of these signals")
def test_nothing_is_lost_mixed_up_or_paid_for_twice() -> None:
    (campaign,) = campaigns(1, first=7)
    assert campaign.signals
    assert campaign.held, campaign
