"""The report of a run: its sections, and where it is written; of several runs, a folder for a web server."""

import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from pcs_annotator.base.errors import PcsError, warn_user
from pcs_annotator.base.text import capital, counted, series
from pcs_annotator.core.outcome import Counts
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.sets import SetResult, WholeSets
from pcs_annotator.runs.book_result import BookResult
from pcs_annotator.runs.certificate_text import what_is_promised, words_of
from pcs_annotator.runs.passage_run import PassageResult
from pcs_annotator.runs.paths import place_of
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.answer import next_of_all
from pcs_annotator.showing.formats import count, percent, percent_interval
from pcs_annotator.showing.report import summary
from pcs_annotator.showing.report.marked_texts import passage_sections, passages_verdict
from pcs_annotator.showing.report.quality import how_good
from pcs_annotator.showing.report.questions import questions
from pcs_annotator.showing.report.rows import rows
from pcs_annotator.showing.report.view import View, view_of
from pcs_annotator.showing.svg_plot import Plot
from pcs_annotator.showing.to_html import document, header, html
from pcs_annotator.tables.files import check_ending, write_page
from pcs_annotator.tables.write import PAGES, STRICT, OutputPolicy


def write_report(result: BookResult, path: Path | None = None, policy: OutputPolicy = STRICT) -> Path:
    """Write the page of a run, by default into the run folder, and return its path."""
    if path is None or path.resolve() == result.report.resolve():
        write_page(result.report, page_of(result))
        return result.report
    check_ending(path, PAGES)
    return policy.write_page(path, page_of(result))


def report_or_warn(result: BookResult) -> None:
    """Write the page of a run whose labels are written already; what goes wrong is a warning and loses nothing."""
    try:
        write_report(result)
    except PcsError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        warn_user(
            f"there is no report, because of a bug in pcs ({type(error).__name__} in {Path(frame.filename).name}, line "
            f"{frame.lineno}): please report it. Labels and model are complete in {result.folder}"
        )


def page_of(result: BookResult) -> str:
    """Return the page of a run: of several variables, a table of them, and a section for each."""
    return render_all(result) if result.book.named else render(result.only)


def render(result: RunResult) -> str:
    """Return the page of a run with one variable; the same run gives the same page.

    Below the verdict are the rows, the evidence and the method; sections with nothing to say are left out.
    """
    view = view_of(result)
    verdict, first = summary.first_screen(view)
    method = [_promise(view), summary.cost(view.result), summary.settings(view)]
    sections = [*_evidence(view), b.section("method", "Method and settings", *method)]
    return document(view.data_name, header(verdict, *first, overline=summary.overline(view)), sections)


def render_all(result: BookResult) -> str:
    """Return the page of several variables."""
    each = {part: view_of(run, f"{slug(part)}-", len(result.results)) for part, run in result.results.items()}
    views, judged = [*each.values()], dict[str, Judged]({**result.results, **result.sets})
    table = variables_table(result.variables, judged, right_of(judged), {part: f"#{slug(part)}" for part in each})
    step = b.text("Next → ", b.Styled(next_of_all(result), "command"), kind="next")
    lead = b.Group([b.text(f"{capital(in_words(judged))}.")], kind="why")
    top = header(_title(result), lead, step, html(table), overline=summary.overline(views[0]))
    sections = [_variable(part, view) for part, view in each.items()]
    method = [summary.cost(views[0].result), summary.settings(views[0], task=False)]
    return document(views[0].data_name, top, [*sections, b.section("method", "Method and settings", *method)])


def _title(result: BookResult) -> str:
    """Return how many labels of all variables can be used."""
    variables, results = counted(len(result.variables), "variable"), result.results.values()
    certificates = [each.learned.model.certificate for each in results]
    if not any(certificate is not None and certificate.holds for certificate in certificates):
        return f"{variables} of {counted(len(next(iter(results)).votes), 'row')}, without a promise"
    accepted = sum(each.counts.decisions.get("accept", 0) for each in results)
    rows = sum(each.counts.rows for each in results)
    if all(isinstance(each, PassageResult) for each in results):
        each_noun = [each.run.extraction.noun for each in results if isinstance(each, PassageResult)]
        nouns = series(list(dict.fromkeys(each_noun)))
        return f"{count(accepted)} {nouns} of {variables} can be used"
    return f"{count(accepted)} of {counted(rows, 'label')} of {variables} can be used"


