"""`pcs estimate --robust`: would another model, question or way of learning have changed the conclusion?"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.base.errors import ConfigError, UndefinedMetric
from pcs_annotator.base.text import counted, short_names
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.core.result_table import Figure, ResultTable
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Interval
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.passage_run import refuse_passages
from pcs_annotator.runs.sharing import expected_labels
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import number, percent
from pcs_annotator.showing.markup import Markup, tag
from pcs_annotator.showing.svg_plot import dot, round_scale, segment, short, words
from pcs_annotator.showing.to_html import document, header
from pcs_annotator.studies.estimating.answering import answer
from pcs_annotator.studies.estimating.answers import EstimateQuestion, plain
from pcs_annotator.studies.estimating.estimates_page import LINES_SHOWN, STYLES_OF_ESTIMATES
from pcs_annotator.studies.estimating.evidence import evidence_of

OPTIMISERS = ("uniform", "lr")
MOST_CHOICES = 200
_METHODS = ("corrected", "naive")
ASPECTS = ("models", "relations", "learning")
LEFT, RIGHT, TOP, BOTTOM, LINE = 190.0, 740.0, 16.0, 220.0, 18.0
_HOW_TO_READ = (
    "Each column is one way to analyse the same votes: dots are corrected estimates with 95 % intervals, rings what "
    "machine labels would give as if they were true, and the marks below say which models, relations and way of "
    "learning they are from. This run is in blue."
)


class Specification(NamedTuple):
    """A quantity under one choice."""

    parts: tuple[str, str, str]  # models, relations and optimiser in words, short where it is all of them
    corrected: Figure
    naive: Figure

    @property
    def choice(self) -> str:
        """All of the choice."""
        return " · ".join(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust:
    """A quantity under all choices."""

    name: str  # what is estimated
    # what the sign and significance are about: 0 for a difference or coefficient, one half for a share
    reference: float
    made: Specification  # the choice that the run made, first among the specifications
    specifications: Sequence[Specification]  # all of them
    left_out: int = 0  # choices under which it could not be estimated
    unit: float = 1.0  # what it is shown in: 100 for per cent and percentage points

    def shown(self, value: float) -> str:
        """Return a value as it is shown."""
        return number(self.unit * value, 1 if self.unit == 100 else 3)

    def flips(self, method: str) -> tuple[float, float]:
        """Return the share of choices with another sign, and with another conclusion, than the run's corrected one."""
        sign, conclusion = _side(self.made.corrected, self.reference)
        sides = [_side(getattr(choice, method), self.reference) for choice in self.specifications]
        signs = sum(choice != sign for choice, _ in sides) / len(sides)
        return signs, sum(choice != conclusion for _, choice in sides) / len(sides)

    @property
    def in_order(self) -> list[Specification]:
        """The specifications, smallest estimate first."""
        return sorted(self.specifications, key=lambda choice: choice.corrected.value)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        rates = {method: dict(zip(("sign", "conclusion"), self.flips(method), strict=True)) for method in _METHODS}
        listed = [
            {"choice": choice.choice, **{method: plain(getattr(choice, method)) for method in _METHODS}}
            for choice in self.specifications
        ]
        about = {"name": self.name, "reference": self.reference, "flips": rates}
        return {**about, "specifications": listed, "left_out": self.left_out}


def _side(figure: Figure, reference: float) -> tuple[bool, int]:
    """Return on which side of the reference a figure is, and what its interval says: below, above, or undecided."""
    low, high = _ends(figure)
    return figure.value > reference, (low > reference) - (high < reference)


def robust(path: Path, question: EstimateQuestion) -> list[Robust]:
    """Answer a question under every choice that the recorded votes allow; one result per quantity."""
    recorded = Run.open(path)
    refuse_passages(recorded, "estimates under every choice are of labels: leave --robust out")
    if recorded.sampled:
        raise ConfigError(f"{path} is the run of a large table: use a run of a random sample of it")
    votes, evidence = recorded.votes, evidence_of(recorded, question.probability or None)
    gold = gold_codes(votes, recorded.gold.labels)
    by_label: dict[str, list[Specification]] = {}
    left_out = 0
    short = dict(zip(votes.annotators, short_names(votes.annotators), strict=True))
    for part, optimiser in choices(votes, recorded.settings.optimiser):
        how = replace(recorded.settings, optimiser=optimiser)
        expected = expected_labels(part, gold, how, recorded.texts, recorded.shape)
        try:
            assert expected is not None  # the run itself could be learned from
            held_out = expected.held_out[evidence.sample.rows]
            used = replace(evidence, expected=expected.held_out, held_out=held_out, said=expected.said)
            answered = answer(used, question)
        except UndefinedMetric:
            left_out += 1
            continue
        models = (
            "all models" if part.annotators == votes.annotators else " + ".join(short[name] for name in part.annotators)
        )
        views = "all relations" if part.relations == votes.relations else " + ".join(part.relations)
        for line in answered.differences or answered.lines:  # a conclusion is about differences, if there are groups
            made = Specification((models, views, optimiser), line.corrected, line.naive)
            by_label.setdefault(line.title, []).append(made)
    tested = bool(question.formula or question.columns_of_groups)
    return [
        Robust(
            name=title,
            reference=0.0 if tested or question.values is not None else 0.5,
            made=listed[0],
            specifications=listed,
            left_out=left_out,
            unit=100.0 if answered.kind == "share" else 1.0,
        )
        for title, listed in by_label.items()
    ]


