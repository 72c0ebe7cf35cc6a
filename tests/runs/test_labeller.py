"""Texts that come one by one are judged together, as they would be alone."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator import Item, Votes, Weights
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.judging.model import Model
from pcs_annotator.runs import ask
from pcs_annotator.runs.labeller import LabelledTexts, Labeller, LoadOptions, open_fitted
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.recent_texts import JudgeTogether, RecentTexts
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Config
from tests.simulated import copy_run, label, simulated_models, write_texts


def test_chunks_side_by_side_are_labelled_as_the_whole_table_is_and_copies_are_paid_for_once(
    promising_run: Path, tmp_path: Path
) -> None:
    run = RunFolder(copy_run(promising_run, tmp_path / "run"))
    data = write_texts(tmp_path / "new.csv", range(1000, 1040))
    request = RunRequest(data=data, folder=run.path, config=Config())
    items = request.open_data().read().items

    async def in_chunks() -> tuple[list[LabelledTexts], int, int]:
        fitted = open_fitted(Run.open(run.path), LoadOptions(environment={}))
        with Ledger(tmp_path / "other.db") as ledger:
            asker = ask.open_asker(ledger, fitted.settings)
            labeller = Labeller(fitted, asker)
            # the second half comes twice at the same time
            chunks = await asyncio.gather(*(labeller.label(some) for some in (items[:20], items[20:], items[20:])))
            await ask.close_models(fitted.job)
            return chunks, asker.tracker.calls, ledger.count()

    with simulated_models():
        chunks, calls, stored = asyncio.run(in_chunks())
        whole = label(request, tmp_path / "out.csv")
    assert calls == stored == whole.tally.calls
    first, second, copy = (chunk.judged.best for chunk in chunks if chunk.judged is not None)
    assert (second == copy).all()
    named = [whole.votes.labels[code] for code in np.concatenate([first, second])]
    assert named == [outcome.label for outcome in whole.outcomes]


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
