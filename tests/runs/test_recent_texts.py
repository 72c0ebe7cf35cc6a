"""Texts that come one by one are judged together, as they would be alone."""

import asyncio

import numpy as np
import pytest

from pcs_annotator import Item, Votes, Weights
from pcs_annotator.judging.model import Model
from pcs_annotator.runs.recent_texts import JudgeTogether, RecentTexts


def one_text(name: str, *codes: int) -> Votes:
    return Votes(
        codes=np.array(codes, dtype=np.int8).reshape(1, len(codes), 1, 1),
        ids=[name],
        annotators=[f"m{at}" for at in range(len(codes))],
        relations=["original"],
        labels=["bad", "good"],
    )


@pytest.mark.asyncio
async def test_texts_are_judged_together_and_one_whose_client_has_gone_disturbs_no_other() -> None:
    texts = [one_text("a", 0, 0, 1), one_text("b", 1, 1, 1), one_text("c", 0, 0, 0)]
    model = Model(weights=Weights.uniform(texts[0]), calibrator=None)
    judge = JudgeTogether(model, RecentTexts(model.references), lambda *_: None, lambda: 100)
    tasks = [asyncio.create_task(judge.judge(Item(id=str(at), text=str(at)), votes)) for at, votes in enumerate(texts)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    gone, *found = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(gone, asyncio.CancelledError)
    alone = [next(iter(model.judge(votes))).label for votes in texts[1:]]
    assert [one[0].label for one in found if isinstance(one, tuple)] == alone == ["good", "bad"]