def _variable(part: str, view: View) -> b.Section:
    """Return the section of a variable: the verdict, and everything else folded."""
    result = view.result
    verdict, first = passages_verdict(result) if isinstance(result, PassageResult) else summary.first_screen(view)
    method = b.Folded("Method", [_promise(view), summary.variable_settings(view)])
    folded = [*(b.Folded(section.title, section.blocks) for section in _evidence(view)), method]
    shown = [_prefixed(block, view.prefix) for block in (*first, *folded)]
    return b.section(slug(part), f"{part}: {verdict}", *shown, menu=part)


def _prefixed(block: b.Block, prefix: str) -> b.Block:
    """Return a block whose elements have other ids than those of other variables."""
    if isinstance(block, b.Section | b.Group | b.Folded):
        block = block._replace(blocks=[_prefixed(inner, prefix) for inner in block.blocks])
    if isinstance(block, b.Section):
        return block._replace(name=f"{prefix}{block.name}")
    return replace(block, name=f"{prefix}{block.name}") if isinstance(block, Plot) else block


def _evidence(view: View) -> list[b.Section]:
    if isinstance(view.result, PassageResult):
        return passage_sections(view.result, view.prefix)
    return [section for section in (rows(view), how_good(view), questions(view)) if section is not None]


def _promise(view: View) -> b.Folded:
    learned = view.result.learned
    promise = summary.promise(learned.model, learned.drift, view.result.counts)
    return b.Folded("The promise in full", promise.blocks)


def slug(part: str) -> str:
    """Return the name of a part as the id of an element."""
    return place_of(part).replace("/", "-")


INTERVAL = "95\xa0% interval"


class Judged(Protocol):
    """Labels of a variable, in a run or of new texts; or all labels of a text together."""

    @property
    def model(self) -> Model | WholeSets:
        """What gave them."""

    @property
    def counts(self) -> Counts:
        """How many there are."""


def right_of(results: Mapping[str, Judged]) -> dict[str, tuple[str, str]]:
    """Return how many labels of every part, or whole sets, are right, with the interval, where that is known."""
    shown = {}
    for name, result in results.items():
        accuracy = None
        if isinstance(result, SetResult):
            accuracy = result.model.accuracy if any(result.confidence) else None
        elif isinstance(result, RunResult) and result.counts.labels and result.learned.figures:
            accuracy = result.learned.figures[0].accuracy
        if accuracy is not None:
            ends = percent_interval(accuracy.interval)[len(INTERVAL) + 1 :]
            shown[name] = (percent(accuracy.value, 1), ends)
    return shown


def variables_table(
    variables: Mapping[str, TaskSettings],
    judged: Mapping[str, Judged],
    right: Mapping[str, tuple[str, str]],
    links: Mapping[str, str] | None = None,
) -> b.Table:
    """Return a line for every part: its kind, how many labels are right and accepted, and whether that is promised."""
    rows: list[b.Row] = []
    for name, labels in judged.items():
        model, counts = labels.model, labels.counts
        accepted, review = counts.decisions.get("accept", 0), counts.to_review
        promise = "yes" if model.certificate is not None and model.certificate.holds else "no"
        figures = right.get(name, ("unknown", "")) if right else ()
        shown = b.Styled(name, "name", own=True, link=(links or {}).get(name, ""))
        kind = "whole set" if isinstance(labels, SetResult) else variables[name.partition("=")[0]].kind
        rows.append([shown, kind, *figures, percent(accepted, counts.rows), count(review), promise])
    titles = (*(("right", INTERVAL) if right else ()), "accepted", "to review")
    columns = [b.Column("variable"), b.Column("kind"), *b.numbers(*titles), b.Column("promise")]
    return b.Table(columns=columns, rows=rows)


def in_words(judged: Mapping[str, Judged]) -> str:
    """Return what is promised about accepted labels and whole sets, and of which variables nothing is."""
    certificates = {name: result.model.certificate for name, result in judged.items()}
    holding = {name: result for name, result in certificates.items() if result is not None and result.holds}
    sets = [name for name in holding if isinstance(judged[name], SetResult)]
    promises = [what_is_promised(result) for name, result in holding.items() if name not in sets][:1]
    if promises and sets:
        promises.append(f"likewise of whole sets of {series(sets)}")
    elif sets:
        promises.append(words_of(holding[sets[0]].promise, f"whole sets of {series(sets)}"))
    without = [name for name in certificates if name not in holding]
    if promises and without:
        promises.append(f"no promise for {', '.join(without)}")
    return "; ".join(promises) or "nothing is promised"
