"""All variables of a codebook side by side, in a terminal and on the page that leads to their reports."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from pcs_annotator.base.text import counted
from pcs_annotator.core.outcome import Counts
from pcs_annotator.runs.certificate_text import what_is_promised
from pcs_annotator.runs.run_result import Model, RunResult
from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import count, percent, percent_interval
from pcs_annotator.showing.to_html import document, header
from pcs_annotator.tables.files import check_ending, write_page

INTERVAL = "95\xa0% interval"


class Judged(Protocol):
    """Labels of a part of a codebook: a run, or new texts."""

    @property
    def model(self) -> Model:
        """What gave them."""

    @property
    def counts(self) -> Counts:
        """How many there are."""


OURS = b"several variables \xc2\xb7 perceived-confidence"


def write_index(
    results: Mapping[str, RunResult],
    variables: Mapping[str, TaskSettings],
    path: Path,
    *,
    own: bool = True,
    replace: bool = False,
) -> Path:
    """Write the page that leads to the report of every variable; `own` if `path` is in the codebook's folder."""
    check_ending(path, (".html", ".htm"))
    reports = {name: os.path.relpath(one.folder.report, path.parent) for name, one in results.items()}
    links = {name: quote(Path(place).as_posix()) for name, place in reports.items()}
    table = variables_table(variables, results, right_of(results), links)
    rows = counted(next(iter(results.values())).counts.rows, "row")
    data = next(iter(results.values())).dataset.name
    top = header(
        f"{counted(len(variables), 'variable')} of {rows}",
        b.text(in_words(results)),
        overline=("perceived-confidence · reports of a codebook · ", b.name(data)),
    )
    page = document(f"{data}, several variables", top, [b.section("variables", "Variables", table)])
    write_page(path, page, None if own else OURS, replace=replace)
    return path


def right_of(results: Mapping[str, RunResult]) -> dict[str, tuple[str, str]]:
    """Return how many labels of every part are right, with the interval, where that is known."""
    known = {name: one.learned.figures[0].accuracy for name, one in results.items() if one.learned.figures}
    return {
        name: (percent(one.value, 1), percent_interval(one.interval)[len(INTERVAL) + 1 :])
        for name, one in known.items()
    }


def variables_table(
    variables: Mapping[str, TaskSettings],
    judged: Mapping[str, Judged],
    right: Mapping[str, tuple[str, str]],
    links: Mapping[str, str] | None = None,
) -> b.Table:
    """Return a line for every part: its kind, how many labels are right and accepted, and whether that is promised."""
    rows: list[b.Row] = []
    for name, one in judged.items():
        model, counts = one.model, one.counts
        accepted, review = (counts.decisions.get(what, 0) for what in ("accept", "review"))
        promise = "yes" if model.certificate is not None and model.certificate.holds else "no"
        figures = right.get(name, ("unknown", "")) if right else ()
        shown = b.Styled(name, "name", own=True, link=(links or {}).get(name, ""))
        kind = variables[name.partition("=")[0]].kind
        rows.append([shown, kind, *figures, percent(accepted, counts.rows), count(review), promise])
    titles = (*(("right", INTERVAL) if right else ()), "accepted", "to review")
    columns = [b.Column("variable"), b.Column("kind"), *b.numbers(*titles), b.Column("promise")]
    return b.Table(columns=columns, rows=rows)


def in_words(judged: Mapping[str, Judged]) -> str:
    """Return what is promised about accepted labels, and of which variables nothing is."""
    certificates = {name: one.model.certificate for name, one in judged.items()}
    holding = [one for one in certificates.values() if one is not None and one.holds]
    without = [name for name, one in certificates.items() if one is None or not one.holds]
    said = what_is_promised(holding[0]) if holding else "nothing is promised"
    return f"{said}; no promise for {', '.join(without)}" if holding and without else said
