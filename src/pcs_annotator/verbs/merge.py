"""`pcs merge`: puts the answers of several run folders together, and labels the whole table from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.runs import folder_votes, ledgers
from pcs_annotator.runs.files.config import Config
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.run_folder import started
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
    runs = [(folder, *started(RunFolder(folder))) for folder in folders]
    first, config, start = runs[0]
    for folder, other, about in runs[1:]:
        _refuse_other(first, config, folder, other)
        if about["data"] != start["data"]:
            raise ConfigError(
                f"{first} and {folder} are runs of {start['data']} and {about['data']}: merge runs of one table"
            )
    _refuse_missing([(folder, about.get("shard")) for folder, _, about in runs])
    if not config.ask.ledger or any(other.ask.ledger != config.ask.ledger for _, other, _ in runs):
        for folder, other, _ in runs:
            ledgers.import_ledger(RunFolder(out).ledger, ledgers.ledger_of(RunFolder(folder), other))
        config = replace(config, ask=replace(config.ask, ledger=""))
    place, environment = start["data"], folder_votes.without_keys()
    source = data or (place if is_address(place) else Path(place))
    about = {"config": config, "limit": start.get("limit"), "environment": environment, "ask": False}
    return run(RunRequest(data=source, folder=out, **about, **how))


def _refuse_other(first: Path, config: Config, folder: Path, other: Config) -> None:
    """Raise if two runs asked different questions."""
    for what, ours, theirs in (
        ("labels", config.task.labels, other.task.labels),
        ("instructions", config.task.instruction, other.task.instruction),
        ("models", config.ask.models, other.ask.models),
        ("relations", config.relations.use, other.relations.use),
    ):
        if ours != theirs:
            raise ConfigError(
                f"{first} and {folder} have other {what} ({ours}, {theirs}): merge runs of the same questions"
            )


def _refuse_missing(shards: Sequence[tuple[Path, Any]]) -> None:
    """Raise if some shards of a table are not there; folders that are no shards may have any rows."""
    found = [Shard.parse(shard) for _, shard in shards if shard]
    missing = [f"{number}/{found[0].of}" for number in range(1, found[0].of + 1)] if found else []
    missing = [shard for shard in missing if shard not in {str(one) for one in found}]
    if missing:
        raise ConfigError(
            f"shards are missing: {', '.join(missing)}; run them with --shard, and name their folders too"
        )
