"""Charts of gold rows that fits did not see, for the page; and as SVG pictures, also of experiments, to save."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from pcs_annotator.base.errors import ConfigError, GoldError, UndefinedMetric
from pcs_annotator.base.text import counted
from pcs_annotator.core.arrays import Integers
from pcs_annotator.core.result_table import Curve, Pair
from pcs_annotator.judging.evaluate.agreement import AgainstGold
from pcs_annotator.judging.evaluate.held_out_figures import Curves
from pcs_annotator.judging.metrics.figures import ReliabilityBin
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import interval, number, percent
from pcs_annotator.showing.markup import Markup, joined, tag
from pcs_annotator.showing.svg_plot import Axes, Axis, Plot, dot, nice_ticks, path, segment, short
from pcs_annotator.tables.files import check_ending, write_page

MOST_LISTED = 10
MIN_ROWS = 10  # the risk axis fits the errors among at least this many rows; among fewer, one wrong label makes a spike
WIDE = 560.0
TENTHS = tuple(index / 10 for index in range(1, 11))
RELIABILITY = Axes(Axis(title="confidence or score"), Axis(title="share of correct labels"))
COVERAGE = Axis(title="coverage: share of rows, most confident first", percent=True)
ROC = Axes(Axis(title="false positive rate"), Axis(title="true positive rate"))


def risk(curves: Curves, certificate: Certificate | None) -> b.Group:
    """Return how many labels are wrong if only the most confident ones are kept."""
    columns = [b.Column("Most confident"), *b.numbers("rows", "wrong"), b.Column("95 %", "number quiet")]
    rows: list[b.Row] = []
    for share in TENTHS:
        coverage, wrong, low, high = _at(curves, share)
        ends = f"{percent(low, 1)} to {percent(high, 1)}"
        rows.append([percent(coverage, 1), round(coverage * curves.rows), percent(wrong, 1), ends])
    return b.titled(
        "How many labels are wrong, if you keep the most confident ones?",
        risk_chart(curves, certificate),
        None if curves.risk.risk[-1] > 0 else b.note("No held-out label was wrong."),
        b.Folded("The numbers", [b.Table(columns=columns, rows=rows, kind="narrow")]),
    )


def calibration(curves: Curves) -> b.Group:
    """Return whether the confidence can be believed."""
    rows: list[b.Row] = [
        [name, group.confidence, group.accuracy, interval(group.interval), group.rows]
        for name, bins in (("confidence", curves.calibrated), ("raw PCS", curves.raw))
        for group in bins
    ]
    columns = [b.Column("Measure"), *b.numbers("mean", "correct", "95 %", "n")]
    numbers = b.Folded("The numbers", [b.Table(columns=columns, rows=rows)])
    return b.titled("Does the confidence match the share of right labels?", reliability_diagram(curves), numbers)


def separation(curves: Curves) -> b.Folded:
    """Return how well each label is told from the others, by its AUROC; the rarest labels are folded away."""
    low = max(0.0, min(roc.auroc.interval.low for roc in curves.roc) - 0.02)
    axis = b.Column(f"{number(low)} to 1", "chart axis")
    columns = [b.Column("Label"), *b.numbers("AUROC"), axis, b.Column("95 %", "number quiet"), *b.numbers("n")]
    rows: list[b.Row] = []
    for roc in curves.roc:
        value, ends, n = roc.auroc
        rows.append([b.name(roc.label), value, b.Spot(value, ends, low, 1.0), interval(ends), n])
    rest = rows[MOST_LISTED:]
    rarer = counted(len(rest), "rarer label")
    ranking = [
        b.Table(columns=columns, rows=rows[:MOST_LISTED], label="AUROC per label"),
        b.Folded(rarer, [b.Table(columns=columns, rows=rest, label=rarer)]) if rest else None,
        b.note("Each label against all others; 0.5 is chance, 1 is perfect. The class AUROC is their mean."),
    ]
    return b.Folded("ROC, and class AUROC per label", [b.Group([roc_chart(curves), b.Group(ranking)], kind="pair")])


def reliability_diagram(curves: Curves) -> Plot:
    """Return the share of correct labels by confidence, if there is one, and by raw score."""
    least, most = (end(group.rows for group in (*curves.raw, *curves.calibrated)) for end in (min, max))
    rows = f"{least}" if least == most else f"{least} to {most}"
    parts = [segment(RELIABILITY.at(0, 0), RELIABILITY.at(1, 1), "ideal")]
    sentences: dict[str, list[str]] = {}
    for colour, measure, bins in (("c2", "score", curves.raw), ("c1", "confidence", curves.calibrated)):
        sentences[measure] = [_bin_text(group, measure) for group in bins]
        for group, tooltip in zip(bins, sentences[measure], strict=True):
            heights = (group.interval.low, group.interval.high, group.accuracy)
            low, high, middle = (RELIABILITY.at(group.confidence, height) for height in heights)
            parts += [segment(low, high, f"reach {colour}"), dot(middle, f"dot {colour}", tooltip)]
    return Plot(
        name="reliability",
        title="Reliability diagram",
        description=f"{counted(curves.rows, 'held-out gold row')}, in groups. "
        + "; ".join(sentences["confidence"] or sentences["score"]),
        axes=RELIABILITY,
        parts=parts,
        legend=[
            *([("dot c1", "confidence")] if curves.calibrated else []),
            ("dot c2", "raw Perceived Confidence Score"),
            (f"reach {'c1' if curves.calibrated else 'c2'}", f"95 % interval, {rows} rows per point"),
            ("ideal", "perfect calibration"),
        ],
    )


def _bin_text(group: ReliabilityBin, measure: str) -> str:
    value = f"{measure} {number(group.confidence)}"
    return f"{value}, correct {number(group.accuracy)} {interval(group.interval)}, n {group.rows}"


def roc_chart(curves: Curves) -> Plot:
    """Return a curve for each of the most frequent labels, each against all others."""
    drawn = [(roc, f"{number(roc.auroc.value)} {interval(roc.auroc.interval)}") for roc in curves.roc if roc.hits]
    lines = [path(map(ROC.at, roc.false_alarms, roc.hits), f"curve c{at}") for at, (roc, _) in enumerate(drawn, 1)]
    return Plot(
        name="roc",
        title="ROC, one label against the rest",
        description=f"On {counted(curves.rows, 'held-out gold row')}. "
        + "; ".join(f"{roc.label}: AUROC {auroc}, n {roc.auroc.n}" for roc, auroc in drawn),
        axes=ROC,
        parts=[segment(ROC.at(0, 0), ROC.at(1, 1), "ideal"), *lines],
        legend=[
            *((f"curve c{at}", f"{short(roc.label)} AUROC {auroc}") for at, (roc, auroc) in enumerate(drawn, 1)),
            ("ideal", f"chance ({counted(curves.rows, 'gold row')}; brackets: 95 % intervals)"),
        ],
    )


def risk_chart(curves: Curves, certificate: Certificate | None) -> Plot:
    """Return the error among the most confident rows, with the error limit and the accepted share if there are any."""
    risk = curves.risk
    settled = [wrong for taken, wrong in zip(risk.coverage, risk.risk, strict=True) if taken * curves.rows >= MIN_ROWS]
    allowed = certificate.promise.max_error if certificate is not None else 0.0
    ticks = nice_ticks(1.2 * max(*settled, allowed, 0.0))
    errors = Axis(title="risk: share of these that are wrong", high=ticks[-1], ticks=ticks, percent=True)
    axes = Axes(COVERAGE, errors, WIDE)
    lows, highs, curve = (list(map(axes.at, risk.coverage, ends)) for ends in (risk.low, risk.high, risk.risk))
    parts = [path([*lows, *reversed(highs)], "band", closed=True)]
    legend = [
        ("curve c1", f"share wrong, on {counted(curves.rows, 'gold row')}"),
        ("band", "95 % interval at each coverage"),
    ]
    if certificate is not None:
        parts.append(path([axes.at(share, allowed) for share in (0.0, 1.0)], "limit"))
        legend.append(("limit", f"limit: at most {percent(allowed, 1)} {certificate.promise.far}"))
    if certificate is not None and certificate.holds:
        share = certificate.accepted_share
        parts.append(segment(axes.at(share, 0), axes.at(share, axes.y.high), "accepted"))
        legend.append(("accepted", f"accepted: {percent(share, 1)} of all rows in the file"))
    return Plot(
        name="risk-coverage",
        title="Risk against coverage",
        description=f"On {counted(curves.rows, 'held-out gold row')}: of all labels {percent(risk.risk[-1], 1)} are "
        f"wrong, of the most confident half {percent(_at(curves, 0.5)[1], 1)}.",
        axes=axes,
        parts=[*parts, path(curve, "curve c1")],
        legend=legend,
    )


def _at(curves: Curves, coverage: float) -> tuple[float, ...]:
    """Return coverage, risk and its interval at the point that is nearest."""
    return min(zip(*curves.risk, strict=True), key=lambda point: abs(point[0] - coverage))


KINDS = ("risk", "calibration", "roc", "confusion")
CELL_WIDTH, CELL_HEIGHT, MARGIN, TOP = 92, 44, 150, 58
COLOURS = 6  # as many as `charts.css` has for lines and dots


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart as SVG: a notebook shows it, `save` writes it."""

    name: str
    description: str  # in words
    svg: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the chart as an SVG file, and return its path."""
        target = Path(path)
        check_ending(target, (".svg",))
        write_page(target, self.svg)
        return target


def picture(result: RunResult, kind: str) -> Picture:
    """Return a chart of a run, on gold rows that the fits did not see; without enough of them, raise `GoldError`.

    The kind is `risk` (error against coverage), `calibration`, `roc` or `confusion`.
    """
    if kind not in KINDS:
        raise ConfigError(f"there is no chart {kind!r}; there are {', '.join(KINDS[:-1])} and {KINDS[-1]}")
    learned = result.learned
    if kind == "confusion" and learned.against_gold is not None:
        return confusion(learned.against_gold)
    if kind == "confusion" or learned.curves is None:
        why = learned.no_figures.rstrip(".") or "there are too few gold rows"
        raise GoldError(f"no chart of {kind}: {why}; label rows with pcs review {result.folder.home}, then fit again")
    if kind == "risk":
        chart = risk_chart(learned.curves, learned.model.certificate)
    else:
        chart = roc_chart(learned.curves) if kind == "roc" else reliability_diagram(learned.curves)
    return Picture(chart.name, chart.description, chart.file())


def confusion(against_gold: AgainstGold) -> Picture:
    """Return how often each gold label got each label; darker cells are a larger share of their gold label."""
    table, labels = against_gold.table if against_gold.table[-1].any() else against_gold.table[:-1], against_gold.labels
    names = [*labels, "no label"][: len(table)]
    width, height = max(MARGIN + CELL_WIDTH * len(names) + 12, 330), TOP + CELL_HEIGHT * len(labels) + 12
    summary = f"{int(table.trace()):,} of {against_gold.n:,} gold rows got their gold label"
    drawing = tag(
        "svg",
        tag("title", "Confusion matrix"),
        tag("desc", summary),
        tag("rect", width=f"{width}", height=f"{height}", fill="#ffffff"),
        _words("gold ↓   given →", MARGIN - 10, TOP - 10, anchor="end"),
        _words(summary, 8, 18, anchor="start"),
        *(_words(short(name), MARGIN + CELL_WIDTH * (at + 0.5), TOP - 10) for at, name in enumerate(names)),
        *(
            _words(short(name), MARGIN - 10, TOP + CELL_HEIGHT * (at + 0.5) + 4, anchor="end")
            for at, name in enumerate(labels)
        ),
        *(_cell(table, gold, label) for gold in range(len(labels)) for label in range(len(names))),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=f"{width}",
        role="img",
        font_family="system-ui, sans-serif",
        font_size="12.5",
    )
    return Picture("confusion", summary, f"{drawing}\n")


def _cell(table: Integers, gold: int, label: int) -> Markup:
    times, whole = int(table[label, gold]), int(table[:, gold].sum())
    share = times / whole if whole else 0.0
    left, top = MARGIN + CELL_WIDTH * label, TOP + CELL_HEIGHT * gold
    size = {"width": f"{CELL_WIDTH - 2}", "height": f"{CELL_HEIGHT - 2}"}
    colour = {"fill": "#2f6db5" if label == gold else "#c2513a", "fill_opacity": f"{0.05 + 0.9 * share:.2f}"}
    shown = f"{times:,} ({percent(times, whole)})" if whole else "0"
    ink = "#ffffff" if share > 0.6 else "#1b1f24"
    middle = _words(shown, left + CELL_WIDTH / 2, top + CELL_HEIGHT / 2 + 4, ink=ink)
    return joined(tag("rect", x=f"{left}", y=f"{top}", **size, **colour), middle)


def _words(text: str, x: float, y: float, *, anchor: str = "middle", ink: str = "#1b1f24") -> Markup:
    return tag("text", text, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, fill=ink)


def draw_curves(curves: Sequence[Curve], file: Path) -> None:
    """Write a chart of class AUROC against gold rows, a line with its band per dataset and method."""
    _require(curves, "a learning curve")
    sizes = [x for curve in curves for x in curve.x]
    ticks = [x for x in (10, 30, 100, 300, 1000, 3000) if min(sizes) <= x <= max(sizes)]
    x = Axis(title="Gold rows learned from", low=min(sizes), high=max(sizes), ticks=ticks, logarithmic=True)
    axes = Axes(x, _auroc("", [y for curve in curves for y in (*curve.low, *curve.high)]))
    parts, legend = list[Markup](), list[tuple[str, str]]()
    for index, curve in enumerate(curves):
        kind = f"curve c{index % COLOURS + 1}"
        lows, highs, middle = (list(map(axes.at, curve.x, ends)) for ends in (curve.low, curve.high, curve.y))
        parts += [path([*lows, *reversed(highs)], "band", closed=True), path(middle, kind)]
        legend.append((kind, f"{curve.dataset}, {curve.method}"))
    _write(file, "Learning curves", axes, parts, legend)


def draw_pairs(pairs: Sequence[Pair], rival: str, file: Path) -> None:
    """Write a chart of PCS against a rival, one dot per model and dataset; dots above the line favour PCS."""
    _require(pairs, f"PCS against {rival}")
    values = [value for pair in pairs for value in (pair.ours, pair.theirs)]
    axes = Axes(_auroc(f", {rival[:1].lower()}{rival[1:]}", values), _auroc(", PCS", values))
    low, high = axes.x.low, axes.x.high
    datasets = list(dict.fromkeys(pair.dataset for pair in pairs))
    kinds = {dataset: f"dot c{index % COLOURS + 1}" for index, dataset in enumerate(datasets)}
    dots = [dot(axes.at(pair.theirs, pair.ours), kinds[pair.dataset], pair.name) for pair in pairs]
    parts = [segment(axes.at(low, low), axes.at(high, high), "ideal"), *dots]
    _write(file, f"PCS against {rival}", axes, parts, [(kind, dataset) for dataset, kind in kinds.items()])


def _auroc(of: str, values: Sequence[float]) -> Axis:
    first, last = int(10 * min(values)), ceil(10 * max(values))
    ticks = [tenth / 10 for tenth in range(first, max(last, first + 1) + 1)]
    return Axis(title=f"class AUROC{of}", low=ticks[0], high=ticks[-1], ticks=ticks)


def _require(things: Sequence[object], what: str) -> None:
    if not things:
        raise UndefinedMetric(f"nothing to draw for {what}: no value could be computed, see the notes of its table")


def _write(file: Path, title: str, axes: Axes, parts: Sequence[Markup], legend: Sequence[tuple[str, str]]) -> None:
    shown = f"{axes.y.title} against {axes.x.title}"
    chart = Plot(name=file.stem, title=title, description=shown, axes=axes, parts=parts, legend=legend)
    write_page(file, chart.file())
