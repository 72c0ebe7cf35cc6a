"""The votes of a run folder: asked for, reused, or taken from the ledger; and the questions with their replies."""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.collect import run_job
from pcs_annotator.asking.engine.job import Exchange, Job
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import PcsError, PcsWarning, TableError, warn_user
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import NOT_ASKED, Votes
from pcs_annotator.models.provider import Unasked, unasked
from pcs_annotator.runs import ask, ledgers, resolve_config
from pcs_annotator.runs.executors import ask_job
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.settings import Config
from pcs_annotator.tables import vote_files
from pcs_annotator.tables.vote_files import VoteAxes

__all__ = ["Exchange"]
SETTLED_AFTER = 60.0  # seconds after which a call of another computer is in a shared ledger, even if its clock differs


def ask_for_folder(
    folder: RunFolder,
    ledger: LedgerAddress,
    job: Job,
    items: Sequence[Item],
    settings: ask.CollectSettings,
    digest: str,
) -> Votes:
    """Ask what the ledger has no answer to, and write variants and votes to a folder, with a note on them."""
    with vote_files.writing_variants(folder.variants, {"asked": digest}) as note_variant:
        noting = replace(job, on_variant=note_variant)
        votes = run_sync(lambda: ask_job(noting, items, ledger, settings))
    note = {"asked": digest, "tally": settings.tally.to_dict(), "ledger": ledger_state(ledger)}
    vote_files.write_votes(folder.votes, votes, note)
    return votes


def reusable_votes(
    folder: RunFolder, ledger: LedgerAddress, job: Job, items: Sequence[Item], digest: str, tally: Tally
) -> Votes | None:
    """Return the votes in a folder if they are all answers to the same job, and count them; else None."""
    note = vote_files.read_note(folder.votes)
    if note.get("asked") != digest or vote_files.read_note(folder.variants).get("asked") != digest:
        return None
    counted = note["tally"]
    if not all_answered(counted, note["ledger"], ledger):
        return None
    annotators, relations = ([part.name for part in axis] for axis in ([a for a, _ in job.annotators], job.relations))
    votes = _read(folder, VoteAxes([item.id for item in items], annotators, relations, job.task.labels, job.draws))
    if votes is None:
        return None
    run_sync(lambda: ask.close_models(job))
    tally.take_over(counted)
    ask.warn_about_grades(tally)
    return votes


def recorded_votes(folder: RunFolder, config: Config, start: Mapping[str, Any], items: Sequence[Item]) -> Votes:
    """Return the votes of a run: those in its file or, after a stop, all that the ledger has; no model is called."""
    votes, ledger = _filed_votes(folder, config, start, [item.id for item in items]), ledgers.ledger_of(folder, config)
    if votes is None and ledgers.ledger_exists(ledger):
        job, settings = job_without_calls(config, unasked(None))
        votes = ask_for_folder(folder, ledger, job, items, settings, start.get("asked", ""))
    if votes is None or (votes.codes == NOT_ASKED).all():
        raise TableError(f"{folder.home} has no answers yet: pcs run asks for them")
    note, answered = vote_files.read_note(folder.votes), int((votes.codes != NOT_ASKED).sum())
    if unanswered := sum(note["tally"]["failed"].values()) if note else 0:
        there = f"{answered:,} votes are there, about {answered / (answered + unanswered):.1%} of all"
        warn_user(f"{folder.home}: the run is not finished: {there}; pcs run asks the rest")
    return votes


def job_without_calls(
    config: Config, environment: Unasked, objects: OwnObjects | None = None
) -> tuple[Job, ask.CollectSettings]:
    """Return the job of a run, and settings with which it has its answers from the ledger; no model is called."""
    settings = resolve_config.collect_settings_of(config, environment, objects)
    settings = replace(settings, budget=Budget(calls=0), cluster=None)
    return ask.open_job(resolve_config.task_of(config), config.ask.models, config.relations.use, settings), settings


def _filed_votes(folder: RunFolder, config: Config, start: Mapping[str, Any], ids: Sequence[str]) -> Votes | None:
    note = vote_files.read_note(folder.votes)
    same = not note or start.get("asked", note["asked"]) == note["asked"]
    if not folder.votes.exists() or not same:
        return None
    if note and note["tally"]["failed"] and _calls_in(ledgers.ledger_of(folder, config)) > note["ledger"]["calls"]:
        return None
    return _read(folder, VoteAxes(ids, start["annotators"], start["relations"], config.task.labels, config.ask.draws))


def _read(folder: RunFolder, axes: VoteAxes) -> Votes | None:
    """Return the votes in the file of a run; None, with a warning, if it is damaged."""
    try:
        return vote_files.read_votes(folder.votes, axes)
    except PcsError as error:
        warn_user(f"{error}; votes are taken from the ledger instead")
        return None


def ledger_state(ledger: LedgerAddress) -> dict[str, float]:
    """Return how many calls a ledger has, and until when: later ones do not matter."""
    # on a server, others may be storing calls that they made before now
    at = time.time() - (SETTLED_AFTER if on_server(ledger) else 0.0)
    return {"at": at, "calls": _calls_in(ledger, at)}


def all_answered(counted: Mapping[str, Any], then: Mapping[str, float], ledger: LedgerAddress) -> bool:
    """Return whether every question was answered, and the ledger still has the calls that it had then."""
    return not counted["failed"] and not counted["refused"] and _calls_in(ledger, then["at"]) == then["calls"]


def _calls_in(address: LedgerAddress, until: float = inf) -> int:
    if not ledgers.ledger_exists(address):
        return 0
    with open_ledger(address) as ledger:
        return ledger.count(until)


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
