import asyncio
from pathlib import Path

import numpy as np

from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.runs import ask
from pcs_annotator.runs.labeller import LabelledTexts, Labeller, LoadOptions, open_fitted
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
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
