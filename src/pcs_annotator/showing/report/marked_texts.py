"""What is quoted from texts: how much of it can be used, and the texts with their passages marked."""

from collections.abc import Iterator, Sequence

from pcs_annotator.base.text import capital, counted
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.passages import EVEN, Passage
from pcs_annotator.judging.evaluate.passage_figures import FoundPassages, PassageFigures
from pcs_annotator.runs import certificate_text
from pcs_annotator.runs.certificate_text import at_least_found, promised, what_is_promised, without_gold
from pcs_annotator.runs.passage_run import PassageResult, probability
from pcs_annotator.runs.quotations import about_quotations
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import count, number, percent
from pcs_annotator.showing.highlights import Marked, legend, marked_text
from pcs_annotator.showing.markup import Markup, tag

MOST_TEXTS, AT_FIRST = 40, 5
MOST_CHARACTERS = 60_000  # of all texts that are shown
LONGEST = 2_000  # characters of one text
ROOM = 200  # characters around the passages of a long text
QUESTIONS_SHOWN = 8


def passages_verdict(result: PassageResult) -> tuple[str, list[b.Block]]:
    """Return how many passages can be used, and what stands below that."""
    certificate, what = result.learned.model.certificate, result.run.extraction.noun
    likely, accepted = _likely(result), result.counts.decisions.get("accept", 0)
    figures = result.learned.passages
    if certificate is not None and certificate.holds:
        verdict = f"{count(accepted)} {what} can be used"
        why = f"{capital(what_is_promised(certificate))}."
    else:
        verdict = f"{counted(likely, what.removesuffix('s'))}, without a promise"
        headline = without_gold(result.counts).headline if certificate is None else promised(certificate).headline
        why = f"{capital(headline)}."
    stamp = None if certificate is None else b.STAMPS[certificate_text.standing(certificate)]
    missed = at_least_found(figures, certificate) if figures and certificate else ""
    quoted = about_quotations(result.run.candidates, result.run.extraction)
    return verdict, [
        b.Group([stamp, b.text(why)], kind="why"),
        b.text(f"{capital(missed)}.") if missed else None,
        b.Group([*_tiles(result, likely)], kind="tiles"),
        b.text(b.name(result.config.task.instruction), kind="asked-for") if result.config.task.instruction else None,
        *_texts(result),
        b.note(f"{quoted}.") if quoted else None,
    ]


def _likely(result: PassageResult) -> int:
    return sum(len(result.chosen(row)) for row in result.of_text)


def _tiles(result: PassageResult, likely: int) -> Iterator[b.KeyFigure]:
    figures, what = result.learned.passages, result.run.extraction.noun
    if figures is None:
        yield b.KeyFigure(count(likely), what, "more probable than not")
    else:
        right = f"{percent(figures.weighed.precision, 1)} of those found are right"
        yield b.KeyFigure(percent(figures.weighed.recall, 1), f"of the {what} are found", right)
    settled = f", {count(result.counts.settled)} in gold texts" if result.counts.settled else ""
    of_all = f"of {counted(result.counts.rows, what.removesuffix('s'))}{settled}"
    yield b.KeyFigure(count(result.counts.to_review), "to review", of_all)
    marked = sum(some is not None for some in result.marked)
    yield b.KeyFigure(count(marked), "gold texts", f"of {counted(len(result.marked), 'text')}")


def passage_sections(result: PassageResult, prefix: str) -> list[b.Section]:
    """Return the texts with their passages, and how good these are on gold texts."""
    if result.learned.passages is None:
        return []
    return [b.section(f"{prefix}good", "How good", *_how_good(result.learned.passages))]


def _texts(result: PassageResult) -> Iterator[b.Block]:
    """Yield the texts with their passages, those with the most doubtful ones first, and what the marks mean."""
    items, texts = result.run.of_texts.dataset.items, result.of_text
    doubt = {row: min((_doubt(outcome) for _, outcome in some), default=1.0) for row, some in texts.items()}
    shown, room = list[Markup](), MOST_CHARACTERS
    for row in sorted(doubt, key=lambda row: (doubt[row], row))[:MOST_TEXTS]:
        start, end = _window(items[row].text, [passage for passage, _ in texts[row]])
        if (room := room - (end - start)) < 0:
            break
        shown.append(_text(result, row, start, end))
    if shown:
        yield legend(result.config.task.labels, ("accept", "review"))
        yield tag("div", *shown[:AT_FIRST], class_="marked-texts")
    if more := shown[AT_FIRST:]:
        yield b.Folded(f"{counted(len(more), 'more text')}", [tag("div", *more, class_="marked-texts")])
    if len(shown) < len(texts):
        which = f"those with the most doubtful {result.run.extraction.noun} first"
        yield b.note(f"{count(len(shown))} of {counted(len(items), 'text')}, {which}; passages.csv has all.")


def _doubt(outcome: Outcome) -> float:
    return abs(probability(outcome) - EVEN)


def _window(text: str, passages: Sequence[Passage]) -> tuple[int, int]:
    """Return the part of a text that its passages are in, from a word on and up to one."""
    start = max(min(passage.start for passage in passages) - ROOM, 0)
    end = min(start + LONGEST, max(passage.end for passage in passages) + ROOM, len(text))
    if start and (blank := text.find(" ", start, start + ROOM)) > 0:
        start = blank + 1
    if end < len(text) and (blank := text.rfind(" ", max(end - ROOM, start), end)) > 0:
        end = blank
    return start, end


def _text(result: PassageResult, row: int, start: int, end: int) -> Markup:
    item, shift = result.run.of_texts.dataset.items[row], start - 2 * (start > 0)  # for the dots at the beginning
    marked = [
        Marked(
            passage._replace(start=passage.start - shift, end=min(passage.end, end) - shift),
            outcome.confidence,
            "accept" if outcome.decision == "accept" else "review",
        )
        for passage, outcome in result.of_text[row]
        if passage.start < end and (outcome.decision == "accept" or probability(outcome) >= 0.1)
    ]
    words = f"{'… ' * (start > 0)}{item.text[start:end]}{' …' * (end < len(item.text))}"
    return tag("div", tag("small", item.id, class_="quiet"), marked_text(words, marked, result.config.task.labels))


def _how_good(figures: PassageFigures) -> Iterator[b.Block]:
    questions = figures.questions[:QUESTIONS_SHOWN]
    ways = [figures.weighed, *([figures.accepted] if figures.accepted else []), *questions, figures.quoted]
    columns = [b.Column("Chosen by"), *b.numbers("chosen", digits=0), *b.numbers("right", "found", "F1")]
    yield b.Table(columns=columns, rows=[_row(way) for way in ways], label="Ways to choose passages")
    area = "" if figures.auroc is None else number(figures.auroc)
    sure = f" Confidence tells right candidates from wrong ones with an AUROC of {area}." if area else ""
    yield b.note(
        f"On {counted(figures.texts, 'gold text')}, each judged by fits that did not see it. Right: the share of those "
        f"chosen; found: the share of gold passages that one of them means.{sure}"
    )


def _row(way: FoundPassages) -> b.Row:
    return [b.name(way.name), way.passages, way.precision, way.recall, way.f1]
