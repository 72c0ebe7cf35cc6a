"""`pcs merge`: puts the answers of several run folders together, and labels the whole table from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.runs import folder_votes, ledgers
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.run import Run
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.tables.table_stream import Shard
from pcs_annotator.tables.tabular import is_address
from pcs_annotator.verbs.run import run


def merge(out: Path, folders: Sequence[Path], data: Path | str | None = None, **how: Any) -> RunResult:
    """Put the answers of run folders, such as those of shards, into one; then run there, without calling a model.

    Args:
        out: The folder to make, or to make again.
        folders: The run folders.
        data: The whole table, if it is elsewhere by now.
        how: Further settings of the `RunRequest`.
    """
    runs = [Run.open(folder) for folder in folders]
    config, start = runs[0].config, runs[0].start
    for other in runs[1:]:
        _refuse_other(runs[0], other)
    _refuse_missing([other.start["shard"] for other in runs if other.start.get("shard")])
    if not config.ask.ledger or any(other.config.ask.ledger != config.ask.ledger for other in runs):
        for other in runs:
            ledgers.import_ledger(RunFolder(out).ledger, ledgers.ledger_of(other.folder, other.config))
        config = replace(config, ask=replace(config.ask, ledger=""))
    place, environment = start["data"], folder_votes.without_keys()
    source = data or (place if is_address(place) else Path(place))
    about: dict[str, Any] = {"config": config, "limit": start.get("limit"), "environment": environment, "ask": False}
    return run(RunRequest(data=source, folder=out, **about, **how))


def _refuse_other(first: Run, other: Run) -> None:
    """Raise if two runs asked different questions, or about different tables."""
    names, ours, theirs = f"{first.folder.path} and {other.folder.path}", first.config, other.config
    for what, here, there in (
        ("labels", ours.task.labels, theirs.task.labels),
        ("instructions", ours.task.instruction, theirs.task.instruction),
        ("models", ours.ask.models, theirs.ask.models),
        ("relations", ours.relations.use, theirs.relations.use),
    ):
        if here != there:
            raise ConfigError(f"{names} have other {what} ({here}, {there}): merge runs of the same questions")
    here, there = first.start["data"], other.start["data"]
    if here != there:
        raise ConfigError(f"{names} are runs of {here} and {there}: merge runs of one table")


def _refuse_missing(shards: Sequence[str]) -> None:
    """Raise if some shards of a table are not there; folders that are no shards may have any rows."""
    found = [Shard.parse(shard) for shard in shards]
    wanted = [f"{number}/{found[0].of}" for number in range(1, found[0].of + 1)] if found else []
    missing = [shard for shard in wanted if shard not in {str(one) for one in found}]
    if missing:
        raise ConfigError(
            f"shards are missing: {', '.join(missing)}; run them with --shard, and name their folders too"
        )