def choices(votes: Votes, optimiser: str) -> Iterator[tuple[Votes, str]]:
    """Yield all choices, the run's own first: votes of each model and of all, likewise relations; and how to learn."""
    annotators, relations, original = tuple(votes.annotators), tuple(votes.relations), votes.original
    panels = dict.fromkeys([annotators, *((name,) for name in annotators)])
    views = dict.fromkeys([relations, (original,), *((original, name) for name in relations if name != original)])
    optimisers = dict.fromkeys([optimiser, *OPTIMISERS])
    for who, which, how in islice(product(panels, views, optimisers), MOST_CHOICES):
        yield votes.select(annotators=who, relations=which), how


def robust_shown(results: Sequence[Robust]) -> Iterator[b.Block]:
    """Yield for every quantity how far other choices move it, and how often they change the conclusion."""
    yield b.Paragraph(robust_verdict(results), "title")
    columns = [b.Column(""), *b.numbers("this run", "all choices", "another conclusion", "naive: another")]
    rows: list[b.Row] = []
    for result in results[:LINES_SHOWN]:
        first, *_, last = (spec.corrected.value for spec in result.in_order)
        changed = (percent(result.flips(method)[1], 1) for method in _METHODS)
        ends = f"{result.shown(first)} to {result.shown(last)}"
        rows.append([b.name(result.name), result.shown(result.made.corrected.value), ends, *changed])
    yield b.Table(columns=columns, rows=rows)


def robust_verdict(results: Sequence[Robust]) -> str:
    """Return how many conclusions stay the same whatever is chosen."""
    steady, choices = sum(not result.flips("corrected")[1] for result in results), len(results[0].specifications)
    words = counted(len(results), "conclusion is", "conclusions are")
    return f"{steady} of {words} the same under all {counted(choices, 'choice')}"


def robust_lines(results: Sequence[Robust]) -> Iterator[tuple[str, b.Words]]:
    """Yield what the table is about, and where the rest is."""
    more = len(results) - LINES_SHOWN
    rest = f"; {counted(more, 'more quantity', 'more quantities')}: --details" if more > 0 else ""
    words = "choices: models, relations and way of learning; a conclusion is below, above or undecided"
    yield "how", b.Styled(f"{words}{rest}", "quiet")
    if results and results[0].left_out:
        yield "look at", b.Styled(_left_out(results[0]), "caution")


def robust_table(result: Robust) -> ResultTable:
    """Return a quantity under every choice, smallest first."""
    return ResultTable(
        name="robust",
        title=result.name,
        columns=["choice", "corrected", "naive (biased)"],
        rows=[
            [
                f"{choice.choice}{' (this run)' if choice is result.made else ''}",
                _scaled(choice.corrected, result.unit),
                _scaled(choice.naive, result.unit),
            ]
            for choice in result.in_order
        ],
        notes=robust_sentences(result),
        digits=dict.fromkeys(("corrected", "naive (biased)"), 1 if result.unit == 100 else 3),
    )


def _scaled(figure: Figure, unit: float) -> Figure:
    ends = figure.interval
    return Figure(unit * figure.value, ends and Interval(unit * ends.low, unit * ends.high))


def robust_sentences(result: Robust) -> list[str]:
    """Return how often another choice would have changed the conclusion."""
    values = [choice.corrected.value for choice in result.specifications]
    ends, made = (result.shown(min(values)), result.shown(max(values))), result.shown(result.made.corrected.value)
    words = [f"{counted(len(values), 'choice')}: from {ends[0]} to {ends[1]}; with the choices of this run, {made}."]
    for method, of in (("corrected", "choices"), ("naive", "choices with machine labels as if they were true")):
        sign, conclusion = (percent(share, 1) for share in result.flips(method))
        words.append(f"{sign} of {of} have another sign, {conclusion} another conclusion than this run.")
    return [*words, *([_left_out(result)] if result.left_out else [])]


