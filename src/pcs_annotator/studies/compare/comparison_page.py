"""What a comparison shows, the same on the command line and in `compare.html`: a few plain sentences, and sections."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pcs_annotator.base.text import capital, counted
from pcs_annotator.judging.evaluate.relation_value import two_digits
from pcs_annotator.judging.evaluate.scored import ABOUT_AUROC, ABOUT_ECE, about_intervals, cell_of
from pcs_annotator.judging.metrics.significance import BootstrapTest, p_text, rows_to_tell
from pcs_annotator.runs.certificate_text import promised, without_gold
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import DASH, SHOWN, count, dollars, interval, number, percent, signed
from pcs_annotator.showing.markup import Markup, tag, user_text
from pcs_annotator.showing.report.sections import rows as lists
from pcs_annotator.showing.report.view import MOST_CELLS, Selection, rows_at, view_of
from pcs_annotator.showing.to_html import STYLES, document, header
from pcs_annotator.studies.compare import comparison
from pcs_annotator.studies.compare.sides import PART_HAS_NO_PROMISE, PER_ROWS, Side, SideCost
from pcs_annotator.version import __version__

LEAST_DIFFERENCE = 0.02  # the smallest difference in accuracy for which the number of rows that it takes is named
SAME_COST = 0.02
NOT_REQUESTED = "no promise was requested"
MOST_EXAMPLES = 200
MOST_LABELS = 20
MOST_CHANGES = 12
HEAT = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)  # shares above which a cell is one shade darker
NAMES = ("A", "B")
FIGURES = (
    ("accuracy", "accuracy"),
    ("macro_f1", "macro F1"),
    ("auroc", "class AUROC"),
    ("auroc_confidence", "confidence AUROC"),
    ("ece_confidence", "ECE of confidence"),
    ("accuracy_at_80", "accuracy of the surest 80 %"),
)
ORDERS = (("file", "both sure first"), ("sure", "least certain first"))
FILTERS = (
    ("a-right", "only A is right"),
    ("b-right", "only B is right"),
    ("none-right", "neither is right"),
    ("sure", f"both are sure ({comparison.SURE} or more)"),
)
_KIND = " · comparison"
CAUTION = (
    "Labels here are those of the runs, which learned from the gold rows; the figures above are of rows that the fits "
    "did not see."
)


def verdict(found: comparison.Comparison) -> list[str]:
    """Return what the comparison comes to: accuracy first, then agreement and cost."""
    return [_accuracy(found), *_auroc(found), _agreement(found), about_cost(*found.costs)]


def _accuracy(found: comparison.Comparison) -> str:
    figures = found.figures
    if figures is None:
        return f"Which of the two is right more often is not known: {found.no_figures.rstrip('.')}."
    test = figures.accuracy
    if test.p_value < SHOWN:
        size = number(100 * abs(test.difference), 1)
        basis = f"95 % {_ends(test)}; {counted(test.n, 'gold row')}, {p_text(test.p_value)}"
        return f"B is {'more' if test.difference > 0 else 'less'} accurate than A by {size} points ({basis})."
    worth = max(abs(test.difference), LEAST_DIFFERENCE)
    needed = rows_to_tell(test, worth)
    return (
        f"No difference in accuracy can be told from {counted(test.n, 'gold row')}: B − A is "
        f"{signed(100 * test.difference, 1)} points (95 % {_ends(test)}; {p_text(test.p_value)}). To tell a difference "
        f"of {number(100 * worth, 1)} points, about {two_digits(needed):,} would be needed."
    )


def _auroc(found: comparison.Comparison) -> list[str]:
    """Return whether one side separates the labels better; nothing if that cannot be told."""
    if found.figures is None or found.figures.auroc.p_value >= SHOWN:
        return []
    test = found.figures.auroc
    better = "better" if test.difference > 0 else "worse"
    ends = " to ".join(signed(end) for end in test.interval.rounded(3))
    return [
        f"B separates the labels {better} than A: its class AUROC is {signed(test.difference)} "
        f"(95 % {ends}; {p_text(test.p_value)})."
    ]


def _agreement(found: comparison.Comparison) -> str:
    share, missing = percent(found.differing, found.labelled), found.rows - found.labelled
    kappa = "" if found.kappa.value is None else f"; Cohen's κ = {number(found.kappa.value)}"
    more = f"; {counted(missing, 'more row has', 'more rows have')} no label in one of them or both" if missing else ""
    return (
        f"They give different labels to {found.differing:,} of {counted(found.labelled, 'row')} ({share}{kappa}){more}."
    )


def about_cost(ours: SideCost, theirs: SideCost) -> str:
    """Return how many times as much B costs, or how many times as many calls it makes if a price is unknown."""
    if ours.usd and theirs.usd:
        times, same, more = theirs.usd / ours.usd, "Both cost the same", "B costs {} × as much as A"
    elif ours.calls and theirs.calls:
        times, same, more = theirs.calls / ours.calls, "Both make as many calls", "B makes {} × as many calls as A"
    else:
        return "What they cost is not known: no calls are recorded."
    return f"{same}." if abs(times - 1) < SAME_COST else f"{more.format(number(times, 2 if times < 1 else 1))}."


def promise_of(side: Side) -> str:
    """Return what is promised about the labels that a side accepts."""
    model = side.result.learned.model
    if not side.part.whole:
        return PART_HAS_NO_PROMISE
    if model.by_agreement:
        return without_gold(side.result.counts).headline
    return NOT_REQUESTED if model.certificate is None else promised(model.certificate).headline


def _ends(test: BootstrapTest) -> str:
    low, high = (100 * end for end in test.interval.rounded(3))
    return f"{number(low, 1)} to {number(high, 1)}"


def render(found: comparison.Comparison) -> str:
    """Return the page; the same comparison gives the same page."""
    notes = [b.note(b.Styled(note, "plain", own=True)) for note in found.notes]
    said = b.section("verdict", "Verdict", b.Bullets(verdict(found), "spoken"), *notes)
    shown = [said, quality(found), _labels(found), promises(found), cost(found), settings(found)]
    return document(
        f"{found.a.name} and {found.b.name}", _header(found), [*shown, _rows(found)], (*STYLES, "compare.css")
    )


def _header(found: comparison.Comparison) -> Markup:
    sides = tag("ul", *(_side(name, side) for name, side in zip(NAMES, found.sides, strict=True)), class_="sides")
    figures = [
        b.KeyFigure(count(found.rows), "rows compared", f"{counted(found.gold_rows, 'gold row')} among them"),
        b.KeyFigure(percent(found.differing, found.labelled), "different labels", counted(found.differing, "row")),
    ]
    if found.figures is not None:
        for name, one in zip(NAMES, found.figures.figures, strict=True):
            share, ends, _ = one["accuracy"]
            figures.append(b.KeyFigure(number(share), f"accuracy of {name}", f"{interval(ends)} held out"))
    for name, cost in zip(NAMES, found.costs, strict=True):
        value, what = (count(cost.calls), "calls") if cost.usd is None else (dollars(cost.usd), "cost")
        figures.append(b.KeyFigure(value, f"{what} of {name}", f"per {count(PER_ROWS)} rows"))
    kind = f"perceived-confidence {__version__}{_KIND}"
    return header("A and B on the same rows", sides, b.Group(figures, kind="tiles"), overline=kind)


def _side(name: str, side: Side) -> Markup:
    votes = side.result.votes
    axes = (("models", votes.annotators), ("relations", votes.relations))
    facts = [tag("small", f" · {what}: ", user_text(", ".join(names))) for what, names in axes]
    return tag("li", tag("b", name), user_text(side.name), *facts)


def quality(found: comparison.Comparison) -> b.Section:
    """Return the figures of both on rows that the fits did not see, and the tests between them."""
    figures = found.figures
    if figures is None:
        return b.section("quality", "Quality", b.not_known(f"{capital(found.no_figures.rstrip('.'))}."))
    rows: list[b.Row] = [
        [title, *(cell_of(one.get(name)) for one in figures.figures), "", ""] for name, title in FIGURES
    ]
    for row, test in zip(rows, (figures.accuracy, None, figures.auroc), strict=False):
        if test is not None:
            ends = b.Styled(interval(test.interval, 3), "small")
            row[-2:] = [
                (signed(test.difference), " ", ends),
                p_text(test.p_value).removeprefix("p ").removeprefix("= "),
            ]
    right = figures.right
    counts = (
        f"Of {counted(figures.n, 'gold row')}, both are right on {count(right.both)}, only A on "
        f"{count(right.only_first)}, only B on {count(right.only_second)}, and neither on {count(right.neither)}."
    )
    how = figures.how
    times = counted(len(how.seeds(figures.n)), "time")
    return b.section(
        "quality",
        "Quality",
        b.text(
            f"Cross-validated on {counted(figures.n, 'gold row')} in {how.folds} folds, {times}, with the "
            "same folds for both: each row is labelled by what was learned without it."
        ),
        b.Table(columns=[b.Column("Figure"), *b.numbers(*NAMES, "B − A", "p", digits=3)], rows=rows, kind="two"),
        b.text(counts),
        b.note(
            f"p is of a paired bootstrap test, from which the intervals come, too. {about_intervals(how.resamples)} "
            f"{ABOUT_AUROC} {ABOUT_ECE}"
        ),
    )


def _labels(found: comparison.Comparison) -> b.Section:
    agreed = b.text(
        f"Rows by the label of A (down) and of B (across). On {count(found.labelled - found.differing)} of "
        f"{counted(found.labelled, 'row')} with two labels both say the same."
    )
    some_empty = found.table[-1].any() or found.table[:, -1].any()
    names = [*found.labels, *(["no label"] if some_empty else [])]
    table = found.table[: len(names), : len(names)]
    if len(names) > MOST_LABELS:
        return b.section("labels", "Labels", agreed, _top_changes(table, names))
    return b.section("labels", "Labels", agreed, _matrix(table, names))


def _matrix(counts: np.ndarray, names: Sequence[str]) -> b.Table:
    """Return how many rows have each label of A (rows) and of B (columns), with the share of the row in colour."""
    rows: list[b.Row] = [
        [b.name(one), *(_heat_cell(int(times), int(line.sum()), same=at == place) for place, times in enumerate(line))]
        for at, (one, line) in enumerate(zip(names, counts, strict=True))
    ]
    columns = [b.Column("A ↓ B →"), *b.numbers(*map(b.name, names))]
    return b.Table(columns=columns, rows=rows, kind="heat", label="Labels of A and B")


def _top_changes(counts: np.ndarray, names: Sequence[str]) -> b.Table | None:
    """Return the most frequent pairs of different labels; None if there are none."""
    changes = counts.copy()
    np.fill_diagonal(changes, 0)
    places = [divmod(int(place), len(names)) for place in np.argsort(-changes, axis=None, kind="stable")[:MOST_CHANGES]]
    rows: list[b.Row] = [
        [(b.name(names[row]), " → ", b.name(names[column])), int(times), percent(int(times), int(counts[row].sum()))]
        for row, column in places
        if (times := changes[row, column])
    ]
    return b.Table(columns=[b.Column("A → B"), *b.numbers("rows", "share")], rows=rows) if rows else None


def _heat_cell(part: int, whole: int, *, same: bool) -> b.Cell:
    """Return a count and its share, in a colour that tells how large it is; grey on the diagonal."""
    if not whole:
        return None
    if not part and not same:
        return b.Shaded("0", "number quiet")
    kind = "number same" if same else f"number heat-{sum(part / whole > step for step in HEAT)}"
    return b.Shaded((count(part), " ", b.Styled(percent(part, whole), "small")), kind)


def promises(found: comparison.Comparison) -> b.Section:
    """Return what each side accepts, and what it promises."""
    sides = []
    for name, side in zip(NAMES, found.sides, strict=True):
        accepted = found.accepted(side)
        share = f"{percent(accepted, found.rows)} accepted ({counted(accepted, 'row')})"
        sides.append(b.titled(name, b.text(b.strong(share)), b.text(f"{capital(promise_of(side))}.")))
    return b.section("promises", "Promises", b.Group(sides, kind="pair"))


def cost(found: comparison.Comparison) -> b.Section:
    """Return what each side costs per model."""
    rows: list[b.Row] = []
    for name, one in zip(NAMES, found.costs, strict=True):
        for bill, (_, *cells) in zip(one.bills, b.bill_rows(one.bills), strict=True):
            rows.append([(f"{name} · ", b.name(bill.model)), *cells])
        rows.append(b.bill_total(f"{name}, total", one.bills))
    about = (
        f"Per {count(PER_ROWS)} rows, if every question were asked and paid for: also what a ledger "
        "already had, and whoever paid for it. Tokens are those of the calls of each run, on average."
    )
    return b.section("cost", "Cost", b.text(about), b.Table(columns=b.bill_columns(), rows=rows))


def settings(found: comparison.Comparison) -> b.Section:
    """Return the settings that differ."""
    title = "Settings that differ"
    if not found.settings:
        none = b.text("None: the two runs have the same settings.")
        return b.section("settings", title, none, menu="Settings")
    rows: list[b.Row] = [
        # what differs is marked
        [one.name, b.name(one.first), b.name(one.second) if DASH in one else b.Change(one.first, one.second)]
        for one in found.settings
    ]
    table = b.Table(columns=[b.Column(name) for name in ("Setting", *NAMES)], rows=rows, kind="differing")
    return b.section("settings", title, table, menu="Settings")


def _rows(found: comparison.Comparison) -> b.Section:
    shown = _shown(found)
    views = [view_of(side.result) for side in found.sides]
    sides = [rows_at(view, [one.rows[at] for one in shown]) for at, view in enumerate(views)]
    marks = [
        replace(row, marks=one.marks, certainty=one.certainty) for row, one in zip(sides[0].rows, shown, strict=True)
    ]
    listed = Selection(rows=tuple(marks), room=min(side.room for side in sides))
    gold = any(one.gold is not None for one in shown)
    entries = []
    for one, *both in zip(shown, listed.rows, sides[1].rows, strict=True):
        cells = [_said(one, at) for at in range(len(NAMES))]
        truth = [] if one.gold is None else [("gold", one.gold, None, "")]
        entries.append(lists.entry(both, [*cells, *truth], listed.room))
    titles = ["id", "text", *NAMES, *(["gold"] if gold else [])]
    return b.section(
        "rows",
        "Rows on which they differ",
        b.text(_which(found, len(shown))),
        lists.controls(ORDERS, None, lists.filter_buttons("Which rows", FILTERS, listed)),
        lists.explorer(titles, entries, [*zip(NAMES, views, strict=True)], f"{lists.shape(titles, listed)} compared"),
        b.note(CAUTION) if gold else None,
        menu="Rows",
    )


def _shown(found: comparison.Comparison) -> list[comparison.DifferingRow]:
    """Return the rows to list, those on which both are sure first; if there are too many, those with gold go first."""
    cells = sum(len(side.result.votes.annotators) * len(side.result.votes.relations) for side in found.sides)
    most = max(20, min(MOST_EXAMPLES, MOST_CELLS // max(cells, 1)))
    kept = sorted(found.examples, key=lambda one: one.gold is None)[:most]
    return sorted(kept, key=lambda one: -one.certainty)


def _which(found: comparison.Comparison, shown: int) -> str:
    if not found.differing:
        return "None: no row has two different labels."
    order = "Those on which both are sure come first. Open a row to see the votes of both."
    if shown == found.differing:
        return f"All {counted(shown, 'row')}. {order}"
    return f"{count(shown)} of {counted(found.differing, 'row')}, those with gold labels among them. {order}"


def _said(one: comparison.DifferingRow, at: int) -> lists.Cell:
    kind, label, share, small = lists.said(one.outcomes[at])
    return "said right" if label is not None and label == one.gold else kind, label, share, small
