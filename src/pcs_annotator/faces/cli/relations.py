"""`pcs relations`: which relations there are, what one does to a text, and what they add."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from pcs_annotator.base.text import counted
from pcs_annotator.faces.cli import options
from pcs_annotator.faces.cli.ending import exit_code
from pcs_annotator.runs.resolve_config import read_settings
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.answer import look_at
from pcs_annotator.showing.diff import clipped
from pcs_annotator.tables.source_files import Reading
from pcs_annotator.verbs import evaluate, relations


@click.group("relations")
def command() -> None:
    """List relations, try one on a text, or measure what they add."""


@command.command("list")
@options.CONFIG
@options.JSON
def list_(config: Path | None) -> None:
    """List all relations: built in, from plug-ins, and your own."""
    listed = relations.list_relations(read_settings(config, Path.cwd(), {}))
    options.show(lambda: [relation._asdict() for relation in listed], lambda: _relations_shown(listed))


@command.command("try")
@click.argument("name")
@click.argument("text")
@options.options_for("rewriter")
@options.CONFIG
@options.JSON
def try_(name: str, text: str, rewriter: str | None, config: Path | None) -> int:
    """Show how relation NAME rewrites TEXT, and the result of every check.

    NAME may be a combination: voice+synonym applies one after the other.
    For a relation that changes the question, such as order, it shows how the question reads, with the task of pcs.toml.
    Exit code 1 if the relation does not apply to the text.
    """
    tried = relations.try_relation(name, text, read_settings(config, Path.cwd(), {"rewriter": rewriter}))
    options.show(_tried_json, _tried_shown, tried)
    return exit_code(int(tried.variant.text is None))


@command.command()
@click.argument("source", type=options.PATH, metavar="RUN_OR_VOTES")
@click.option("--optimiser", default="auto", show_default=True, metavar="NAME", help="How to learn.")
@click.option("--hard", is_flag=True, help="Use labels only, as if no model gave log-probabilities.")
@options.options_in(evaluate.Splitting)
@options.options_in(evaluate.EvaluateRequest, "rewritten")
@options.reading_options
@options.DETAILS
@options.JSON
def value(*, source: Path, **choices: Any) -> None:
    """Which rewrites pay? What each relation adds beside the original question; no model is called.

    RUN_OR_VOTES is a run folder or a table of votes, with gold labels (see pcs fit). Gains are in points of class AUROC
    on gold rows that the fit did not see, with 95 % intervals: per question, where the relation applies, and over all
    texts.
    """
    splitting, reading = options.take(evaluate.Splitting, choices), options.take(Reading, choices)
    with options.gathered_warnings("fitting without each relation") as notes:
        recorded = evaluate.RecordedVotes.read(source, reading).plus(choices["rewritten"])
        if choices["hard"]:
            recorded = recorded._replace(votes=recorded.votes.hard())
        values = evaluate.value_of_votes(recorded, splitting, choices["optimiser"], source.name)
    options.show(
        lambda: {**values.to_dict(), "warnings": notes},
        lambda: _values_shown(values, notes),
        details=lambda: [values.table, *values.conclusions],
    )


def _values_shown(values: evaluate.RelationValues, notes: Sequence[str]) -> Iterator[b.Block]:
    yield replace(values.table, rows=values.table.rows[:RELATIONS_SHOWN], notes=())
    conclusions = dict.fromkeys([*values.conclusions[:2], values.conclusions[-1]])
    verdict = [("" if at else "verdict", clipped(said, LONGEST_CONCLUSION)) for at, said in enumerate(conclusions)]
    more = len(values.relations) - RELATIONS_SHOWN
    rest = f" and {counted(more, 'more relation')}" if more > 0 else ""
    yield b.Answer([*verdict, *look_at(notes), ("more", f"--details: how gains are computed{rest}")])


RELATIONS_SHOWN, LONGEST_CONCLUSION = 5, 140
NEEDS = {"rewriter": "--rewriter MODEL", "examples": "--examples, or gold rows"}
NAMES = (
    "A bare name such as voice or case means llm:voice or rule:case.",
    "More orders, wordings and sets of examples have numbers: order:2, order:3, …, wording:2, …, examples:2.",
    "Combine them: voice+synonym applies one after the other.",
)


def _relations_shown(listed: Sequence[relations.KnownRelation]) -> list[b.Block]:
    rows: list[b.Row] = []
    for relation in listed:
        needs, always = ", ".join(NEEDS[need] for need in relation.needs), "yes" if relation.deterministic else "no"
        rows.append([relation.name, relation.changes, relation.version, always, needs])
    titles = ("relation", "changes", "version", "deterministic", "needs")
    return [b.Table(columns=[b.Column(title) for title in titles], rows=rows), *NAMES]


def _tried_json(tried: relations.TriedRelation) -> dict[str, Any]:
    variant = tried.variant
    return {
        **{name: getattr(variant, name) for name in ("relation", "status", "source", "text", "refused", "reason")},
        "edits": [edit._asdict() for edit in variant.edits],
        "checks": [verdict._asdict() for verdict in variant.checks],
        "question": tried.question or None,
    }


def _tried_shown(tried: relations.TriedRelation) -> Iterator[b.Block]:
    variant = tried.variant
    status = "text unchanged" if variant.status == "original" else variant.status.replace("_", " ")
    kind = {"changed": "good", "original": "good", "rejected": "bad"}.get(variant.status, "warn")
    yield b.text(b.strong(variant.relation))
    yield b.Stamp(status, kind)
    yield b.Stamp(variant.reason, kind) if variant.reason else None
    if variant.edits:
        rewritten = (variant.text if variant.text is not None else variant.refused) or ""
        yield b.Change(variant.source, rewritten)
        yield b.text(b.strong("→ "), rewritten)
    for check in variant.checks:
        mark, kind = ("✓", "good") if check.passed else ("✗", "bad")
        yield b.Stamp(f"{mark} {check.check:<12}{check.detail}", kind)
    if tried.question:
        example = " (an example; [task] in pcs.toml has yours)" if tried.example else ""
        yield b.Paragraph(f"The question{example}:", "title")
        yield b.Change(tried.usual_question, tried.question)
