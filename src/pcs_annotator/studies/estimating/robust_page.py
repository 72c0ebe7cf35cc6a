"""Whether another choice would change the conclusion: a short answer, tables, and a page with specification curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pcs_annotator.base.text import counted
from pcs_annotator.core.result_table import Figure, ResultTable
from pcs_annotator.core.weights import Interval
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import number, percent
from pcs_annotator.showing.markup import Markup, tag
from pcs_annotator.showing.report.document import document, header
from pcs_annotator.showing.svg_plot import dot, segment, short
from pcs_annotator.studies.estimating.page import LINES_SHOWN, STYLES_OF_ESTIMATES
from pcs_annotator.studies.estimating.robust import Robust, Specification
from pcs_annotator.tables.files import check_ending, write_page

ASPECTS = ("models", "relations", "learning")
LEFT, RIGHT, TOP, BOTTOM, LINE = 190.0, 740.0, 16.0, 220.0, 18.0
_HOW_TO_READ = (
    "Each column is one way to analyse the same votes: dots are corrected estimates with 95 % intervals, and the marks "
    "below say which models, relations and way of learning they are from. This run is in blue."
)


def robust_shown(found: Sequence[Robust]) -> Iterator[b.Block]:
    """Yield for every quantity how far other choices move it, and how often they change the conclusion."""
    steady, choices = sum(not one.flips("corrected")[1] for one in found), len(found[0].specifications)
    said = counted(len(found), "conclusion is", "conclusions are")
    yield b.Paragraph(f"{steady} of {said} the same under all {counted(choices, 'choice')}", "title")
    columns = [b.Column(""), *b.numbers("this run", "all choices", "another conclusion", "naive: another")]
    yield b.Table(columns=columns, rows=[*map(_short_row, found[:LINES_SHOWN])])


def _short_row(one: Robust) -> b.Row:
    values = [spec.corrected.value for spec in one.specifications]
    changed = (percent(one.flips(method)[1], 1) for method in ("corrected", "naive"))
    ends = f"{number(min(values), 3)} to {number(max(values), 3)}"
    return [b.name(one.name), number(one.made.corrected.value, 3), ends, *changed]


def robust_lines(found: Sequence[Robust]) -> Iterator[tuple[str, b.Words]]:
    """Yield what the table is about, and where the rest is."""
    more = len(found) - LINES_SHOWN
    rest = f"; {counted(more, 'more quantity', 'more quantities')}: --details" if more > 0 else ""
    said = "choices: models, relations and way of learning; a conclusion is below, above or undecided"
    yield "how", b.Styled(f"{said}{rest}", "quiet")
    if found and found[0].left_out:
        yield "look at", b.Styled(_left_out(found[0]), "caution")


def robust_table(found: Robust) -> ResultTable:
    """Return a quantity under every choice, smallest first."""
    return ResultTable(
        name="robust",
        title=found.name,
        columns=["choice", "corrected", "naive (biased)"],
        rows=[[_named(one, found), one.corrected, one.naive] for one in _in_order(found)],
        notes=robust_sentences(found),
        digits={"corrected": 3, "naive (biased)": 3},
    )


def robust_sentences(found: Robust) -> list[str]:
    """Return how often another choice would have changed the conclusion."""
    values = [one.corrected.value for one in found.specifications]
    ends, made = (number(min(values), 3), number(max(values), 3)), number(found.made.corrected.value, 3)
    said = [f"{counted(len(values), 'choice')}: from {ends[0]} to {ends[1]}; with the choices of this run, {made}."]
    for method, of in (("corrected", "choices"), ("naive", "choices with machine labels as if they were true")):
        sign, conclusion = (percent(share, 1) for share in found.flips(method))
        said.append(f"{sign} of {of} have another sign, {conclusion} another conclusion than this run.")
    return [*said, *([_left_out(found)] if found.left_out else [])]


def _left_out(found: Robust) -> str:
    return f"Under {counted(found.left_out, 'more choice')} it could not be estimated."


def robust_page(found: Sequence[Robust], title: str = "", data: str = "") -> str:
    """Return the page of quantities under all choices: a specification curve each."""
    sections = []
    for place, one in enumerate(found):
        said = robust_sentences(one)
        numbers = b.Folded("The numbers", b.results(robust_table(one)))
        curve = tag("div", specification_curve(one), class_="scroll", tabindex="0", role="region", aria_label=one.name)
        sections.append(
            b.section(f"q{place}", one.name, b.Paragraph(said[1], "verdict"), b.text(said[0]), curve, numbers)
        )
    asked = b.name(" · ".join(part for part in (title, data) if part))
    top = header("Would another choice change the conclusion?", b.text(asked, kind="sub"), b.note(_HOW_TO_READ))
    return document(f"robust: {title or data}", top, sections, STYLES_OF_ESTIMATES)


def write_robust(found: Sequence[Robust], path: Path, title: str = "", data: str = "") -> None:
    """Write specification curves as a page."""
    check_ending(path, (".html", ".htm"))
    write_page(path, robust_page(found, title, data))


def specification_curve(found: Robust) -> Markup:
    """Return the estimates in order, this run marked, above what each of them is made with."""
    listed = _in_order(found)
    ends = [end for one in listed for end in _ends(one.corrected)]
    low, high = min(found.reference, *ends), max(found.reference, *ends)
    room = (high - low) or 1.0

    def at(value: float) -> float:
        return BOTTOM - (value - low) / room * (BOTTOM - TOP)

    places = [LEFT + (RIGHT - LEFT) * (place + 0.5) / len(listed) for place in range(len(listed))]
    marks = [mark for x, one in zip(places, listed, strict=True) for mark in _estimate(x, one, found, at)]
    scale = [_words(number(value, 2), LEFT - 8, at(value) + 4, "tick end") for value in {low, found.reference, high}]
    zero = segment((LEFT, at(found.reference)), (RIGHT, at(found.reference)), "ideal")
    choices = [*_choices(listed, places, found)]
    height = BOTTOM + 14 + LINE * (len({*_options(listed)}) + len(ASPECTS))
    values = robust_sentences(found)[0]
    return tag(
        "svg",
        tag("title", f"Specification curve of {found.name}"),
        tag("desc", values),
        *scale,
        zero,
        *marks,
        *choices,
        class_="plot specifications",
        viewBox=f"0 0 {RIGHT + 12:g} {height:g}",
        role="img",
    )


def _estimate(x: float, one: Specification, found: Robust, at: Callable[[float], float]) -> Iterator[Markup]:
    low, high = _ends(one.corrected)
    ours = one is found.made
    if ours:
        yield segment((x, TOP - 8), (x, BOTTOM), "grid")
        yield _words("this run", x, TOP - 6, "key middle")
    yield segment((x, at(low)), (x, at(high)), "reach c1" if ours else "base")
    said = f"{one.choice}: {number(one.corrected.value, 3)} [{number(low, 3)}, {number(high, 3)}]"
    yield dot((x, at(one.corrected.value)), "dot c1" if ours else "dot", said)


def _choices(listed: Sequence[Specification], places: Sequence[float], found: Robust) -> Iterator[Markup]:
    """Yield a line per option, with a mark where an estimate is made with it."""
    y = BOTTOM + 8
    for aspect, title in enumerate(ASPECTS):
        y += LINE
        yield _words(title, 0, y + 4, "axis-title")
        for option in dict.fromkeys(one.parts[aspect] for one in found.specifications):
            y += LINE
            yield _words(short(option), LEFT - 8, y + 4, "tick end")
            for x, one in zip(places, listed, strict=True):
                if one.parts[aspect] == option:
                    kind = "reach c1" if one is found.made else "base"
                    yield segment((x, y - 5), (x, y + 5), kind)


def _options(listed: Sequence[Specification]) -> Iterator[tuple[int, str]]:
    yield from ((place, option) for one in listed for place, option in enumerate(one.parts))


def _in_order(found: Robust) -> list[Specification]:
    return sorted(found.specifications, key=lambda one: one.corrected.value)


def _named(one: Specification, found: Robust) -> str:
    return f"{one.choice} (this run)" if one is found.made else one.choice


def _ends(figure: Figure) -> Interval:
    return figure.interval or Interval(figure.value, figure.value)


def _words(text: str, x: float, y: float, kind: str) -> Markup:
    return tag("text", text, x=f"{x:g}", y=f"{y:g}", class_=kind)
