"""`pcs paper`: what to paste into a paper."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from pcs_annotator.base.errors import GoldError
from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.judging.evaluate.agreement import Resampling
from pcs_annotator.judging.evaluate.as_tables import agreement_tables, coders_table, tidy_table
from pcs_annotator.judging.evaluate.scored import cell_of
from pcs_annotator.runs.recorded_votes import check_order
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing import result_tables as rt
from pcs_annotator.studies.methods_text import methods_of
from pcs_annotator.tables.files import check_ending
from pcs_annotator.tables.write import STRICT, OutputPolicy

Format = Literal["markdown", "latex", "csv"]
ENDINGS: Mapping[str, Format] = {".md": "markdown", ".tex": "latex", ".csv": "csv"}
OTHER_SCRIPTS = "% has characters that pdfLaTeX may lack: compile with XeLaTeX or LuaLaTeX and a font that has them"
LAST_LATIN = 0x24F
MORE = {"Class AUROC": "auroc", "ECE of confidence": "ece_confidence"}
"""Figures of scores and confidence beside those of labels."""


class Paper(NamedTuple):
    """What a paper needs: tables, every figure in a row of its own, and the paragraph about methods."""

    tables: Sequence[ResultTable]
    figures: ResultTable
    methods: str


def paper_of(result: RunResult, order: Sequence[str] = ()) -> Paper:
    """Return the tables and the methods paragraph of a run; `order` lists its labels, lowest first."""
    learned = result.learned
    agreement = learned.against_gold
    if agreement is None:
        why = learned.no_figures or "there are too few gold rows"
        raise GoldError(f"{result.folder.home} has no figures of labels against gold: {why}")
    if order:
        check_order(order, agreement.labels)
        agreement = agreement.in_order(order, Resampling(result.config.learn.resamples, result.config.learn.seed))
    results, *others = agreement_tables(agreement)
    figures = tidy_table(agreement, learned.among_coders)
    for title, name in MORE.items() if learned.figures else ():  # with many folds, there may be too few gold rows
        figure = learned.figures[0].figures[name]
        results = replace(results, rows=[*results.rows, [title, cell_of(figure), figure.n]])
        figures = replace(figures, rows=[*figures.rows, [name, "", "", figure.value, *figure.interval, figure.n]])
    if learned.among_coders is not None:
        others.append(coders_table(learned.among_coders))
    return Paper([results, *others], figures, methods_of(result))


def format_of(name: Format | None, out: Path | None) -> Format:
    """Return the format that was named, or that the ending of the file says; Markdown without either."""
    if name is None and out is not None:
        check_ending(out, tuple(ENDINGS))
    return name or ENDINGS.get("" if out is None else out.suffix.lower(), "markdown")


def paper_text(paper: Paper, kind: Format) -> str:
    """Return the paper's parts as Markdown or LaTeX, or its figures as CSV."""
    if kind == "csv":
        return rt.to_csv(paper.figures)
    if kind == "markdown":
        return "\n".join([*map(rt.to_markdown, paper.tables), "### Methods", "", paper.methods, ""])
    parts = [
        *(rt.to_latex(table, intervals=True) for table in paper.tables),
        rf"\paragraph{{Methods.}} {rt.latex(paper.methods)}",
        "",
    ]
    text = "\n".join(parts)
    return (
        f"{OTHER_SCRIPTS}\n{text}" if any(ord(letter) > LAST_LATIN and letter not in "“”’" for letter in text) else text
    )


def write_paper(paper: Paper, kind: Format, out: Path, policy: OutputPolicy = STRICT) -> Path:
    """Write the parts into a file, and return its path."""
    return policy.write_page(out, paper_text(paper, kind))
