"""`pcs relations`: which rewrites there are, what one does to a text, how they fare on a file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from pcs_annotator.faces.cli.options import JSON, echo_json
from pcs_annotator.faces.cli.relations_view import (
    audit_json,
    coverage_json,
    print_audit,
    print_coverage,
    print_relations,
    print_variant,
    variant_json,
)
from pcs_annotator.pipeline.audit import audit_rewrites
from pcs_annotator.pipeline.relations import (
    CheckRequest,
    RelationChoice,
    check_relations,
    list_relations,
    try_relation,
)

EXIT_NOT_CHANGED = 1

CONFIG = click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    help="A pcs.toml with relations of your own; by default the one in the working folder.",
)
REWRITER = click.option("--rewriter", default="", metavar="MODEL", help="The model that rewrites, for llm: relations.")
FILE = click.argument("file", type=click.Path(path_type=Path))


@click.group("relations")
def command() -> None:
    """List rewrites, try one on a text, or measure them on a file."""


@command.command("list")
@CONFIG
@JSON
def list_(config: Path | None, to_json: bool) -> None:
    """List every relation: built in, from plug-ins, and your own."""
    relations = list_relations(RelationChoice(config=config))
    if to_json:
        echo_json([asdict(relation) for relation in relations])
    else:
        print_relations(relations)


@command.command("try")
@click.argument("name")
@click.argument("text")
@REWRITER
@CONFIG
@JSON
def try_(name: str, text: str, rewriter: str, config: Path | None, to_json: bool) -> int:
    """Show what relation NAME makes of TEXT, and what the checks say.

    NAME may be a chain: voice+synonym applies one after the other, "rule:voice|llm:voice" takes the first that applies.
    Exit code 1 when the text was not changed.
    """
    variant = try_relation(name, text, RelationChoice(rewriter=rewriter, config=config))
    if to_json:
        echo_json(variant_json(variant))
    else:
        print_variant(variant)
    return 0 if variant.text is not None else EXIT_NOT_CHANGED


@command.command()
@FILE
@click.option("--relations", "names", metavar="A,B", help="Which relations; by default voice,double-negation,synonym.")
@REWRITER
@CONFIG
@click.option("--text-column", help="Where the texts are; by default `text`, or the only column.")
@click.option("--id-column", help="Where their names are; by default `id`, or row numbers.")
@click.option(
    "--run",
    "votes",
    type=click.Path(path_type=Path),
    help="A run's folder or a table of votes: also show how often answers changed under each relation.",
)
@click.option(
    "--ledger", type=click.Path(path_type=Path), help="Keep paid rewrites here, and pay for none of them twice."
)
@click.option("--limit", type=click.IntRange(1), help="Take only the first so many texts.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write every variant here (CSV or Parquet).")
@JSON
def check(
    *,
    file: Path,
    names: str | None,
    rewriter: str,
    config: Path | None,
    ledger: Path | None,
    to_json: bool,
    **rest: object,
) -> None:
    """Measure relations on the texts of FILE: how many change, why others do not, how fast."""
    chosen = tuple(name.strip() for name in (names or "").split(",") if name.strip())
    request = CheckRequest(file=file, relations=chosen, **rest)  # type: ignore[arg-type]  # click checked the types
    found = check_relations(request, RelationChoice(rewriter=rewriter, config=config, ledger=ledger))
    if to_json:
        echo_json(coverage_json(found))
    else:
        print_coverage(found, request.out)


@command.command()
@FILE
@click.option("--relation", default="", help="The relation of all rows; by default the column `relation` says it.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Write the verdict on every row here (CSV or Parquet)."
)
@CONFIG
@JSON
def audit(file: Path, relation: str, out: Path | None, config: Path | None, to_json: bool) -> None:
    """Check rewrites that somebody else made: does each still mean the same?

    FILE has the columns original, rewrite and relation (voice, double-negation, …). With a column keeps_meaning (1 or
    0, judged by a person) it also says how often the checks agree.
    """
    audited = audit_rewrites(file, relation, RelationChoice(config=config), out)
    if to_json:
        echo_json(audit_json(audited))
    else:
        print_audit(audited, out)
