"""`pcs relations`: which relations there are, what one does to a text, how well they work, and what they add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pcs_annotator.core.result_table import Content, ResultTable
from pcs_annotator.core.variant import Variant
from pcs_annotator.faces.cli import options
from pcs_annotator.faces.cli.evaluate import splitting_options
from pcs_annotator.faces.cli.exit_codes import exit_code
from pcs_annotator.faces.cli.learned_view import print_notes
from pcs_annotator.faces.cli.result_view import ShortNames, print_rows, print_tables, room_for_names
from pcs_annotator.runs.resolve_config import read_settings
from pcs_annotator.studies import relation_value
from pcs_annotator.tables.table_files import Reading
from pcs_annotator.verbs import relations
from pcs_annotator.verbs.evaluate import Splitting

REWRITER = options.setting_option("rewriter")


@click.group("relations")
def command() -> None:
    """List relations, try one on a text, or measure them on a file."""


@command.command("list")
@options.CONFIG
@options.JSON
def list_(config: Path | None, to_json: bool) -> None:
    """List all relations: built in, from plug-ins, and your own."""
    known = relations.list_relations(read_settings(config, Path.cwd(), {}))
    options.show(relations_json, print_relations, known, to_json=to_json)


@command.command("try")
@click.argument("name")
@click.argument("text")
@REWRITER
@options.CONFIG
@options.JSON
def try_(name: str, text: str, rewriter: str | None, config: Path | None, to_json: bool) -> int:
    """Show how relation NAME rewrites TEXT, and the result of every check.

    NAME may be a combination: voice+synonym applies one after the other, "rule:voice|llm:voice" the first that applies.
    For a relation that changes the question, such as order, it shows how the question reads, with the task of pcs.toml.
    Exit code 1 if the relation does not apply to the text.
    """
    tried = relations.try_relation(name, text, read_settings(config, Path.cwd(), {"rewriter": rewriter}))
    options.show(tried_json, print_tried, tried, to_json=to_json)
    return exit_code(int(tried.variant.text is None))


@command.command()
@click.argument("file", type=options.PATH)
@options.list_option("--relations", "Relations; default: those of pcs.toml, or voice,double-negation,synonym.")
@REWRITER
@options.CONFIG
@options.reading_options
@options.TEXT_COLUMN
@options.ID_COLUMN
@click.option(
    "--run", "votes", type=options.PATH, help="Run folder or table of votes: also show how often answers changed."
)
@click.option("--ledger", metavar="ADDRESS", help="Keep paid rewrites here, so that none is paid for twice.")
@options.LIMIT
@click.option("-o", "--out", type=options.PATH, help="Write every rewrite here (CSV or Parquet).")
@options.KEEP_EARLIER
@options.JSON
def check(*, config: Path | None, to_json: bool, **given: Any) -> None:
    """Measure relations on the texts of FILE.

    Shows how many texts each one changes, why it does not change the others, and how fast it is.
    """
    settings = read_settings(config, Path.cwd(), options.take_settings(given))
    request = relations.CheckRequest(config=settings, **given)
    found = relations.check_relations(request)
    options.show(coverage_json, lambda found: print_coverage(found, request.out), found, to_json=to_json)


@command.command()
@click.argument("source", type=options.PATH, metavar="RUN_OR_VOTES")
@click.option(
    "--optimiser", default="", metavar="NAME", help="How to learn; default: naive-bayes, scaling for graded votes."
)
@click.option("--hard", is_flag=True, help="Use labels only, as if no model gave log-probabilities.")
@splitting_options
@click.option("--seed", default=0, show_default=True, metavar="N", help="Random seed for splits and resamples.")
@options.reading_options
@options.JSON
def value(*, source: Path, to_json: bool, **given: Any) -> None:
    """Show what each relation adds beside the original question, and what to keep; no model is called.

    RUN_OR_VOTES is a run folder or a table of votes, with gold labels (see pcs fit). Gains are in points of class AUROC
    on gold rows that the fit did not see, with 95 % intervals: per question, where the relation applies, and over all
    texts.
    """
    splitting = options.take(Splitting, given)
    given["reading"] = options.take(Reading, given)
    request = relation_value.ValueRequest(source=source, splitting=splitting, **given)
    with options.gathered_warnings() as notes:
        found = relation_value.value_of_source(request)
    options.show(values_json, print_values, found, notes, to_json=to_json)


NEEDS = {
    "rewriter": "--rewriter MODEL",
    "parser": "the extra \\[rules]",
    "wording": "--rewriter, once",
}
CAUSES_SHOWN = 3
GONE, NEW = "red strike", "green"


def relations_json(known: Sequence[relations.KnownRelation]) -> list[dict[str, Any]]:
    """Return the relations as plain values."""
    return [asdict(relation) for relation in known]


def print_relations(known: Sequence[relations.KnownRelation]) -> None:
    """Print one line per relation."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("relation", "changes", "version", "deterministic", "needs"):
        table.add_column(heading)
    for relation in known:
        needs = ", ".join(NEEDS[need] for need in relation.needs)
        missing = "" if relation.usable else ",\n[red]not installed[/]"
        deterministic = "yes" if relation.deterministic else "no"
        table.add_row(relation.name, relation.changes, relation.version, deterministic, needs + missing)
    console = Console(highlight=False)
    console.print(table)
    console.print(
        "\nA bare name such as [bold]voice[/] means llm:voice with a rewriter, else rule:voice.\n"
        "More orders and wordings have numbers: [bold]order:2[/], [bold]order:3[/], …, [bold]wording:2[/], ….\n"
        "Combine them: [bold]voice+synonym[/] (one after the other), "
        "[bold]rule:voice|llm:voice[/] (the first that applies)."
    )


