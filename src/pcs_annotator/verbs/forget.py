"""`pcs forget`: deletes a text of the stream, what models said about it, and every note of it in the run folder."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.collect import run_job
from pcs_annotator.asking.ledger.open_ledger import AnyLedger, open_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import ConfigError, UnknownRow
from pcs_annotator.core.chat import Reply
from pcs_annotator.core.identity import text_hash
from pcs_annotator.core.task import Item
from pcs_annotator.reviewing.review_queues import lock_review
from pcs_annotator.runs import ask, resolve_config
from pcs_annotator.runs.draw_registry import read_events
from pcs_annotator.runs.fits import numbers
from pcs_annotator.runs.labeller import LoadOptions, job_of
from pcs_annotator.runs.ledgers import ledger_of
from pcs_annotator.runs.levels import forget_gold
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.stream import Stream
from pcs_annotator.tables.files import atomic_path, read_json, write_json


class Forgotten(NamedTuple):
    """What was deleted, as found by looking again afterwards."""

    ids: Sequence[str]  # of the text and its copies in the stream
    answers: int  # of models
    rows: Sequence[str]  # IDs of the run's own rows that have the same text: those are not deleted


def forget(path: Path, id: str = "", text: str = "", options: LoadOptions | None = None) -> Forgotten:
    """Delete a text from a run, with answers and verdicts; it must be given if it was accepted, and so is not kept."""
    run, options = Run.open(path), options or LoadOptions()
    folder = run.folder
    with lock_review(folder.path):
        kept = _in_stream(folder, id, text)
        texts = list(dict.fromkeys(each for each in (text, *kept.values()) if each))
        answers = sum(run_sync(partial(_answers, run, each, options, delete=True)) for each in texts)
        for name in kept:
            _forget_id(folder, name)
        with Stream(folder.stream) as stream:  # last: after an interruption, the same command finishes the work
            stream.forget(kept)
            left = [*stream.having([*kept], texts)]
    left += [each for each in texts if run_sync(partial(_answers, run, each, options, delete=False))]
    if left:
        raise ConfigError(f"{folder.path} still has this text, or answers about it: it was sent meanwhile; repeat")
    hashes = {*map(text_hash, texts)}
    rows = [item.id for item in run.dataset.items if text_hash(item.text) in hashes]
    return Forgotten([*kept], answers, rows)


def _in_stream(folder: RunFolder, id: str, text: str) -> dict[str, str]:
    """Return ID → text, empty if it is not kept, of the copies in the stream; without a text, there must be one."""
    kept: dict[str, str] = {}
    if folder.stream.exists():
        with Stream(folder.stream) as stream:
            kept = stream.having([id], [text] if text else [])
            kept |= stream.having([], [kept_text for kept_text in kept.values() if kept_text])
    if not (kept or text):
        raise UnknownRow(
            f"{folder.path} keeps no text {id!r}: pcs review and the service's replies show the IDs; if it was "
            "accepted, or came before under another ID, --text finds it"
        )
    if text and kept.get(id) and text_hash(kept[id]) != text_hash(text):
        raise UnknownRow(f"{id} is another text than the one given with --text: leave out one of the two")
    return kept


def _forget_id(folder: RunFolder, id: str) -> None:
    _forget_verdicts(folder, id)
    forget_gold(folder, id)
    for file in (folder.model, *(folder.at(number).model for number in numbers(folder))):
        values = read_json(file) if file.exists() else {}
        if id in (ids := values.get("gold_ids", ())):
            write_json(file, {**values, "gold_ids": [each for each in ids if each != id]})


async def _answers(run: Run, text: str, options: LoadOptions, *, delete: bool) -> int:
    """Count the answers about a text and its rewrites, looked up as if it were labelled again; perhaps delete them."""
    settings = resolve_config.collect_settings_of(run.config, options.environment, options.own)
    settings = replace(settings, budget=Budget(calls=0), progress=False)
    job = job_of(run, settings)
    try:
        with open_ledger(ledger_of(run.folder, run.config)) as ledger:
            keys = _watched(ledger)
            await run_job(job, [Item(id="forgotten", text=text)], ask.open_asker(ledger, settings))
            return ledger.prune(keys=sorted(keys)) if delete and keys else len(keys)
    finally:
        await ask.close_models(job)


def _watched(ledger: AnyLedger) -> set[bytes]:
    """Return a set that fills with the keys of all answers that are found in a ledger from now on."""
    keys, find = set[bytes](), ledger.find

    async def noting(wanted: Sequence[bytes]) -> dict[bytes, Reply]:
        replies = await find(wanted)
        keys.update(replies)
        return replies

    ledger.find = noting  # type: ignore[assignment, method-assign]
    return keys


def _forget_verdicts(folder: RunFolder, id: str) -> None:
    if all(getattr(event, "id", "") != id for event in read_events(folder.draws, None)):
        return
    lines = folder.draws.read_bytes().splitlines(keepends=True)
    with atomic_path(folder.draws) as scratch:
        scratch.write_bytes(b"".join(line for line in lines if b'"id":"%b"' % id.encode() not in line))
