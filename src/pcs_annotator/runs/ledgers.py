"""`pcs ledger`: size, export, import and prune, without calling a model."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pcs_annotator.asking.engine.progress import Tally, bills_of
from pcs_annotator.asking.ledger.admin import LedgerEntry
from pcs_annotator.asking.ledger.ledger import Ledger
from pcs_annotator.asking.ledger.lock import Say, lock_ledger
from pcs_annotator.asking.ledger.open_ledger import AnyLedger, open_ledger
from pcs_annotator.base.errors import ConfigError, LedgerError, warn_user
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.ledger_address import LedgerAddress, on_server, without_password
from pcs_annotator.runs.ask import pricing
from pcs_annotator.runs.files.config import config_from_dict
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.settings import Config
from pcs_annotator.tables import files
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.table_writer import WRITTEN
from pcs_annotator.tables.tables import write_table


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


@contextmanager
def noting_payments(folder: RunFolder, config: Config, tally: Tally, verb: str) -> Iterator[None]:
    """Note in a folder what a command in it pays for, if the ledger is shared; one that is killed notes nothing."""
    try:
        yield
    finally:
        if config.ask.ledger and folder.path.exists():
            paid = payments_in(folder)
            files.write_json(folder.paid, {**paid, verb: paid.get(verb, Counter()) + tally.paid})


def set_payments_aside(folder: RunFolder) -> None:
    """Count what earlier runs in a folder paid for apart from the next one, whose results replace theirs."""
    paid = payments_in(folder)
    if "run" in paid:
        earlier = paid.pop("run") + paid.get("earlier", Counter())
        files.write_json(folder.paid, {**paid, "earlier": earlier})


def payments_in(folder: RunFolder) -> dict[str, Counter[str]]:
    """Return what commands in a folder that shares a ledger paid for: verb → what was taken, see `Tally.paid`."""
    if not folder.paid.exists():
        return {}
    return {verb: Counter(taken) for verb, taken in files.read_json(folder.paid).items() if verb != "schema"}


def paid_bills(address: LedgerAddress) -> list[Bill]:
    """Return the calls, tokens and cost of all that was paid for, also of answers that the ledger has no longer."""
    with existing_ledger(address) as ledger:
        return ledger.bills()


def export_ledger(address: LedgerAddress, out: Path, *, replace: bool = False) -> int:
    """Write all calls as a CSV or Parquet table; return how many. With `replace`, a file of that name is kept aside."""
    files.refuse_inputs(out, None if on_server(address) else Path(address))
    files.check_ending(out, WRITTEN)
    files.refuse_existing(out, replace=replace)
    with existing_ledger(address) as ledger:
        entries = list(ledger.entries())
    columns = {
        name: [entry.key.hex() if name == "key" else getattr(entry, name) for entry in entries]
        for name in LedgerEntry._fields
        if name != "logprobs"
    }
    files.make_way(out)
    write_table(out, pa.table(columns))
    return len(entries)


def import_ledger(address: LedgerAddress, other: LedgerAddress, *, wait: bool = True, say: Say = warn_user) -> int:
    """Copy the calls of another ledger into this one; return how many were new."""
    with lock_ledger(address, wait=wait, say=say), existing_ledger(other) as source, open_ledger(address) as ledger:
        return ledger.import_from(source)


def prune_ledger(
    address: LedgerAddress, *, model: str | None, before: float | None, wait: bool = True, say: Say = warn_user
) -> int:
    """Delete calls of a model, or from before a time; return how many."""
    existing = existing_ledger(address)
    with lock_ledger(address, wait=wait, say=say), existing as ledger:
        return ledger.prune(model=model, before=before)


def set_ledger_aside(path: Path) -> Path:
    """Rename a ledger so that its name has today's date and time, and return its new path; the caller holds its lock.

    SQLite may keep the latest calls in a file of its own, which goes along. A new ledger takes over what was spent.
    """
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


def bills_in(folder: RunFolder, config: Config, tally: Tally) -> Sequence[Bill]:
    """Return what was paid for in a run folder, the calls of a command that is not noted yet among them."""
    if config.ask.ledger:
        noted = sum(payments_in(folder).values(), Counter(tally.paid))
        return bills_of(noted, pricing(config.ask.prices))
    if not folder.ledger.exists():
        warn_user(f"the cost is not shown: {folder.ledger} is gone; put it back, or ask again with pcs run")
        return ()
    return paid_bills(folder.ledger)


def used_bills(
    folder: RunFolder, config: Config, counted: Mapping[str, Any], tally: Tally
) -> tuple[Sequence[Bill], Sequence[Bill]]:
    """Return what all answers behind the votes of a run cost, and that part which others paid for."""
    used, prices = Counter(counted.get("paid", {})) + Counter(counted.get("reused", {})), pricing(config.ask.prices)
    here = payments_in(folder).get("run", Counter()) + tally.paid if config.ask.ledger else used
    return tuple(bills_of(used, prices)), tuple(bills_of(used - here, prices))


def refuse_lost_ledger(folder: RunFolder, config: Config) -> None:
    """Raise if the ledger that a finished run shares is gone: with a new one, everything would be paid for again."""
    ledger = config.ask.ledger
    if (
        not ledger
        or not folder.votes.exists()
        or config_from_dict(files.read_json(folder.settings)["config"]).ask.ledger != ledger
    ):
        return
    if not ledger_exists(ledger):
        raise LedgerError(
            f"{ledger}, where {folder.path} has its answers, is gone: put it back, or say with --ledger where it is "
            "now; with --ledger and the name of a new file, everything is asked and paid for again"
        )
