"""What models were asked about some rows, and what they replied: from the ledger, without a call."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pcs_annotator.asking.engine.collect import run_job
from pcs_annotator.asking.engine.job import Exchange
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import PcsError, PcsWarning
from pcs_annotator.core.task import Item
from pcs_annotator.models.provider import Unasked, unasked
from pcs_annotator.runs import ask, ledgers
from pcs_annotator.runs.folder_votes import job_without_calls
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.settings import Config

__all__ = ["Evidence", "Exchange", "evidence_of"]


class Evidence(NamedTuple):
    """Questions as they were sent, with their replies."""

    exchanges: Sequence[Sequence[Exchange]]  # of every row, in the order of relations and models
    missing: str = ""  # why there are none, as the end of a sentence


def evidence_of(
    folder: RunFolder, config: Config, items: Sequence[Item], objects: OwnObjects | None = None
) -> Evidence:
    """Return what was asked about items of a run, made again as the run made it, with the replies of its ledger."""
    address = ledgers.ledger_of(folder, config)
    if not config.ask.models:
        return Evidence((), "the run was made of a table of votes")
    if not ledgers.ledger_exists(address):
        return Evidence((), "the ledger is gone")
    exchanges: list[list[Exchange]] = [[] for _ in items]

    async def look_up() -> None:
        offline = Unasked({**unasked(None), "HF_HUB_OFFLINE": "1"})  # no file of a model is looked for
        job, settings = job_without_calls(config, offline, objects)
        noting = replace(job, on_exchange=lambda exchange: exchanges[exchange.row].append(exchange))
        try:
            with ledgers.existing_ledger(address) as ledger:
                await run_job(noting, items, ask.open_asker(ledger, settings))
        finally:
            await ask.close_models(job)
        names = [*(relation.name for relation in job.relations), *(annotator.name for annotator, _ in job.annotators)]
        for some in exchanges:
            some.sort(key=lambda exchange: (names.index(exchange.relation), names.index(exchange.annotator)))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PcsWarning)  # what they are about was said when the run asked
            run_sync(look_up)
    except PcsError as error:
        return Evidence((), str(error))
    except Exception as error:  # of somebody's model or relation, which must not cost a report
        return Evidence((), f"the run's models cannot be opened here ({type(error).__name__})")
    return Evidence(exchanges)
