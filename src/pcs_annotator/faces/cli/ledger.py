"""`pcs ledger`: inspect, copy or clean up the record of paid calls."""

from dataclasses import asdict
from datetime import datetime

import click

from pcs_annotator.base.text import counted
from pcs_annotator.core.ledger_address import LedgerAddress, without_password
from pcs_annotator.faces.cli import options
from pcs_annotator.runs import ledgers
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import total_cost

LEDGER = click.argument("ledger", callback=options.ledger_address)


@click.group("ledger")
def command() -> None:
    """Inspect, copy or clean up the record of paid calls: `ledger.db`, or a PostgreSQL server."""


@command.command()
@LEDGER
@options.JSON
def size(ledger: LedgerAddress) -> None:
    """Show calls, tokens and cost per model."""
    with ledgers.existing_ledger(ledger) as opened:
        bills, paid, file_size = opened.sizes(), opened.bills(), opened.bytes_used()
    gone = sum(bill.calls for bill in paid) - sum(bill.calls for bill in bills)
    total = total_cost([bill.usd for bill in paid])
    options.show(
        lambda: {"bytes": file_size, "models": [*map(asdict, bills)], "paid": [*map(asdict, paid)]},
        lambda: [
            b.Table(columns=b.bill_columns(), rows=b.bill_rows(bills)),
            f"{without_password(ledger)}: {file_size / 1000:,.0f} kB",
            f"paid for, with {gone:,} calls whose answers are not in it: {total}" if gone else None,
        ],
    )


@command.command("import")
@LEDGER
@click.argument("other", callback=options.ledger_address)
@options.options_for("wait")
@options.JSON
def import_(ledger: LedgerAddress, other: LedgerAddress, wait: bool) -> None:
    """Copy all calls from the ledger OTHER into LEDGER.

    They are then not paid for again.
    """
    new = ledgers.import_ledger(ledger, other, wait=wait, say=options.say)
    options.tell({"new": new}, f"{new:,} new calls copied from {without_password(other)}")


@command.command()
@LEDGER
@click.option("--model", metavar="NAME", help="Only calls to this model, as named by `pcs ledger size`.")
@click.option("--before", type=click.DateTime(), metavar="DATE", help="Only calls before this date, as in 2025-01-31.")
@click.option("--yes", is_flag=True, help="Delete without asking for confirmation.")
@options.options_for("wait")
@options.JSON
def prune(ledger: LedgerAddress, model: str | None, before: datetime | None, yes: bool, wait: bool) -> None:
    """Delete calls; if needed again, they have to be paid for again."""
    if model is None and before is None:
        raise click.UsageError("say which calls to delete: --model, --before or both")
    if not yes and not click.confirm("Delete these calls permanently?", err=True):
        options.tell({"deleted": 0}, "nothing was deleted")
        return
    until = before.timestamp() if before else None
    deleted = ledgers.prune_ledger(ledger, model=model, before=until, wait=wait, say=options.say)
    options.tell({"deleted": deleted}, f"{counted(deleted, 'call')} deleted")
