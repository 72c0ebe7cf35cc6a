"""What is said about texts that differ from the gold rows, and what can be done about it."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path

from pcs_annotator.base.errors import PcsWarning
from pcs_annotator.core.ledger_address import LedgerAddress, without_password
from pcs_annotator.core.outcome import UNLIKE_GOLD
from pcs_annotator.judging.promising.drift import Drift
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.fitted import FittedRun
from pcs_annotator.tables.table_files import STDIO

LEAST_GOLD = 200
"""Gold rows for texts of a new kind, if the run has fewer."""


def warn_if_unlike(
    found: Drift | None, fitted: FittedRun, ledger: LedgerAddress, folder: RunFolder, data: object = None
) -> None:
    """Warn if texts differ from the gold rows."""
    if found is not None and found.found:
        warnings.warn(texts_differ(found, fitted, ledger, folder, data), PcsWarning, stacklevel=3)


def texts_differ(found: Drift, fitted: FittedRun, ledger: LedgerAddress, folder: RunFolder, data: object = None) -> str:
    """Return that texts differ, what becomes of their labels, and the commands after which they are accepted again."""
    if fitted.model.facing(found, fitted.on_drift).unlike_gold:
        done = "so nothing is accepted and all of them are for review (--on-drift accept decides as if they did not)"
    else:
        done = "so confidence and promise may not hold for them"
    return "\n".join([f"{UNLIKE_GOLD}: {found.sentence}; {done}", *_remedy(fitted, ledger, folder, data)])


def _remedy(fitted: FittedRun, ledger: LedgerAddress, folder: RunFolder, data: object) -> list[str]:
    """Return how such texts get gold rows and a promise of their own; answers that were paid for are used again."""
    certificate = fitted.model.certificate
    rows = max(LEAST_GOLD, certificate.gold_rows if certificate else 0)
    table = str(data) if isinstance(data, str | Path) and data != STDIO else "TEXTS.csv"
    settings = ["--config", str(folder.path), "--ledger", without_password(str(ledger)), "--gold-column", "gold"]
    return [
        "to have labels of such texts accepted again, give them gold rows and a promise of their own:",
        f"  write the right labels of {rows} rows, drawn at random, into a column gold of {table}",
        f"  {shlex.join(['pcs', 'run', table, *settings, '--out', f'{folder.path}-new'])}",
    ]
