"""`pcs forget`: deletes a text of the stream, what models said about it, and every note of it in the run folder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.collect import run_job
from pcs_annotator.asking.ledger.open_ledger import AnyLedger, open_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import UnknownRow
from pcs_annotator.core.chat import Reply
from pcs_annotator.core.task import Item
from pcs_annotator.reviewing.queues import lock_review
from pcs_annotator.runs import ask, resolve_config
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.labelling.labeller import LoadOptions, job_of
from pcs_annotator.runs.ledgers import ledger_of
from pcs_annotator.runs.review_state import read_review
from pcs_annotator.runs.run import Run
from pcs_annotator.runs.stream import Stream
from pcs_annotator.runs.versions import numbers
from pcs_annotator.tables.files import atomic_path, read_json, write_json


def forget(path: Path, id: str, text: str = "", options: LoadOptions | None = None) -> int:
    """Delete a text of a run's stream from every file of the run; return how many answers of models went with it.

    A text that was accepted may not be kept, so it must be given.

    Raises:
        UnknownRow: The stream has no such text.
        ConfigError: Somebody reviews the run.
    """
    run = Run.open(path)
    folder = run.folder
    with lock_review(path):
        text = text or _text_in_stream(folder, id)
        deleted = (
            run_sync(lambda: _forget_answers(run, Item(id=id, text=text), options or LoadOptions())) if text else 0
        )
        _forget_verdicts(folder, id)
        # every fit and test notes the IDs of its gold rows
        for place in (folder.levels, folder.model, *(folder.at(number).model for number in numbers(folder))):
            values = read_json(place) if place.exists() else {}
            noted = {name: found for name in ("gold", "gold_ids") if id in (found := values.get(name, ()))}
            if noted:
                others = {name: [one for one in found if one != id] for name, found in noted.items()}
                write_json(place, {**values, **others})
        with Stream(folder.stream) as stream:  # last: after an interruption, the same command finishes the work
            stream.forget(id)
    return deleted


def _text_in_stream(folder: RunFolder, id: str) -> str:
    found = None
    if folder.stream.exists():
        with Stream(folder.stream) as stream:
            found = stream.text_of(id)
    if found is None:
        raise UnknownRow(
            f"{folder.path} keeps no text {id!r}: pcs review and the service's replies show the IDs; if it was "
            "accepted, only answers about it are kept, and --text finds them"
        )
    return found


async def _forget_answers(run: Run, item: Item, options: LoadOptions) -> int:
    """Delete all answers about a text, and its rewrites, by looking them up as if it were labelled again."""
    settings = resolve_config.collect_settings_of(run.config, options.environment, options.own)
    settings = replace(settings, budget=Budget(calls=0), progress=False)
    job = job_of(run, settings)
    try:
        with open_ledger(ledger_of(run.folder, run.config), shared=True) as ledger:
            keys = _watched(ledger)
            await run_job(job, [item], ask.open_asker(ledger, settings))
            return ledger.prune(keys=sorted(keys)) if keys else 0
    finally:
        await ask.close_models(job)


def _watched(ledger: AnyLedger) -> set[bytes]:
    """Return a set that fills with the keys of all answers that are found in a ledger from now on."""
    keys, find = set[bytes](), ledger.find

    async def noting(wanted: Sequence[bytes]) -> dict[bytes, Reply]:
        found = await find(wanted)
        keys.update(found)
        return found

    ledger.find = noting  # type: ignore[assignment, method-assign]
    return keys


def _forget_verdicts(folder: RunFolder, id: str) -> None:
    """Remove draws of and verdicts on a text from the log of the review."""
    numbers = {one.number for one in read_review(folder.review) if getattr(one, "id", "") == id}
    if not numbers:
        return
    lines = folder.review.read_bytes().splitlines(keepends=True)
    with atomic_path(folder.review) as scratch:
        scratch.write_bytes(b"".join(line for line in lines if b'"id":"%b"' % id.encode() not in line))
