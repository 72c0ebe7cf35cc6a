"""Claims about rows in tables with many copies of some texts; the large version is `benchmarks/copies.py`."""

import numpy as np
import pytest

from benchmarks import copies


@pytest.mark.parametrize("name", ["one wrong, 1,000 times", "Zipf"])
def test_claims_about_rows_are_kept_however_often_a_text_stands_in_the_table(name: str) -> None:
    worlds = [copies.WORLDS[name](seed) for seed in range(15)]
    found = [copies.claims_of(world, copies.by_rows(world, seed, 200), rows=True) for seed, world in enumerate(worlds)]
    broken = np.array(found, dtype=np.float64).sum(axis=0)
    assert broken[0] <= 4  # of 15, one is expected at most
    assert broken[1] <= 4
    assert broken[2] <= 4


def test_a_sample_of_texts_that_is_taken_for_one_of_rows_breaks_them() -> None:
    worlds = [copies.WORLDS["one wrong, 1,000 times"](seed) for seed in range(5)]
    draws = [copies.by_texts(world, seed, 200) for seed, world in enumerate(worlds)]
    found = [copies.claims_of(world, sample, rows=False) for world, sample in zip(worlds, draws, strict=True)]
    assert sum(one.finish for one in found) >= 4
