"""`pcs ledger`: see, copy or clean the record of paid calls."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from pcs_annotator.faces.cli.options import JSON, echo_json
from pcs_annotator.pipeline.ledgers import export_ledger, import_ledger, ledger_sizes, prune_ledger

LEDGER = click.argument("ledger", type=click.Path(path_type=Path))


@click.group("ledger")
def command() -> None:
    """See, copy or clean the record of paid calls (`ledger.db`)."""


@command.command()
@LEDGER
@JSON
def size(ledger: Path, to_json: bool) -> None:
    """Show calls, tokens and money per model."""
    sizes = ledger_sizes(ledger)
    if to_json:
        echo_json({"bytes": ledger.stat().st_size, "models": [asdict(one) for one in sizes]})
        return
    for one in sizes:
        money = "price unknown" if one.usd is None else f"${one.usd:.4f}"
        tokens = f"{one.input_tokens:,} tokens in, {one.output_tokens:,} out"
        click.echo(f"{one.model}  {one.purpose}: {one.calls:,} calls, {tokens}, {money}")
    click.echo(f"{ledger}: {ledger.stat().st_size / 1e6:.1f} MB")


@command.command()
@LEDGER
@click.argument("out", type=click.Path(path_type=Path))
@JSON
def export(ledger: Path, out: Path, to_json: bool) -> None:
    """Write every call to OUT, a CSV or Parquet file."""
    _tell(to_json, "written", export_ledger(ledger, out), f"calls written to {out}")


@command.command("import")
@LEDGER
@click.argument("other", type=click.Path(path_type=Path))
@JSON
def import_(ledger: Path, other: Path, to_json: bool) -> None:
    """Copy the calls of the ledger OTHER into LEDGER, so that they need not be paid again."""
    _tell(to_json, "new", import_ledger(ledger, other), f"new calls copied from {other}")


@command.command()
@LEDGER
@click.option("--model", help="Only calls of this model, as `pcs ledger size` names it.")
@click.option("--before", type=click.DateTime(), help="Only calls from before this day.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@JSON
def prune(ledger: Path, model: str | None, before: datetime | None, yes: bool, to_json: bool) -> None:
    """Delete calls; they have to be paid again if they are needed again."""
    if model is None and before is None:
        raise click.UsageError("say which calls: --model, --before or both")
    if not yes:
        click.confirm("Delete these calls for good?", abort=True)
    deleted = prune_ledger(ledger, model=model, before=before.timestamp() if before else None)
    _tell(to_json, "deleted", deleted, "calls deleted")


def _tell(to_json: bool, name: str, count: int, words: str) -> None:
    if to_json:
        echo_json({name: count})
    else:
        click.echo(f"{count:,} {words}")