def _left_out(result: Robust) -> str:
    return f"Under {counted(result.left_out, 'more choice')} it could not be estimated."


def robust_page(results: Sequence[Robust], title: str = "", data: str = "") -> str:
    """Return the page of quantities under all choices: a specification curve each."""
    sections = []
    for at, result in enumerate(results):
        values, conclusion, *_ = robust_sentences(result)
        region = {"class_": "scroll", "tabindex": "0", "role": "region", "aria_label": f"Curve of {result.name}"}
        curve = tag("div", specification_curve(result), **region)
        numbers = b.Folded("The numbers", b.results(robust_table(result)))
        verdict = b.Paragraph(conclusion, "verdict")
        sections.append(b.section(f"q{at}", result.name, verdict, b.text(values), curve, numbers))
    unit = ("per cent" if results[0].reference else "percentage points") if results[0].unit == 100 else ""
    asked = b.name(" · ".join(part for part in (title, data, unit) if part))
    top = header(robust_verdict(results), b.text(asked, kind="sub"), b.note(_HOW_TO_READ))
    return document(f"robust: {title or data}", top, sections, STYLES_OF_ESTIMATES)


def specification_curve(result: Robust) -> Markup:
    """Return the estimates in order, this run marked, above what each of them is made with."""
    listed = result.in_order
    ends = [end for choice in listed for end in (*_ends(choice.corrected), choice.naive.value)]
    low, high = round_scale([result.reference, *ends])
    room = high - low

    def at(value: float) -> float:
        return BOTTOM - (value - low) / room * (BOTTOM - TOP)

    places = [LEFT + (RIGHT - LEFT) * (at_aspect + 0.5) / len(listed) for at_aspect in range(len(listed))]
    marks = [mark for x, choice in zip(places, listed, strict=True) for mark in _estimate(x, choice, result, at)]
    scale = [words(result.shown(value), LEFT - 8, at(value) + 4, "tick end") for value in {low, result.reference, high}]
    zero = segment((LEFT, at(result.reference)), (RIGHT, at(result.reference)), "base")
    options = {(at_aspect, option) for choice in listed for at_aspect, option in enumerate(choice.parts)}
    height = BOTTOM + 14 + LINE * (len(options) + len(ASPECTS))
    about = [tag("title", f"Specification curve of {result.name}"), tag("desc", robust_sentences(result)[0])]
    parts = [*about, *scale, zero, *marks, *_choices(listed, places, result)]
    return tag("svg", *parts, class_="plot specifications", viewBox=f"0 0 {RIGHT + 12:g} {height:g}", role="img")


def _estimate(x: float, choice: Specification, result: Robust, at: Callable[[float], float]) -> Iterator[Markup]:
    low, high = _ends(choice.corrected)
    ours = choice is result.made
    if ours:
        yield segment((x, TOP - 8), (x, BOTTOM), "grid")
        yield words("this run", x, TOP - 6, "key middle")
    yield segment((x, at(low)), (x, at(high)), "reach c1" if ours else "base")
    title = f"{choice.choice}: {result.shown(choice.corrected.value)} [{result.shown(low)}, {result.shown(high)}]"
    naive = result.shown(choice.naive.value)
    yield dot((x, at(choice.naive.value)), "dot ring", f"{choice.choice}: {naive} with machine labels as if true")
    yield dot((x, at(choice.corrected.value)), "dot c1" if ours else "dot", title)


def _choices(listed: Sequence[Specification], places: Sequence[float], result: Robust) -> Iterator[Markup]:
    """Yield a line per option, with a mark where an estimate is made with it."""
    y = BOTTOM + 8
    for aspect, title in enumerate(ASPECTS):
        y += LINE
        yield words(title, 0, y + 4, "axis-title")
        for option in dict.fromkeys(choice.parts[aspect] for choice in result.specifications):
            y += LINE
            yield words(short(option), LEFT - 8, y + 4, "tick end")
            for x, choice in zip(places, listed, strict=True):
                if choice.parts[aspect] == option:
                    kind = "reach c1" if choice is result.made else "base"
                    yield segment((x, y - 5), (x, y + 5), kind)


def _ends(figure: Figure) -> Interval:
    return figure.interval or Interval(figure.value, figure.value)
