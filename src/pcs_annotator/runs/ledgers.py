"""`pcs ledger`: size, import and prune, without calling a model."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pcs_annotator.asking.engine.progress import bills_of
from pcs_annotator.asking.ledger.lock import Say, lock_ledger
from pcs_annotator.asking.ledger.open_ledger import AnyLedger, open_ledger
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.base.errors import ConfigError, LedgerError, warn_user
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.ledger_address import LedgerAddress, on_server, without_password
from pcs_annotator.runs.ask import pricing
from pcs_annotator.runs.paths import RunFolder, read_start
from pcs_annotator.runs.settings import Config
from pcs_annotator.runs.toml import config_from_dict
from pcs_annotator.tables import files


def ledger_of(folder: RunFolder, config: Config) -> LedgerAddress:
    """Return where a run keeps its paid calls: in its folder, unless its settings name another place."""
    named = config.ask.ledger
    return named if on_server(named) else Path(named) if named else folder.ledger


def ledger_exists(address: LedgerAddress) -> bool:
    """Return whether there is a ledger; on a server, one is made where there is none."""
    return on_server(address) or Path(address).is_file()


def check_ledger(config: Config, *, fresh: bool = False) -> None:
    """Raise if a ledger that settings name cannot be used, before anything is written."""
    named = config.ask.ledger
    if named and fresh:
        raise ConfigError(
            f"--fresh would set {without_password(named)} aside, which others may use: leave one of --fresh and "
            "--ledger out"
        )
    if on_server(named):
        with open_ledger(named):
            pass


@contextmanager
def lock_run(folder: RunFolder, address: LedgerAddress, *, wait: bool = True, say: Say = warn_user) -> Iterator[None]:
    """Hold the locks of a run folder, which one process at a time may change, and of its ledger."""
    with lock_ledger(folder.ledger, wait=wait, say=say), lock_ledger(address, wait=wait, say=say):
        yield


def paid_bills(address: LedgerAddress) -> list[Bill]:
    """Return the calls, tokens and cost of all that was paid for, also of answers that the ledger has no longer."""
    with existing_ledger(address) as ledger:
        return ledger.bills()


def import_ledger(address: LedgerAddress, other: LedgerAddress, *, wait: bool = True, say: Say = warn_user) -> int:
    """Copy the calls of another ledger into this one; return how many were new."""
    with lock_ledger(address, wait=wait, say=say), existing_ledger(other) as source, open_ledger(address) as ledger:
        return ledger.import_from(source)


def prune_ledger(
    address: LedgerAddress, *, model: str | None, before: float | None, wait: bool = True, say: Say = warn_user
) -> int:
    """Delete calls of a model, or from before a time; return how many."""
    with lock_ledger(address, wait=wait, say=say), existing_ledger(address) as ledger:
        return ledger.prune(model=model, before=before)


def set_ledger_aside(path: Path) -> Path:
    """Give a ledger a dated name, and return it; a new one takes over what was spent. The caller holds its lock."""
    with suppress(LedgerError), Ledger(path):
        pass  # a ledger that is opened and closed leaves no such file, unless somebody else reads it or it is damaged
    kept = files.set_aside(path)
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").rename(f"{kept}{end}")
    try:
        with Ledger(path) as ledger:
            ledger.take_over_spending(kept)
    except LedgerError as error:
        warn_user(f"what was spent before does not count for budgets: {error}")
    return kept


def existing_ledger(address: LedgerAddress) -> AnyLedger:
    """Return a ledger to be used as a context manager; an error if there is none."""
    if not ledger_exists(address):
        raise LedgerError(f"there is no ledger {address}: name the file, such as ledger.db in a run folder")
    return open_ledger(address)


def used_bills(config: Config, counted: Mapping[str, Any]) -> Sequence[Bill]:
    """Return what all answers behind the votes of a run cost, whoever paid for them; `counted` is `Tally.to_dict`."""
    used = Counter(counted.get("paid", {})) + Counter(counted.get("reused", {}))
    return tuple(bills_of(used, pricing(config.ask.prices)))


def bills_in(folder: RunFolder, config: Config, used: Sequence[Bill]) -> Sequence[Bill]:
    """Return what was paid for in a run folder; with a ledger that others use, what its answers cost."""
    if config.ask.ledger or not config.ask.models:  # a table of votes was paid for elsewhere
        return used
    if not folder.ledger.exists():
        warn_user(f"the cost is not shown: {folder.ledger} is gone; put it back, or ask again with pcs run")
        return ()
    return paid_bills(folder.ledger)


def refuse_lost_ledger(folder: RunFolder, config: Config) -> None:
    """Raise if the ledger that a finished run shares is gone: with a new one, everything would be paid for again."""
    ledger = config.ask.ledger
    if not ledger or not folder.votes.exists() or config_from_dict(read_start(folder)["config"]).ask.ledger != ledger:
        return
    if not ledger_exists(ledger):
        raise LedgerError(
            f"{ledger}, where {folder.home} has its answers, is gone: put it back, or say with --ledger where it is "
            "now; with --ledger and the name of a new file, everything is asked and paid for again"
        )
