"""`pcs evaluate`: methods on the same votes and splits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from pcs_annotator.base.errors import GoldError
from pcs_annotator.base.text import counted, series
from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.faces.cli import options
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.paths import VARIABLES
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import SHOWN, number, percent, signed
from pcs_annotator.showing.report.page import INTERVAL
from pcs_annotator.tables.source_files import Reading
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs import evaluate

METHODS_SHOWN = 5
COMPARING = "comparing methods on the gold rows"


@click.command("evaluate", cls=options.ManyOptions)
@click.argument("source", type=options.PATH)
@options.options_in(evaluate.EvaluateRequest)
@options.options_in(evaluate.Splitting)
@options.reading_options
@options.KEEP_EARLIER
@click.option(
    "--by", default="", metavar="COLUMN", help="Show instead figures for each group of a run's rows, or test each."
)
@click.option("--alt-test", is_flag=True, help="Test instead whether the model may replace the human coders.")
@click.option(
    "--epsilon",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="For --alt-test: how much worse than a coder the model may be: .2 for experts, .1 for crowds.",
)
@options.printing
def command(*, source: Path, by: str, alt_test: bool, epsilon: float, **choices: Any) -> None:
    """Is PCS better than simpler methods? All of them on the same votes and the same splits; no model is called.

    SOURCE is a table of votes with gold (see pcs fit), or a run folder, which then also gets evaluation-methods.json.
    For methods that these votes do not support, a note says what they would need.
    """
    if alt_test:
        options.show(_replacing_json, _replacing_shown, evaluate.may_replace(source, epsilon, by))
        return
    if by:
        with options.gathered_warnings("comparing groups") as notes:
            groups = evaluate.figures_of_groups(source, by)
        options.show(
            lambda: {"by": groups.by, "groups": [each._asdict() for each in groups.groups], "warnings": notes},
            lambda: [groups.table(), *b.warnings(notes)],
        )
        return
    fitted = evaluate.fitted_with(source)
    unasked = [name for name in ("optimiser", "folds", "seed") if fitted is not None and choices[name] is None]
    choices |= {name: getattr(fitted, name) for name in unasked}  # so that figures agree with those of the last fit
    choices |= {"splitting": options.take(evaluate.Splitting, choices), "reading": options.take(Reading, choices)}
    choices |= {"policy": options.take(OutputPolicy, choices), "source": source}
    request = options.take(evaluate.EvaluateRequest, choices)
    if source.is_dir() and (book := Book.open(source)).named:
        _show_variables(book, request)
        return
    with options.gathered_warnings(COMPARING) as notes:
        numbers = evaluate.evaluate_numbers(request)
        evaluated = None if numbers else evaluate.evaluate_source(request)
    if numbers:
        options.show(_numbers_json, _numbers_shown, numbers, notes)
    else:
        options.show(_evaluated_json, _evaluation_shown, evaluated, notes, details=_details)


def _numbers_json(numbers: evaluate.Numbers, notes: Sequence[str]) -> dict[str, Any]:
    methods = {name: {key: figure.to_dict() for key, figure in figures.items()} for name, figures in numbers[0].items()}
    return {"methods": methods, "warnings": list(notes), "files": [str(path) for path in numbers[2]]}


def _numbers_shown(numbers: evaluate.Numbers, notes: Sequence[str]) -> Iterator[b.Block]:
    yield replace(numbers[1], rows=numbers[1].rows[: METHODS_SHOWN + 1])
    (name, first), (other, second), *_ = numbers[0].items()
    verdict = (
        f"{name} is off by {first['error'].value:.3g} on average, and its 90 % interval covers "
        f"{percent(first['covered'].value, 1)} of rows; {other}, the best other, is off by {second['error'].value:.3g}"
    )
    yield b.Answer([("verdict", verdict), *answer.look_at(notes)])


def _show_variables(book: Book, request: evaluate.EvaluateRequest) -> None:
    if request.out is not None:
        evaluate.check_folder(request.out)

    problems = list[str]()

    def compared(folder: Path) -> evaluate.Evaluated | None:
        out = request.out and request.out / folder.relative_to(book.path / VARIABLES)
        try:
            return evaluate.evaluate_source(replace(request, source=folder, out=out))
        except GoldError as error:  # this variable has none, or too little
            problems.append(str(error))
            return None

    with options.gathered_warnings(COMPARING) as notes:
        results = book.each(compared)
    evaluated = {name: result for name, result in results.items() if result is not None}
    if not evaluated:
        raise GoldError(f"methods cannot be compared on any variable of {book.path}: {problems[0]}")
    without = [name for name in results if name not in evaluated]
    missing = f"{series(without)}: too little gold, no answers, or numbers: pcs evaluate with its own folder"
    kept = f"{next(iter(evaluated.values())).files[-1].name} in the folder of every variable"
    lines = [*answer.look_at([*([missing] if without else []), *notes]), ("files", kept)]
    parts = {name: _evaluated_json(result, ()) for name, result in evaluated.items()}
    options.show(
        lambda: {"variables": parts, "without_gold": without, "warnings": notes},
        lambda: [_variables_table(evaluated), b.Answer(lines)],
    )


def _variables_table(results: Mapping[str, evaluate.Evaluated]) -> b.Table:
    rows: list[b.Row] = []
    for name, result in results.items():
        first, *others = result.evaluation.methods
        low, high = (f"{100 * end:.0f}" for end in first.accuracy.interval.rounded(2))
        best = max(others, key=lambda other: other.accuracy.value, default=None)
        figures: b.Row = [first.accuracy.n, number(100 * first.accuracy.value, 1), f"{low}–{high}"]
        other: b.Row = ["", ""] if best is None else [b.name(best.method), number(100 * best.accuracy.value, 1)]
        rows.append([b.name(name), b.name(first.method), *figures, *other])
    columns = [b.Column("variable"), b.Column("method"), *b.numbers("gold rows", "right, %", INTERVAL)]
    return b.Table(columns=[*columns, b.Column("best other"), *b.numbers("right, %")], rows=rows)


def _replacing_json(replacing: evaluate.Replacing) -> dict[str, Any]:
    names, test, parts, rows_for = replacing
    values = test.to_dict()
    named = [{"name": name, **coder} for name, coder in zip(names, values["coders"], strict=True)]
    tested = {name: part and part.to_dict() for name, part in parts.items()}
    return {**values, "coders": named, "parts": tested, "rows_for": dict(rows_for), "rows_to_pass": test.rows_to_pass}


def _replacing_shown(replacing: evaluate.Replacing) -> list[b.Block]:
    """Return the alternative annotator test, for all rows and for parts of them, and how many rows tell more."""
    names, test, tested, rows_for = replacing
    table = ResultTable(
        name="replacing",
        title="May the model replace a coder? Share of rows on which each agrees at least as well with the others",
        columns=["coder left out", "model", "coder", "rows", "p", "may replace"],
        rows=[
            [name, coder.model, coder.coder, coder.rows, coder.p_value, "yes" if coder.may_replace else "no"]
            for name, coder in zip(names, test.coders, strict=True)
        ],
        notes=[test.sentence(names)],
        digits={"p": 3},
    )
    needed = ", ".join(f"± {width:g}: {rows:,}" for width, rows in rows_for.items())
    enough = "more would not help" if test.rows_to_pass is None else f"{test.rows_to_pass:,} of each coder"
    passing = f"Such rows to pass the test in four of five cases, if the model is as good as it seems: {enough}."
    parts = ResultTable(
        name="parts",
        title="The same for parts of the rows, all tested together",
        columns=["rows", "agrees as well", "coders it may replace"],
        rows=[[name, part and part.advantage, part and part.winning_rate] for name, part in tested.items()],
        notes=["– : too few rows.", f"Rows that two coders must label for an interval of κ or α of {needed}.", passing],
    )
    return [table, parts]


def _evaluated_json(evaluated: evaluate.Evaluated, notes: Sequence[str]) -> dict[str, Any]:
    return {
        **evaluated.evaluation.to_dict(),
        **{name: list(getattr(evaluated.votes, name)) for name in ("annotators", "relations", "labels")},
        "warnings": list(notes),
        "files": [str(path) for path in evaluated.files],
    }


def _evaluation_shown(evaluated: evaluate.Evaluated, notes: Sequence[str]) -> Iterator[b.Block]:
    first, *others = evaluated.evaluation.methods
    listed = sorted(others, key=lambda method: -method.accuracy.value)[:METHODS_SHOWN]
    columns = [b.Column("Method"), *b.numbers("calls per text", digits=1), *b.numbers("right, %", "95 % interval")]
    rows: list[b.Row] = [_accuracy_row(method) for method in (first, *listed)]
    yield b.Table(columns=[*columns, *b.numbers(f"{first.method} − it", "p (Holm)", digits=3)], rows=rows)
    more, files = counted(len(others) - len(listed), "more method"), evaluated.files
    lines: list[answer.Line] = [("verdict", _verdict(first, others)), *answer.look_at(notes)]
    if files:
        lines.append(("files", str(files[0]) if len(files) == 1 else f"{len(files)} files in {files[0].parent}"))
    yield b.Answer([*lines, ("more", f"--details: other figures, tests{f', {more}' if others[len(listed) :] else ''}")])


def _accuracy_row(method: Any) -> b.Row:
    low, high = method.accuracy.interval.rounded(3)
    calls, test = method.calls.total if method.calls else None, method.accuracy_behind
    ahead: b.Row = ["", ""] if test is None else [f"{signed(100 * test.difference, 1)} points", method.holm_accuracy]
    figures = [number(100 * method.accuracy.value, 1), f"{100 * low:.1f}–{100 * high:.1f}"]
    return [b.name(method.method), calls, *figures, *ahead]


def _verdict(first: Any, others: Sequence[Any]) -> str:
    apart = [method for method in others if method.holm_accuracy is not None and method.holm_accuracy < SHOWN]
    better = [method.method for method in apart if method.accuracy_behind.difference > 0]
    worse = [method.method for method in apart if method.accuracy_behind.difference < 0]
    rest = len(others) - len(apart)
    phrases = [f"right more often than {series(better)}"] if better else []
    phrases += [f"right less often than {series(worse)}"] if worse else []
    phrases += [f"no difference from {counted(rest, 'method')} can be shown"] if rest else []
    return f"{first.method} on {counted(first.accuracy.n, 'gold row')}: {'; '.join(phrases) or 'nothing to compare'}"


def _details(evaluated: evaluate.Evaluated, _notes: Sequence[str]) -> Iterator[b.Block]:
    *compared, against_gold, _by_label, _confusion = evaluated.tables
    supported = len(evaluated.evaluation.methods)  # the others are dashes, explained in the notes
    yield from (replace(table, rows=table.rows[:supported]) for table in compared)
    title = f"{evaluated.evaluation.methods[0].method}: {against_gold.title}"
    yield replace(against_gold, title=title, notes=against_gold.notes[2:])
