"""How a run has changed from fit to fit: a table, which `pcs versions` prints, and a chart."""

from collections.abc import Sequence
from contextlib import suppress

from pcs_annotator.base.errors import TableError
from pcs_annotator.base.text import counted
from pcs_annotator.runs.fits import Version, list_versions
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.settings import Config
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import DASH, count, dollars, percent
from pcs_annotator.showing.markup import Markup
from pcs_annotator.showing.svg_plot import Axes, Axis, Plot, dot, path, segment

MOST_SHOWN = 12
SERIES = {  # field of a fit, and of its interval → what it is
    ("accuracy", "accuracy_interval"): "right, of gold rows that the fit did not see",
    ("accepted", ""): "accepted, of all rows",
    ("error", "error_interval"): "wrong, of accepted rows in an audit",
}


def fits_of(folder: RunFolder, config: Config | None = None) -> list[Version]:
    """Return the fits of a run, as `list_versions` does; none if one is damaged, which `pcs versions` says."""
    with suppress(TableError):
        return list_versions(folder, config)
    return []


def fits_table(fits: Sequence[Version]) -> b.Table:
    """Return a line per fit, with those columns that some fit has."""
    more = {
        "gold from stream": [count(fit.streamed_gold_rows) if fit.streamed_gold_rows else DASH for fit in fits],
        "wrong in audit": [f"{fit.wrong} of {fit.audited}" if fit.audited else DASH for fit in fits],
        "cost so far": [dollars(fit.usd) if fit.usd is not None else _calls(fit) for fit in fits],
    }
    more = {title: cells for title, cells in more.items() if any(cell != DASH for cell in cells)}
    rows: list[b.Row] = [
        [
            f"{fit.number}, in use" if fit.in_use else str(fit.number),
            fit.made[:16].replace("T", " "),
            count(fit.gold_rows),
            *(DASH if share is None else percent(share, 1) for share in (fit.accuracy, fit.accepted)),
            *cells,
        ]
        for fit, *cells in zip(fits, *more.values(), strict=True)
    ]
    columns = [b.Column("version"), b.Column("made (UTC)"), *b.numbers("gold rows", "accuracy", "accepted", *more)]
    return b.Table(columns=columns, rows=rows)


def _calls(fit: Version) -> str:
    return DASH if fit.calls is None else counted(fit.calls, "call")


def over_time(fits: Sequence[Version]) -> b.Group | None:
    """Return the chart above its numbers; None before there are two fits."""
    drawn = fits_chart(fits)
    if drawn is None:
        return None
    return b.titled("How has it changed from fit to fit?", drawn, b.Folded("The numbers", [fits_table(fits)]))


def fits_chart(fits: Sequence[Version], name: str = "fits") -> Plot | None:
    """Return quality, accepted share, and error found by audits, of the last fits; None before there are two."""
    fits = fits[-MOST_SHOWN:]
    if len(fits) < 2:
        return None
    numbers = [float(fit.number) for fit in fits]
    x = Axis(title="version, one for each fit", low=numbers[0] - 0.3, high=numbers[-1] + 0.3, ticks=numbers)
    axes = Axes(x, Axis(title="share of rows", percent=True))
    parts, legend, sentences = list[Markup](), list[tuple[str, str]](), list[str]()
    for colour, (fields, text) in zip(("c1", "c2", "c3"), SERIES.items(), strict=True):
        values = [(fit, share) for fit in fits if (share := getattr(fit, fields[0])) is not None]
        if not values:
            continue
        parts.append(path([axes.at(fit.number, share) for fit, share in values], f"curve {colour}"))
        for fit, share in values:
            if ends := getattr(fit, fields[1], None):
                low, high = (axes.at(fit.number, end) for end in ends)
                parts.append(segment(low, high, f"reach {colour}"))
            when = f"version {fit.number}, {fit.made[:10]}, {counted(fit.gold_rows, 'gold row')}"
            parts.append(dot(axes.at(fit.number, share), f"dot {colour}", f"{when}: {percent(share, 1)} {text}"))
        legend.append((f"dot {colour}", text))
        first_and_last = (percent(values[at][1], 1) for at in (0, -1))
        sentences.append(f"{text}: {' to '.join(dict.fromkeys(first_and_last))}")
    legend.append(("reach c1", "interval: 95 %, and of audits that of the promise"))
    about = f"{counted(len(fits), 'fit')}. {'; '.join(sentences)}."
    return Plot(name=name, title="Quality over time", description=about, axes=axes, parts=parts, legend=legend)
