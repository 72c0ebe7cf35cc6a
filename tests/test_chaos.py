"""A short form of `benchmarks/chaos.py`: runs that are killed, stopped and frozen lose nothing and pay once."""

import sys

import pytest

from benchmarks import chaos_folder
from benchmarks.chaos import campaigns

pytestmark = pytest.mark.system


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has none of these signals")
def test_nothing_is_lost_mixed_up_or_paid_for_twice() -> None:
    (campaign,) = campaigns(1, first=7)
    assert campaign.signals
    assert campaign.held, campaign


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has none of these signals")
@pytest.mark.parametrize("kind", ["full-disk-label", "two-reviewers", "finish-killed"])
def test_a_full_disk_a_fit_beside_reviewers_and_a_killed_finish_lose_nothing(kind: str) -> None:
    if why := chaos_folder.reasons_to_skip().get(kind):
        pytest.skip(why)
    (campaign,) = chaos_folder.campaigns(1, 0, [kind])
    assert campaign.held, campaign
