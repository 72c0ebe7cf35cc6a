"""What `pcs run` and `pcs label` show of a codebook: a line for each variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from pcs_annotator.base.text import counted
from pcs_annotator.core.outcome import Counts
from pcs_annotator.faces.cli import exit_codes, options, run_view
from pcs_annotator.runs.certificate_text import what_is_promised
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_result import Model
from pcs_annotator.runs.settings import Saving
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import count, percent, percent_interval
from pcs_annotator.tables.table_files import STDIO
from pcs_annotator.verbs import codebook
from pcs_annotator.verbs.label import Labelled

INTERVAL = "95\xa0% interval"
LabelledJson = Callable[[Labelled, Sequence[str]], dict[str, Any]]


def run_and_show(request: RunRequest) -> int:
    """Run every variable of a codebook, print what came out, and return the exit code."""
    with options.gathered_warnings() as notes:
        result = codebook.run_codebook(request)
    options.show(_run_json, _run_shown, result, notes)
    return max(exit_codes.exit_code(one.counts.unanswered, one.tally.failed) for one in result.results.values())


def _run_json(result: codebook.CodebookResult, notes: Sequence[str]) -> dict[str, Any]:
    parts = {name: run_view.run_json(one, ()) for name, one in result.results.items()}
    return {"folder": str(result.folder), "labels": str(result.labels), "variables": parts, "warnings": list(notes)}


def _run_shown(result: codebook.CodebookResult, notes: Sequence[str]) -> Iterator[b.Block]:
    results = result.results
    first = next(iter(results.values()))
    figures = {name: one.learned.figures[0].accuracy for name, one in results.items() if one.learned.figures}
    right = {
        name: (percent(one.value, 1), percent_interval(one.interval)[len(INTERVAL) + 1 :])
        for name, one in figures.items()
    }
    calls, known = (sum(getattr(one.tally, name) for one in results.values()) for name in ("calls", "from_ledger"))
    yield _table({name: (one.model, one.counts) for name, one in results.items()}, right)
    yield b.Answer(
        [
            ("labelled", f"{counted(first.counts.rows, 'row')}, {counted(len(result.variables), 'variable')}"),
            _use({name: one.model for name, one in results.items()}),
            *answer.look_at(notes),
            answer.cost(calls, known, ()),
            ("labels", str(result.labels)),
            ("reports", f"{first.folder.report}, and one in the folder of every other variable"),
            ("next", b.strong(f"pcs review {quote(str(first.folder.path))}")),
        ]
    )


def _table(judged: Mapping[str, tuple[Model, Counts]], right: Mapping[str, tuple[str, str]]) -> b.Table:
    names = (*(("right", INTERVAL) if right else ()), "accepted", "to review")
    rows: list[b.Row] = []
    for name, (_, counts) in judged.items():
        figures = right.get(name, ("unknown", "")) if right else ()
        rows.append([name, *figures, *(count(counts.decisions.get(one, 0)) for one in ("accept", "review"))])
    return b.Table(columns=[b.Column("variable"), *b.numbers(*names)], rows=rows)


def _use(models: Mapping[str, Model]) -> answer.Line:
    """Return what is promised about accepted labels, and of which variables nothing is."""
    certificates = {name: model.certificate for name, model in models.items()}
    holding = [one for one in certificates.values() if one is not None and one.holds]
    without = [name for name, one in certificates.items() if one is None or not one.holds]
    said = what_is_promised(holding[0]) if holding else "nothing is promised"
    return "use", f"{said}; no promise for {', '.join(without)}" if holding and without else said


def label_and_show(request: RunRequest, out: Path | str, saving: Saving, as_json: LabelledJson) -> int:
    """Label new texts with every variable of a codebook, print what came out, and return the exit code."""
    with options.gathered_warnings() as notes:
        found = codebook.label_codebook(request, out, saving)
    options.show(partial(_label_json, as_json), _label_shown, found, out, notes, stderr=out == STDIO)
    return max(exit_codes.exit_code(one.counts.unanswered, one.tally.failed) for one in found.values())


def _label_json(
    as_json: LabelledJson, found: Mapping[str, Labelled], out: Path | str, notes: Sequence[str]
) -> dict[str, Any]:
    parts = {name: as_json(one, ()) for name, one in found.items()}
    return {"out": str(out), "variables": parts, "warnings": list(notes)}


def _label_shown(found: Mapping[str, Labelled], out: Path | str, notes: Sequence[str]) -> Iterator[b.Block]:
    rows = next(iter(found.values())).counts.rows
    calls, known = (sum(getattr(one.tally, name) for one in found.values()) for name in ("calls", "from_ledger"))
    yield _table({name: (one.model, one.counts) for name, one in found.items()}, {})
    yield b.Answer(
        [
            ("labelled", counted(rows, "row")),
            _use({name: one.model for name, one in found.items()}),
            *answer.look_at(notes),
            answer.cost(calls, known, ()),
            *([] if out == STDIO else [("labels", str(out))]),
        ]
    )
