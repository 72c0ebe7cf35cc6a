"""`pcs relations`: which rewrites there are, what one does to a text, how they fare on a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pcs_annotator.core.variant import Variant
from pcs_annotator.faces.cli.exit_codes import exit_code
from pcs_annotator.faces.cli.options import JSON, echo_json
from pcs_annotator.pipeline.relations import (
    CheckRequest,
    Coverage,
    KnownRelation,
    RelationChoice,
    check_relations,
    list_relations,
    try_relation,
)
from pcs_annotator.pipeline.rewrite_audit import RewriteAudit, audit_rewrites

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
    return exit_code(int(variant.text is None))


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


NEEDS = {"rewriter": "a model: --rewriter", "parser": "the extra \\[rules]"}
CAUSES_SHOWN = 3
GONE, NEW = "red strike", "green"


def print_relations(relations: Sequence[KnownRelation]) -> None:
    """Print one line per relation."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("relation", "version", "same every time", "needs"):
        table.add_column(heading)
    for relation in relations:
        needs = ", ".join(NEEDS[need] for need in relation.needs)
        missing = "" if relation.usable else " [red](not installed)[/]"
        table.add_row(relation.name, relation.version, "yes" if relation.deterministic else "no", needs + missing)
    console = Console(highlight=False)
    console.print(table)
    console.print(
        "\nA bare name such as [bold]voice[/] means llm:voice with a rewriter and rule:voice without.\n"
        "Combine them: [bold]voice+synonym[/] (one after the other), "
        "[bold]rule:voice|llm:voice[/] (the first that applies)."
    )


def variant_json(variant: Variant) -> dict[str, Any]:
    """Return everything that `print_variant` shows as plain values."""
    return {
        "relation": variant.relation,
        "status": variant.status,
        "source": variant.source,
        "text": variant.text,
        "refused": variant.refused,
        "reason": variant.reason,
        "edits": [edit._asdict() for edit in variant.edits],
        "checks": [verdict._asdict() for verdict in variant.checks],
    }


def print_variant(variant: Variant) -> None:
    """Print the change in colour, then every check."""
    console = Console(highlight=False, soft_wrap=True)
    colour = {"changed": "green", "original": "green", "rejected": "red"}.get(variant.status, "yellow")
    console.print(Text.assemble((variant.relation, "bold"), "  ", (variant.status.replace("_", " "), colour)))
    if variant.reason:
        console.print(Text(variant.reason, colour))
    if variant.edits:
        console.print(Text("\n") + difference(variant, coloured=console.color_system is not None))
        rewritten = variant.text if variant.text is not None else variant.refused
        console.print(Text.assemble(("\n→ ", "bold"), rewritten or ""))
    if variant.checks:
        console.print()
    for verdict in variant.checks:
        mark = ("✓", "green") if verdict.passed else ("✗", "red")
        console.print(Text.assemble(mark, f" {verdict.check:<12}", (verdict.detail, "red")))


def difference(variant: Variant, *, coloured: bool) -> Text:
    """Return the source with what went struck through in red and what came in green; in brackets without colours."""
    shown, done = Text(), 0
    for start, before, after in variant.edits:
        shown.append(variant.source[done:start])
        shown.append(before if coloured or not before else f"[-{before}-]", GONE)
        shown.append(after if coloured or not after else f"{{+{after}+}}", NEW)
        done = start + len(before)
    shown.append(variant.source[done:])
    return shown


def coverage_json(found: Mapping[str, Coverage]) -> dict[str, Any]:
    """Return the figures of each relation."""
    return {name: _coverage_json(coverage) for name, coverage in found.items()}


def _coverage_json(coverage: Coverage) -> dict[str, Any]:
    flips = coverage.flips
    return {
        "texts": coverage.texts,
        "changed": coverage.changed,
        "not_applicable": coverage.not_applicable,
        "rejected": coverage.rejected,
        "per_second": round(coverage.per_second, 1),
        "causes": dict(coverage.causes),
    } | ({} if flips is None else {"flips": {"pairs": flips.pairs, "changed": flips.changed, "rate": flips.rate}})


def print_coverage(found: Mapping[str, Coverage], out: Path | None) -> None:
    """Print a line per relation, and why texts were not changed."""
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("relation")
    headings = ["changed", "not applicable", "rejected", "texts/s"]
    flips_known = any(coverage.flips for coverage in found.values())
    for heading in [*headings, "answers changed"] if flips_known else headings:
        table.add_column(heading, justify="right")
    for name, coverage in found.items():
        cells = [
            _count(coverage.changed, coverage.texts),
            _count(coverage.not_applicable, coverage.texts),
            _count(coverage.rejected, coverage.texts),
            f"{coverage.per_second:,.0f}",
        ]
        if flips_known:
            flips = coverage.flips
            cells.append("–" if flips is None else _count(flips.changed, flips.pairs))
        table.add_row(name, *cells)
    console.print(table)
    for name, coverage in found.items():
        if coverage.causes:
            console.print(f"\n[bold]{name}[/], why not:")
        for cause, count in list(coverage.causes.items())[:CAUSES_SHOWN]:
            console.print(Text(f"  {count:>6,}  {cause}"))
    if out is not None:
        console.print(Text(f"\nEvery variant is in {out}"))


def audit_json(audited: RewriteAudit) -> dict[str, Any]:
    """Return the figures of an audit."""
    agreement = audited.agreement
    return {
        "rows": len(audited.rows),
        "kept": audited.count("kept"),
        "unchanged": audited.count("unchanged"),
        "rejected": audited.count("rejected"),
        "by_check": dict(audited.by_check),
    } | ({} if agreement is None else {"agreement": agreement._asdict()})


def print_audit(audited: RewriteAudit, out: Path | None) -> None:
    """Print how many rewrites stand, and which checks failed."""
    console = Console(highlight=False)
    rows = len(audited.rows)
    for status in ("kept", "unchanged", "rejected"):
        console.print(f"{status:<10} {_count(audited.count(status), rows)}")
    for check, count in audited.by_check.items():
        console.print(f"  {count:>6,}  {check}")
    agreement = audited.agreement
    if agreement is not None:
        console.print(
            f"\nAgainst the judgements in keeps_meaning: of {agreement.bad:,} rewrites that changed the meaning, "
            f"{_count(agreement.caught, agreement.bad)} are rejected; "
            f"of {agreement.good:,} that kept it, {_count(agreement.wronged, agreement.good)}."
        )
    if out is not None:
        console.print(Text(f"\nEvery verdict is in {out}"))


def _count(count: int, total: int) -> str:
    share = f"{count / total:.0%}" if total else "–"
    return f"{count:,} ({share})"
