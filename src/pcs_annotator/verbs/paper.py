"""`pcs table`: results, confusion matrix and a methods paragraph, to paste into a paper."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from pcs_annotator.base.errors import ConfigError, GoldError, LedgerError, PcsWarning
from pcs_annotator.core.gold import UNLABELLED, gold_codes
from pcs_annotator.core.result_table import Content, Figure, ResultTable
from pcs_annotator.judging.evaluation.agreement import AgainstGold, Resampling
from pcs_annotator.judging.evaluation.agreement_tables import agreement_tables, coders_table, shown, tidy_table
from pcs_annotator.runs.certificate_text import promised
from pcs_annotator.runs.files.runs import atomic_path, check_ending, make_way, read_origin, refuse_existing
from pcs_annotator.runs.learn import counted_once
from pcs_annotator.runs.ledgers import asked_between, ledger_of
from pcs_annotator.runs.resolve_config import task_of
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing.formats import PRICE_UNKNOWN, counted, total_cost
from pcs_annotator.showing.result_tables import latex, to_csv, to_latex, to_markdown, without_intervals
from pcs_annotator.tables.workbook import Sheet, write_workbook
from pcs_annotator.verbs.evaluate import check_order

Format = Literal["markdown", "latex", "csv", "xlsx"]
ENDINGS: Mapping[str, Format] = {".md": "markdown", ".tex": "latex", ".csv": "csv", ".xlsx": "xlsx"}
CITATION = (
    "Perceived Confidence Score: Salimian et al., IEEE Transactions on Software Engineering; software: "
    "perceived-confidence, version {version}."
)
OTHER_SCRIPTS = "% has characters that pdfLaTeX may lack: compile with XeLaTeX or LuaLaTeX and a font that has them"
LAST_LATIN = 0x24F
MORE = {"Class AUROC": "auroc", "ECE of confidence": "ece_confidence"}
"""Figures of scores and confidence beside those of labels."""


class Paper(NamedTuple):
    """What a paper needs: tables, every figure in a row of its own, and the paragraph about methods."""

    tables: Sequence[ResultTable]
    figures: ResultTable
    methods: str
    shares: Sequence[ResultTable]


def paper_of(result: RunResult, order: Sequence[str] = ()) -> Paper:
    """Return the tables and the methods paragraph of a run.

    Args:
        result: The run.
        order: Its labels from the lowest to the highest, if they have an order that its settings do not say.

    Raises:
        GoldError: There are no figures, because there is too little gold.
    """
    learned = result.learned
    found = learned.against_gold
    if found is None:
        old = "an earlier version made them: pcs fit makes them again" if learned.figures else ""
        why = old or learned.no_figures or "there are too few gold rows"
        raise GoldError(f"{result.folder.path} has no figures of labels against gold: {why}")
    if order:
        check_order(order, found.labels)
        found = found.in_order(order, Resampling(result.config.learn.resamples, result.config.learn.seed))
    results, *others = agreement_tables(found)
    figures = tidy_table(found, learned.among_coders)
    for title, name in MORE.items() if learned.figures else ():  # so many folds may need more gold rows
        one = getattr(learned.figures[0], name)
        results = _plus(results, [title, Figure(one.value, one.interval), one.n])
        figures = _plus(figures, [name, "", "", one.value, *one.interval, one.n])
    if learned.among_coders is not None:
        others.append(coders_table(learned.among_coders))
    return Paper([results, *others], figures, methods_of(result), _shares(found))


def _plus(table: ResultTable, row: Sequence[Content]) -> ResultTable:
    return replace(table, rows=[*table.rows, row])


def _shares(found: AgainstGold) -> list[ResultTable]:
    """Return the confusion matrix as numbers: counts, shares of the gold label, and shares of the label."""
    lines = [*found.labels, "(no label)"][: len(found.table) if found.table[-1].any() else -1]
    gold, given = found.table.sum(axis=0), found.table.sum(axis=1, keepdims=True)
    kinds = {
        "counts": found.table,
        "share of gold": found.table / gold.clip(1),
        "share of label": found.table / given.clip(1),
    }
    return [
        ResultTable(
            name=name,
            title=name,
            columns=("label / gold", *found.labels),
            rows=[[label, *row] for label, row in zip(lines, values.tolist(), strict=False)],
        )
        for name, values in kinds.items()
    ]


def methods_of(result: RunResult) -> str:
    """Return what a reader of a paper needs to know about a run, as a paragraph."""
    return " ".join(_sentences(result))


def _sentences(result: RunResult) -> Iterator[str]:
    config, task, version = result.config, task_of(result.config), read_origin(result.folder).version
    models = config.ask.models
    yield (
        f"{counted(result.counts.rows, 'text')} ({result.dataset.name}) were labelled as {_listed(task.labels)} by "
        f"{counted(len(models), 'language model')} ({_listed(models)}) with perceived-confidence {version}, which "
        "computes the Perceived Confidence Score (Salimian et al., IEEE Transactions on Software Engineering)."
    )
    yield f"The models were asked {_when(result)}."
    yield f"The instruction was: “{' '.join(task.instruction.split())}”"
    if task.meanings:
        yield f"Labels were explained: {'; '.join(f'{label}: {text}' for label, text in task.meanings.items())}."
    relations = result.votes.relations
    rewriter = f"; rewrites by a model are of {config.relations.rewriter}" if config.relations.rewriter else ""
    draws = f", {config.ask.draws} times each" if config.ask.draws > 1 else ""
    ways = f"up to {counted(len(relations), 'way')} ({_listed(relations)})"
    yield f"Each text was asked about in {ways}{draws}{rewriter}."
    yield from _about_gold(result)
    yield from _about_promise(result)
    yield _about_cost(result)
    yield f"To cite: {CITATION.format(version=version)}"


def _when(result: RunResult) -> str:
    """Return the days of the first and the last call."""
    try:
        found = asked_between(ledger_of(result.folder, result.config))
    except LedgerError as error:
        warnings.warn(f"the days of the calls are not known: {error}", PcsWarning, stacklevel=2)
        found = None
    if found is None:
        return "on days that are not recorded"
    first, last = (datetime.fromtimestamp(time, UTC).date().isoformat() for time in found)
    shared = ", counting all calls in the ledger that this run shares" if result.config.ask.ledger else ""
    return f"{f'on {first}' if first == last else f'from {first} to {last}'}{shared}"


def _about_gold(result: RunResult) -> Iterator[str]:
    learned, facts = result.learned, result.facts
    codes = gold_codes(result.votes, facts.gold)
    known = codes != UNLABELLED
    once = known & counted_once(result.votes, codes, facts.texts, result.random_sample).distinct
    at_random = once if result.random_sample is None else once & result.random_sample
    assumed = at_random if result.assumed is None else at_random & result.assumed
    coders = learned.among_coders
    parts = {
        "came with the data and are assumed to be drawn at random": assumed,
        "were drawn at random": at_random & ~assumed,
        "were chosen otherwise": once & ~at_random,
        "repeat a text and were not counted again": known & ~once,
    }
    drawn = _listed([f"{rows.sum():,} {how}" for how, rows in parts.items() if rows.any()])
    if coders is not None:
        alpha = f" (Krippendorff's α {shown(coders.alpha['alpha'])})" if "alpha" in coders.alpha else ""
        yield (
            f"{counted(len(coders.names), 'coder')} ({_listed(coders.names)}) labelled rows independently; "
            f"{coders.rows:,} rows have labels of two coders or more{alpha}."
        )
    source = result.dataset.columns
    where = (
        "" if source.gold or not source.coders else ", the majority of the coders (rows on which they tie have none)"
    )
    yield f"{counted(int(known.sum()), 'row')} had a gold label{where}; {drawn}."
    folds = result.config.learn.folds
    how = learned.model.weights.diagnostics.optimiser or result.config.learn.optimiser
    yield (
        f"Weights ({how}) and calibration were learned from the gold rows, and all figures come from {folds}-fold "
        "cross-validation: every row was labelled by fits that had not seen its gold label."
    )


def _about_promise(result: RunResult) -> Iterator[str]:
    certificate, counts = result.learned.model.certificate, result.counts
    if certificate is None:
        return
    text = promised(certificate)
    yield _sentence(text.headline)
    if certificate.holds:
        promise = certificate.promise
        certainty = f", δ = {promise.delta:g}" if promise.kind == "error-among-accepted" else ""
        accepted = counts.decisions.get("accept", 0)
        yield (
            f"(α = {promise.max_error:g}{certainty}; {accepted:,} of {counts.rows:,} labels accepted, the others for "
            f"review.) {_sentence(text.details[0])}"
        )


def _about_cost(result: RunResult) -> str:
    cost = total_cost([bill.usd for bill in result.bills])
    cost = "of unknown price" if cost == PRICE_UNKNOWN else f"at a cost of {cost}"
    made = f"{counted(sum(bill.calls for bill in result.bills), 'call')} were made, {cost}"
    if others := sum(bill.calls for bill in result.paid_elsewhere):
        made += f", and {counted(others, 'answer')} came from calls of other runs that share the ledger"
    return f"{made}."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def format_of(name: str | None, out: Path | None) -> Format:
    """Return the format that was named, or that the ending of the file says; Markdown without either."""
    if name is not None:
        found: Format = next(one for one in get_args(Format) if one == name)
    elif out is None:
        found = "markdown"
    else:
        check_ending(out, tuple(ENDINGS))
        found = ENDINGS[out.suffix.lower()]
    if found == "xlsx" and out is None:
        raise ConfigError("a workbook is a file: name it with -o, such as -o table.xlsx")
    return found


def paper_text(paper: Paper, kind: Format) -> str:
    """Return the paper's parts as Markdown or LaTeX, or its figures as CSV."""
    if kind == "csv":
        return to_csv(paper.figures)
    if kind == "markdown":
        return "\n".join([*map(to_markdown, paper.tables), "### Methods", "", paper.methods, ""])
    parts = [
        *(to_latex(table, intervals=True) for table in paper.tables),
        rf"\paragraph{{Methods.}} {latex(paper.methods)}",
        "",
    ]
    text = "\n".join(parts)
    return (
        f"{OTHER_SCRIPTS}\n{text}" if any(ord(letter) > LAST_LATIN and letter not in "“”’" for letter in text) else text
    )


def write_paper(paper: Paper, kind: Format, out: Path, *, keep_earlier: bool = False) -> Path:
    """Write the parts into a file; one that exists is an error or, with `keep_earlier`, kept under a dated name."""
    refuse_existing(out, replace=keep_earlier)
    make_way(out)
    if kind == "xlsx":
        sheets = [_sheet(table) for table in (*paper.tables, *paper.shares, paper.figures)]
        write_workbook(out, [*sheets, Sheet(name="methods", header=["methods"], rows=[[paper.methods]])])
        return out
    with atomic_path(out) as temporary:
        temporary.write_text(paper_text(paper, kind), encoding="utf-8")
    return out


def _sheet(table: ResultTable) -> Sheet:
    header, rows = without_intervals(table)
    return Sheet(name=table.name, header=header, rows=rows)
