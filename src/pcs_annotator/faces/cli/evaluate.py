"""`pcs evaluate`: methods on the same votes and splits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from pcs_annotator.base.errors import GoldError
from pcs_annotator.base.text import counted, series
from pcs_annotator.core.result_table import ResultTable
from pcs_annotator.faces.cli import learned_view, options
from pcs_annotator.runs.codebook import CodebookFolder
from pcs_annotator.showing import answer
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import SHOWN, number, percent, signed
from pcs_annotator.showing.report.page import INTERVAL
from pcs_annotator.tables.formats import Reading
from pcs_annotator.tables.write import OutputPolicy
from pcs_annotator.verbs import evaluate

METHODS_SHOWN = 5


REWRITTEN = click.option(
    "--rewritten",
    multiple=True,
    metavar="RELATION",
    help="Relation rewritten by a model, at one call per text; not needed for run folders; repeatable.",
)


@click.command("evaluate", cls=options.ManyOptions)
@click.argument("source", type=options.PATH)
@click.option(
    "--optimiser",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="How PCS learns; the other methods are tested against it. Of a run, as --folds and --seed: its own.",
)
@options.list_option("--methods", "Methods, the first tested against the others; default: all.")
@options.options_in(evaluate.Splitting)
@REWRITTEN
@options.list_option("--order", "Labels from the lowest to the highest, for weighted κ and ordinal α.")
@options.reading_options
@click.option("-o", "--out", type=options.PATH, help="Folder for the tables as Markdown, CSV and LaTeX.")
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
def command(*, source: Path, by: str, alt_test: bool, epsilon: float, **given: Any) -> None:
    """Is PCS better than simpler methods? All of them on the same votes and the same splits; no model is called.

    SOURCE is a table of votes with gold (see pcs fit), or a run folder, which then also gets evaluation-methods.json.
    For methods that these votes do not support, a note says what they would need.
    """
    if alt_test:
        options.show(replacing_json, replacing_shown, evaluate.may_replace(source, epsilon, by))
        return
    if by:
        with options.gathered_warnings() as notes:
            groups = evaluate.figures_of_groups(source, by)
        options.show(
            lambda: {**groups.to_dict(), "warnings": notes},
            lambda: [groups.table(), *learned_view.notes_shown(notes)],
        )
        return
    given |= _as_fitted(source)
    splitting = options.take(evaluate.Splitting, given)
    given |= {"reading": options.take(Reading, given), "policy": options.take(OutputPolicy, given)}
    request = evaluate.EvaluateRequest(source=source, splitting=splitting, **given)
    if book := CodebookFolder.find(source):
        _show_variables(book, request)
        return
    with options.gathered_warnings() as notes:
        numbers = evaluate.evaluate_numbers(request)
        found = numbers or evaluate.evaluate_source(request)
    shown: Any = (numbers_json, numbers_shown) if numbers else (evaluated_json, evaluation_shown)
    options.show(*shown, found, notes, details=None if numbers else evaluation_details)


def _as_fitted(source: Path) -> dict[str, Any]:
    """Return how the last fit of a run learned, where nothing else was asked for, so that its figures agree."""
    settings, context = evaluate.fitted_with(source), click.get_current_context()
    unasked = ("optimiser", "folds", "seed") if settings is not None else ()
    usual = click.core.ParameterSource.DEFAULT
    return {name: getattr(settings, name) for name in unasked if context.get_parameter_source(name) is usual}


def numbers_json(found: evaluate.Numbers, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `numbers_shown` shows as plain values, and all intervals."""
    methods = {name: {key: one.to_dict() for key, one in figures.items()} for name, figures in found[0].items()}
    return {"methods": methods, "warnings": list(notes), "files": [str(path) for path in found[2]]}


def numbers_shown(found: evaluate.Numbers, notes: Sequence[str]) -> Iterator[b.Block]:
    """Yield how far numbers are off, and the method that comes nearest beside PCS."""
    yield replace(found[1], rows=found[1].rows[: METHODS_SHOWN + 1])
    (name, first), (other, second), *_ = found[0].items()
    verdict = (
        f"{name} is off by {first['error'].value:.3g} on average, and its 90 % interval covers "
        f"{percent(first['covered'].value, 1)} of rows; {other}, the best other, is off by {second['error'].value:.3g}"
    )
    yield b.Answer([("verdict", verdict), *answer.look_at(notes)])


def _show_variables(book: CodebookFolder, request: evaluate.EvaluateRequest) -> None:
    """Compare methods on every variable that has gold, and print the most accurate ones."""
    if request.out is not None:
        evaluate.check_folder(request.out)

    def compared(place: Path) -> evaluate.Evaluated | None:
        out = request.out and request.out / place.relative_to(book.path)
        try:
            return evaluate.evaluate_source(replace(request, source=place, out=out))
        except GoldError:  # this variable has none, or too little
            return None

    with options.gathered_warnings() as notes:
        found = book.each(compared)
    known = {name: one for name, one in found.items() if one is not None}
    if not known:
        raise GoldError(f"no variable of {book.path} has enough gold to compare methods: pcs review {book.path}")
    without = [name for name in found if name not in known]
    parts = {name: evaluated_json(one, ()) for name, one in known.items()}
    options.show(
        lambda: {"variables": parts, "without_gold": without, "warnings": notes},
        lambda: _compared_shown(known, without, notes),
    )


