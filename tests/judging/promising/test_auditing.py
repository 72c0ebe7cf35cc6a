from __future__ import annotations

import numpy as np

from pcs_annotator.judging.promising.auditing import draw_rows


def test_an_audit_is_drawn_from_accepted_rows_only() -> None:
    taken = np.arange(100) % 3 == 0
    drawn = draw_rows(taken, 10, seed=1)
    assert len(drawn) == len(set(drawn.tolist())) == 10
    assert taken[drawn].all()
    assert drawn.tolist() == sorted(drawn.tolist())
    assert drawn.tolist() != draw_rows(taken, 10, seed=2).tolist()


def test_an_audit_takes_all_when_few_were_accepted() -> None:
    assert draw_rows(np.array([True, False, True]), 10, seed=0).tolist() == [0, 2]
