"""What commands show of a codebook: a line for each variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import counted
from pcs_annotator.faces.cli import exit_codes, options, run_view
from pcs_annotator.runs.codebook import CodebookFolder
from pcs_annotator.runs.gold import FromPeople
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Saving
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.report.index import in_words, right_of, variables_table
from pcs_annotator.tables.table_files import STDIO
from pcs_annotator.verbs import codebook
from pcs_annotator.verbs.label import Labelled

LabelledJson = Callable[[Labelled, Sequence[str]], dict[str, Any]]


def run_and_show(request: RunRequest) -> int:
    """Run every variable of a codebook, print what came out, and return the exit code."""
    return _show(lambda: codebook.run_codebook(request))


def fit_and_show(book: CodebookFolder, changes: Mapping[str, Any], people: FromPeople, **how: Any) -> int:
    """Learn again from the votes on every variable, print what came out, and return the exit code."""
    if people.gold is not None:
        one = next(iter(book.parts.values()))
        raise ConfigError(
            f"--gold is about one variable: name its folder, such as pcs fit {one} --gold {people.gold}; for several, "
            "add columns called like the variables to the data, and repeat pcs run"
        )
    return _show(lambda: codebook.fit_codebook(book, changes, people=people, **how))


def report_and_show(book: CodebookFolder, out: Path | None, *, replace: bool) -> None:
    """Write the reports of all variables and the page that leads to them, and print both."""
    _show(lambda: codebook.report_codebook(book, out, replace=replace))


def _show(work: Callable[[], codebook.CodebookResult]) -> int:
    with options.gathered_warnings() as notes:
        result = work()
    options.show(_run_json, _run_shown, result, notes)
    return max(exit_codes.exit_code(one.counts.unanswered, one.tally.failed) for one in result.results.values())


def _run_json(result: codebook.CodebookResult, notes: Sequence[str]) -> dict[str, Any]:
    parts = {name: run_view.run_json(one, ()) for name, one in result.results.items()}
    files = {"labels": str(result.labels), "report": str(result.report)}
    return {"folder": str(result.folder), **files, "variables": parts, "warnings": list(notes)}


def _run_shown(result: codebook.CodebookResult, notes: Sequence[str]) -> Iterator[b.Block]:
    results = result.results
    first = next(iter(results.values()))
    judged = {name: (one.learned.model, one.counts) for name, one in results.items()}
    calls, known = (sum(getattr(one.tally, name) for one in results.values()) for name in ("calls", "from_ledger"))
    yield variables_table(result.variables, judged, right_of(results))
    yield b.Answer(
        [
            ("labelled", f"{counted(first.counts.rows, 'row')}, {counted(len(result.variables), 'variable')}"),
            ("use", in_words({name: model for name, (model, _) in judged.items()})),
            *answer.look_at(notes),
            *([answer.cost(calls, known, ())] if calls or known else []),
            ("labels", str(result.labels)),
            ("report", f"{result.report}, which leads to one for every variable"),
            ("next", b.strong(f"pcs review {quote(str(result.folder))}")),
        ]
    )


def label_and_show(request: RunRequest, out: Path | str, saving: Saving, as_json: LabelledJson) -> int:
    """Label new texts with every variable of a codebook, print what came out, and return the exit code."""
    with options.gathered_warnings() as notes:
        found = codebook.label_codebook(request, out, saving)
    book = CodebookFolder.find(request.folder)
    assert book is not None
    shown = partial(_label_shown, book)
    options.show(partial(_label_json, as_json), shown, found, out, notes, stderr=out == STDIO)
    return max(exit_codes.exit_code(one.counts.unanswered, one.tally.failed) for one in found.values())


def _label_json(
    as_json: LabelledJson, found: Mapping[str, Labelled], out: Path | str, notes: Sequence[str]
) -> dict[str, Any]:
    parts = {name: as_json(one, ()) for name, one in found.items()}
    return {"out": str(out), "variables": parts, "warnings": list(notes)}


def _label_shown(
    book: CodebookFolder, found: Mapping[str, Labelled], out: Path | str, notes: Sequence[str]
) -> Iterator[b.Block]:
    rows = next(iter(found.values())).counts.rows
    calls, known = (sum(getattr(one.tally, name) for one in found.values()) for name in ("calls", "from_ledger"))
    yield variables_table(book.variables, {name: (one.model, one.counts) for name, one in found.items()}, {})
    yield b.Answer(
        [
            ("labelled", counted(rows, "row")),
            ("use", in_words({name: one.model for name, one in found.items()})),
            *answer.look_at(notes),
            answer.cost(calls, known, ()),
            *([] if out == STDIO else [("labels", str(out))]),
        ]
    )