def _compared_shown(
    found: Mapping[str, evaluate.Evaluated], without: Sequence[str], notes: Sequence[str]
) -> Iterator[b.Block]:
    rows: list[b.Row] = []
    for name, one in found.items():
        first, *others = one.evaluation.methods
        low, high = (f"{100 * end:.0f}" for end in first.accuracy.interval.rounded(2))
        best = max(others, key=lambda other: other.accuracy.value, default=None)
        figures: b.Row = [first.accuracy.n, number(100 * first.accuracy.value, 1), f"{low}–{high}"]
        other: b.Row = ["", ""] if best is None else [b.name(best.method), number(100 * best.accuracy.value, 1)]
        rows.append([b.name(name), b.name(first.method), *figures, *other])
    columns = [b.Column("variable"), b.Column("method"), *b.numbers("gold rows", "right, %", INTERVAL)]
    yield b.Table(columns=[*columns, b.Column("best other"), *b.numbers("right, %")], rows=rows)
    missing = (
        [f"{series(without)}: too little gold, no answers, or numbers: pcs evaluate with its own folder"]
        if without
        else []
    )
    kept = next(iter(found.values())).files[-1].name
    yield b.Answer([*answer.look_at([*missing, *notes]), ("files", f"{kept} in the folder of every variable")])


def replacing_json(found: evaluate.Replacing) -> dict[str, Any]:
    """Return the alternative annotator test as plain values."""
    names, test, parts, rows_for = found
    values = test.to_dict()
    named = [{"name": name, **one} for name, one in zip(names, values["coders"], strict=True)]
    tested = {name: one and one.to_dict() for name, one in parts.items()}
    return {**values, "coders": named, "parts": tested, "rows_for": dict(rows_for), "rows_to_pass": test.rows_to_pass}


def replacing_shown(found: evaluate.Replacing) -> list[b.Block]:
    """Return the alternative annotator test, for all rows and for parts of them, and how many rows tell more."""
    names, test, tested, rows_for = found
    rows = [
        [name, one.model, one.coder, one.rows, one.p_value, "yes" if one.may_replace else "no"]
        for name, one in zip(names, test.coders, strict=True)
    ]
    table = ResultTable(
        name="replacing",
        title="May the model replace a coder? Share of rows on which each agrees at least as well with the others",
        columns=["coder left out", "model", "coder", "rows", "p", "may replace"],
        rows=rows,
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
        rows=[[name, one and one.advantage, one and one.winning_rate] for name, one in tested.items()],
        notes=["– : too few rows.", f"Rows that two coders must label for an interval of κ or α of {needed}.", passing],
    )
    return [table, parts]


def evaluated_json(found: evaluate.Evaluated, notes: Sequence[str]) -> dict[str, Any]:
    """Return everything that `evaluation_shown` shows as plain values."""
    return {
        **found.evaluation.to_dict(),
        "annotators": list(found.votes.annotators),
        "relations": list(found.votes.relations),
        "labels": list(found.votes.labels),
        "warnings": list(notes),
        "files": [str(path) for path in found.files],
    }


def evaluation_shown(found: evaluate.Evaluated, notes: Sequence[str]) -> Iterator[b.Block]:
    """Yield the most accurate methods, and whether the first is better or worse than the others."""
    first, *others = found.evaluation.methods
    listed = sorted(others, key=lambda one: -one.accuracy.value)[:METHODS_SHOWN]
    columns = [b.Column("Method"), *b.numbers("calls per text", digits=1), *b.numbers("right, %", "95 % interval")]
    rows: list[b.Row] = [_accuracy_row(one) for one in (first, *listed)]
    yield b.Table(columns=[*columns, *b.numbers(f"{first.method} − it", "p (Holm)", digits=3)], rows=rows)
    more, files = counted(len(others) - len(listed), "more method"), [*map(str, found.files)]
    several = f"{len(files)} files in {found.files[0].parent}" if files else ""
    yield b.Answer(
        [
            ("verdict", _verdict(first, others)),
            *answer.look_at(notes),
            *([("files", files[0] if len(files) == 1 else several)] if files else []),
            ("more", f"--details: other figures, tests{f', {more}' if others[len(listed) :] else ''}"),
        ]
    )


def _accuracy_row(one: Any) -> b.Row:
    low, high = one.accuracy.interval.rounded(3)
    test = one.accuracy_behind
    ahead = "" if test is None else f"{signed(100 * test.difference, 1)} points"
    return [
        b.name(one.method),
        one.calls.total if one.calls else None,
        number(100 * one.accuracy.value, 1),
        f"{100 * low:.1f}–{100 * high:.1f}",
        ahead,
        "" if test is None else one.holm_accuracy,
    ]


def _verdict(first: Any, others: Sequence[Any]) -> str:
    """Return which methods the first one is shown to be more or less accurate than."""
    told = [one for one in others if one.holm_accuracy is not None and one.holm_accuracy < SHOWN]
    better = [one.method for one in told if one.accuracy_behind.difference > 0]
    worse = [one.method for one in told if one.accuracy_behind.difference < 0]
    rest = len(others) - len(told)
    said = [f"right more often than {series(better)}"] if better else []
    said += [f"right less often than {series(worse)}"] if worse else []
    said += [f"no difference from {counted(rest, 'method')} can be shown"] if rest else []
    return f"{first.method} on {counted(first.accuracy.n, 'gold row')}: {'; '.join(said) or 'nothing to compare'}"


def evaluation_details(found: evaluate.Evaluated, _notes: Sequence[str]) -> Iterator[b.Block]:
    """Yield methods side by side, and the tests of the first against the others."""
    *compared, against_gold, _by_label, _confusion = found.tables
    known = len(found.evaluation.methods)  # the others are dashes, explained in the notes
    yield from (replace(table, rows=table.rows[:known]) for table in compared)
    title = f"{found.evaluation.methods[0].method}: {against_gold.title}"
    yield replace(against_gold, title=title, notes=against_gold.notes[2:])