def tried_json(tried: relations.TriedRelation) -> dict[str, Any]:
    """Return a variant, and the question if it changed, as plain values."""
    variant = tried.variant
    return {
        "relation": variant.relation,
        "status": variant.status,
        "source": variant.source,
        "text": variant.text,
        "refused": variant.refused,
        "reason": variant.reason,
        "edits": [edit._asdict() for edit in variant.edits],
        "checks": [verdict._asdict() for verdict in variant.checks],
        "question": tried.question or None,
    }


def print_tried(tried: relations.TriedRelation) -> None:
    """Print the changes of the text in colour, then every check, then the changes of the question."""
    console = Console(highlight=False, soft_wrap=True)
    _print_variant(tried.variant, console)
    if tried.question:
        put = Variant(relation="", status="changed", text=tried.question, source=tried.usual_question)
        example = " (an example; [task] in pcs.toml has yours)" if tried.example else ""
        console.print(Text(f"\nThe question{example}:\n", "bold"))
        console.print(difference(put, coloured=console.color_system is not None))


def _print_variant(variant: Variant, console: Console) -> None:
    colour = {"changed": "green", "original": "green", "rejected": "red"}.get(variant.status, "yellow")
    status = "text unchanged" if variant.status == "original" else variant.status.replace("_", " ")
    console.print(Text.assemble((variant.relation, "bold"), "  ", (status, colour)))
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
        console.print(
            Text.assemble(mark, f" {verdict.check:<12}", (verdict.detail, "dim" if verdict.passed else "red"))
        )


def difference(variant: Variant, *, coloured: bool) -> Text:
    """Return the source with deletions in red and insertions in green; in brackets without colours."""
    shown, done = Text(), 0
    for start, before, after in variant.edits:
        shown.append(variant.source[done:start])
        shown.append(before if coloured or not before else f"[-{before}-]", GONE)
        shown.append(after if coloured or not after else f"{{+{after}+}}", NEW)
        done = start + len(before)
    shown.append(variant.source[done:])
    return shown


def coverage_json(found: Mapping[str, relations.Coverage]) -> dict[str, Any]:
    """Return the figures of each relation."""
    return {name: _coverage_json(coverage) for name, coverage in found.items()}


def _coverage_json(coverage: relations.Coverage) -> dict[str, Any]:
    flips = coverage.flips
    return {
        "texts": coverage.texts,
        "changed": coverage.statuses["changed"],
        "not_applicable": coverage.statuses["not_applicable"],
        "rejected": coverage.statuses["rejected"],
        "per_second": round(coverage.per_second, 1),
        "causes": dict(coverage.causes.most_common()),
    } | ({} if flips is None else {"flips": {"pairs": flips.pairs, "changed": flips.changed, "rate": flips.rate}})


def print_coverage(found: Mapping[str, relations.Coverage], out: Path | None) -> None:
    """Print one line per relation, and why texts were not changed."""
    console = Console(highlight=False)
    columns = ["relation", "changed", "not applicable", "rejected", "texts/s"]
    flips_known = any(coverage.flips for coverage in found.values())
    names = ShortNames(found, room_for_names(console))
    rows: list[list[Content]] = []
    for name, coverage in found.items():
        statuses = coverage.statuses
        changed = "text unchanged" if statuses["original"] else _count(statuses["changed"], coverage.texts)
        others = (_count(statuses[status], coverage.texts) for status in ("not_applicable", "rejected"))
        rows.append([names(name), changed, *others, round(coverage.per_second)])
        if flips_known:
            flips = coverage.flips
            rows[-1].append(flips and _count(flips.changed, flips.pairs))
    columns += ["answers changed"] if flips_known else []
    print_rows(ResultTable(name="", title="", columns=columns, rows=rows), console)
    names.explain(console)
    for name, coverage in found.items():
        if coverage.causes:
            console.print(f"\n[bold]{name}[/], reasons for no rewrite:")
        for cause, count in coverage.causes.most_common(CAUSES_SHOWN):
            console.print(Text(f"  {count:>6,}  {cause}"))
    if out is not None:
        console.print(Text(f"\nAll rewrites are in {out}"))


def values_json(found: relation_value.ValuedRelations, notes: Sequence[str]) -> dict[str, Any]:
    """Return what relations add as plain values."""
    return {**relation_value.values_json(found), "warnings": list(notes)}


def print_values(found: relation_value.ValuedRelations, notes: Sequence[str]) -> None:
    """Print what each relation adds, then what to keep and what to drop."""
    console = Console(highlight=False)
    print_tables([found.table], console)
    for sentence in found.conclusions:
        console.print(Text(sentence))
    print_notes(notes, console)


def _count(count: int, total: int) -> str:
    share = f"{count / total:.0%}" if total else "–"
    return f"{count:,} ({share})"
