"""`pcs estimate` for all variables of a run: shares of all labels, and means of scales and numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.runs.book import YES, Book
from pcs_annotator.studies.estimating.answering import estimate_any, estimate_run
from pcs_annotator.studies.estimating.answers import Estimated, EstimateQuestion, Line, adjusted


def estimate_all(source: object, question: EstimateQuestion) -> dict[str, Estimated]:
    """Answer a question about a table or a variable, with the name `""`, or about all variables of a run.

    Those have `shares` of all labels, then `means` of scales and numbers, if there are any.
    """
    is_table = question.is_about_table or not isinstance(source, str | Path) or Path(source).is_file()
    book = None if is_table else Book.open(Path(str(source)))
    if book is None or not book.named:
        return {"": estimate_any(source, question)}
    if question.of or question.values or question.formula:
        first = next(iter(book.parts.values())).home
        raise ConfigError(f"--of, --values and --formula are about one variable: name its folder, such as {first}")
    estimates: dict[str, list[Estimated]] = {"share": [], "mean": []}
    missing = []
    for name, task in book.variables.items():
        for part in book.parts_of(name):
            many = task.kind == "many"
            try:
                shares = estimate_run(book.parts[part].home, replace(question, of=(YES,)) if many else question)
                estimates[shares.kind].append(_named(shares, part if many or shares.kind == "mean" else "", name))
                if task.kind == "scale":
                    means = estimate_run(book.parts[part].home, replace(question, values=numbers_of(task.labels)))
                    estimates["mean"].append(_named(means, name, name))
            except GoldError as error:
                missing.append(f"{part} is not estimated: {error}")
    if not any(estimates.values()):
        raise GoldError(f"no variable of {book.path} can be estimated: {missing[0]}")
    return {
        f"{kind}s": _joined(some, [] if kind == "mean" else missing, question.p_adjust)
        for kind, some in estimates.items()
        if some
    }


def numbers_of(labels: Sequence[str]) -> dict[str, float]:
    """Return the number of every step of a scale: what its label says or, unless all are numbers, its place from 1."""
    try:
        return {label: float(label) for label in labels}
    except ValueError:
        return {label: float(number) for number, label in enumerate(labels, 1)}


def _named(estimated: Estimated, whole: str, variable: str) -> Estimated:
    def named(line: Line) -> Line:
        return line._replace(name=whole or f"{variable}={line.name}")

    lines, differences = (list(map(named, some)) for some in (estimated.lines, estimated.differences))
    return replace(estimated, lines=lines, differences=differences)


def _joined(each: Sequence[Estimated], notes: Sequence[str], adjust: str) -> Estimated:
    first = each[0]
    return replace(
        first,
        lines=[line for estimated in each for line in estimated.lines],
        differences=adjusted([line for estimated in each for line in estimated.differences], adjust),
        missing=list(dict.fromkeys(group for estimated in each for group in estimated.missing)),
        notes=[*dict.fromkeys(note for estimated in each for note in estimated.notes), *notes],
        title="Share of the texts that have a label" if first.kind == "share" else "Means of scales and numbers",
    )


def files_for(estimates: Iterable[str], out: Path | None) -> list[Path]:
    """Return a file for each table, if one is named: that one and, for means, one beside it."""
    return [out.with_stem(f"{out.stem}-{name}") if at else out for at, name in enumerate(estimates)] if out else []
