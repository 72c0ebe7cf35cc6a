"""What a comparison shows, the same on the command line and in `compare.html`: a few plain sentences, and sections."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pcs_annotator.base.text import capital, counted, short_names
from pcs_annotator.judging.evaluate.relation_value import two_digits
from pcs_annotator.judging.evaluate.scored import ABOUT_AUROC, ABOUT_ECE, about_intervals, cell_of
from pcs_annotator.judging.metrics.significance import BootstrapTest, p_text, rows_to_tell
from pcs_annotator.runs.certificate_text import promised, without_gold
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import DASH, SHOWN, count, dollars, interval, number, percent, signed
from pcs_annotator.showing.markup import Markup, tag, user_text
from pcs_annotator.showing.report import rows as lists
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


def verdict(compared: comparison.Comparison) -> list[str]:
    """Return what the comparison comes to: who is right more often, on what basis, then agreement and cost."""
    sentences = [f"{headline(compared)}.", _basis(compared), *_auroc(compared), _agreement(compared)]
    return [*sentences, about_cost(*compared.costs)]


def headline(compared: comparison.Comparison) -> str:
    """Return who is right more often, as far as gold rows tell."""
    if compared.figures is None:
        return "Which of the two is right more often is not known"
    test = compared.figures.accuracy
    if test.p_value >= SHOWN:
        return f"No difference in accuracy that {counted(test.n, 'gold row')} could show"
    return f"{'B' if test.difference > 0 else 'A'} is right more often, by {_points(abs(test.difference))}"


def _basis(compared: comparison.Comparison) -> str:
    """Return the difference in accuracy with its test and, if none is shown, how many rows would show one."""
    if compared.figures is None:
        return f"{capital(compared.no_figures.rstrip('.'))}."
    test = compared.figures.accuracy
    ends = f"95 % interval {_ends(test)}; {counted(test.n, 'gold row')}; {p_text(test.p_value)}"
    difference = f"B − A is {signed(100 * test.difference, 1)} percentage points ({ends})."
    if test.p_value < SHOWN:
        return difference
    worth = max(abs(test.difference), LEAST_DIFFERENCE)
    needed = two_digits(rows_to_tell(test, worth))
    return f"{difference} To show a difference of {_points(worth)} takes about {needed:,} gold rows."


def _points(share: float) -> str:
    size = number(100 * share, 1)
    return f"{size} {'point' if size == '1.0' else 'points'}"


def _auroc(compared: comparison.Comparison) -> list[str]:
    """Return whether one side separates the labels better; nothing if that cannot be told."""
    if compared.figures is None or compared.figures.auroc.p_value >= SHOWN:
        return []
    test = compared.figures.auroc
    better = "better" if test.difference > 0 else "worse"
    ends = " to ".join(signed(end) for end in test.interval.rounded(3))
    return [
        f"B separates the labels {better} than A: its class AUROC is {signed(test.difference)} "
        f"(95 % {ends}; {p_text(test.p_value)})."
    ]


def _agreement(compared: comparison.Comparison) -> str:
    share, missing = percent(compared.differing, compared.labelled), compared.rows - compared.labelled
    kappa = "" if compared.kappa.value is None else f"; Cohen's κ = {number(compared.kappa.value)}"
    more = f"; {counted(missing, 'more row has', 'more rows have')} no label in one of them or both" if missing else ""
    rows = f"{compared.differing:,} of {counted(compared.labelled, 'row')}"
    return f"They give different labels to {rows} ({share}{kappa}){more}."


def about_cost(ours: SideCost, theirs: SideCost) -> str:
    """Return what B costs compared with A, or how many calls it makes if a price is unknown."""
    per = f"per {count(PER_ROWS)} rows"
    if ours.usd and theirs.usd:
        same, first, second = "Both cost the same", ours.usd, theirs.usd
        less, more = "B costs {} of what A costs", "B costs {} times as much as A"
        amounts = f"{dollars(second)} instead of {dollars(first)} {per}"
    elif ours.calls and theirs.calls:
        same, first, second = "Both make as many calls", ours.calls, theirs.calls
        less, more = "B makes {} of the calls of A", "B makes {} times as many calls as A"
        amounts = f"{count(theirs.calls)} instead of {count(ours.calls)} {per}"
    else:
        return "What they cost is not known: no calls are recorded."
    if abs(second / first - 1) < SAME_COST:
        return f"{same}."
    share, times = percent(second, first), number(second / first, 1)
    return f"{less.format(share) if second < first else more.format(times)}: {amounts}."


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


def render(compared: comparison.Comparison) -> str:
    """Return the page; the same comparison gives the same page."""
    notes = [b.note(b.Styled(note, "plain", own=True)) for note in compared.notes]
    verdict_section = b.section("verdict", "In short", b.Bullets(verdict(compared)[1:], "spoken"), *notes)
    shown = [
        verdict_section,
        quality(compared),
        _labels(compared),
        promises(compared),
        cost(compared),
        settings(compared),
    ]
    return document(
        f"{compared.a.name} and {compared.b.name}",
        _header(compared),
        [*shown, _rows(compared)],
        (*STYLES, "compare.css"),
    )


def _header(compared: comparison.Comparison) -> Markup:
    sides = tag("ul", *(_side(name, side) for name, side in zip(NAMES, compared.sides, strict=True)), class_="sides")
    figures = [
        b.KeyFigure(count(compared.rows), "rows compared", f"{counted(compared.gold_rows, 'gold row')} among them"),
        b.KeyFigure(
            percent(compared.differing, compared.labelled), "different labels", counted(compared.differing, "row")
        ),
    ]
    if compared.figures is not None:
        for name, figures_of in zip(NAMES, compared.figures.figures, strict=True):
            share, ends, _ = figures_of["accuracy"]
            figures.append(b.KeyFigure(number(share), f"accuracy of {name}", f"{interval(ends)} held out"))
    for name, cost in zip(NAMES, compared.costs, strict=True):
        value, what = (count(cost.calls), "calls") if cost.usd is None else (dollars(cost.usd), "cost")
        figures.append(b.KeyFigure(value, f"{what} of {name}", f"per {count(PER_ROWS)} rows"))
    kind = f"perceived-confidence {__version__}{_KIND}"
    return header(headline(compared), sides, b.Group(figures, kind="tiles"), overline=kind)


def _side(name: str, side: Side) -> Markup:
    votes = side.result.votes
    axes = (("models", short_names(votes.annotators)), ("relations", votes.relations))
    facts = [tag("small", f" · {what}: ", user_text(", ".join(names))) for what, names in axes]
    return tag("li", tag("b", name), user_text(side.name), *facts)


def quality(compared: comparison.Comparison) -> b.Section:
    """Return the figures of both on rows that the fits did not see, and the tests between them."""
    figures = compared.figures
    if figures is None:
        return b.section("quality", "Quality", b.not_known(f"{capital(compared.no_figures.rstrip('.'))}."))
    rows: list[b.Row] = [
        [title, *(cell_of(figure.get(name)) for figure in figures.figures), "", ""] for name, title in FIGURES
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


def _labels(compared: comparison.Comparison) -> b.Section:
    agreed = b.text(
        f"Rows by the label of A (down) and of B (across). On {count(compared.labelled - compared.differing)} of "
        f"{counted(compared.labelled, 'row')} with two labels both say the same."
    )
    some_empty = compared.table[-1].any() or compared.table[:, -1].any()
    names = [*compared.labels, *(["no label"] if some_empty else [])]
    table = compared.table[: len(names), : len(names)]
    if len(names) > MOST_LABELS:
        return b.section("labels", "Labels", agreed, _top_changes(table, names))
    return b.section("labels", "Labels", agreed, _matrix(table, names))


def _matrix(counts: np.ndarray, names: Sequence[str]) -> b.Table:
    """Return how many rows have each label of A (rows) and of B (columns), with the share of the row in colour."""
    rows: list[b.Row] = [
        [
            b.name(label),
            *(_heat_cell(int(times), int(line.sum()), same=at == column) for column, times in enumerate(line)),
        ]
        for at, (label, line) in enumerate(zip(names, counts, strict=True))
    ]
    columns = [b.Column("A ↓ B →"), *b.numbers(*map(b.name, names))]
    return b.Table(columns=columns, rows=rows, kind="heat", label="Labels of A and B")


def _top_changes(counts: np.ndarray, names: Sequence[str]) -> b.Table | None:
    """Return the most frequent pairs of different labels; None if there are none."""
    changes = counts.copy()
    np.fill_diagonal(changes, 0)
    places = [divmod(int(cell), len(names)) for cell in np.argsort(-changes, axis=None, kind="stable")[:MOST_CHANGES]]
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


def promises(compared: comparison.Comparison) -> b.Section:
    """Return what each side accepts, and what it promises."""
    sides = []
    for name, side in zip(NAMES, compared.sides, strict=True):
        accepted = compared.accepted(side)
        share = f"{percent(accepted, compared.rows)} accepted ({counted(accepted, 'row')})"
        shown = b.text(b.strong(share)) if side.part.whole else None
        sides.append(b.titled(name, shown, b.text(f"{capital(promise_of(side))}.")))
    return b.section("promises", "Promises", b.Group(sides, kind="pair"))


def cost(compared: comparison.Comparison) -> b.Section:
    """Return what each side costs per model."""
    rows: list[b.Row] = []
    for name, side_cost in zip(NAMES, compared.costs, strict=True):
        models = [*dict.fromkeys(bill.model for bill in side_cost.bills)]
        shown = dict(zip(models, short_names(models), strict=True))
        for bill, (_, *cells) in zip(side_cost.bills, b.bill_rows(side_cost.bills), strict=True):
            rows.append([(f"{name} · ", b.name(shown[bill.model])), *cells])
        rows.append(b.bill_total(f"{name}, total", side_cost.bills))
    about = (
        f"Per {count(PER_ROWS)} rows, if every question were asked and paid for: also what a ledger "
        "already had, and whoever paid for it. Tokens are those of the calls of each run, on average."
    )
    return b.section("cost", "Cost", b.text(about), b.Table(columns=b.bill_columns(), rows=rows))


def settings(compared: comparison.Comparison) -> b.Section:
    """Return the settings that differ."""
    title = "Settings that differ"
    if not compared.settings:
        none = b.text("None: the two runs have the same settings.")
        return b.section("settings", title, none, menu="Settings")
    rows: list[b.Row] = [
        # what differs is marked
        [
            setting.name,
            b.name(setting.first),
            b.name(setting.second) if DASH in setting else b.Change(setting.first, setting.second),
        ]
        for setting in compared.settings
    ]
    table = b.Table(columns=[b.Column(name) for name in ("Setting", *NAMES)], rows=rows, kind="differing")
    return b.section("settings", title, table, menu="Settings")


def _rows(compared: comparison.Comparison) -> b.Section:
    shown = _shown(compared)
    views = [view_of(side.result) for side in compared.sides]
    sides = [rows_at(view, [row_pair.rows[at] for row_pair in shown]) for at, view in enumerate(views)]
    marks = [
        replace(row, marks=row_pair.marks, certainty=row_pair.certainty)
        for row, row_pair in zip(sides[0].rows, shown, strict=True)
    ]
    listed = Selection(rows=tuple(marks), room=min(side.room for side in sides))
    gold = any(row_pair.gold is not None for row_pair in shown)
    entries = []
    for row_pair, *both in zip(shown, listed.rows, sides[1].rows, strict=True):
        cells = [_said(row_pair, at) for at in range(len(NAMES))]
        truth = [] if row_pair.gold is None else [("gold", row_pair.gold, None, "")]
        entries.append(lists.entry(both, [*cells, *truth], listed.room))
    titles = ["id", "text", *NAMES, *(["gold"] if gold else [])]
    return b.section(
        "rows",
        "Rows on which they differ",
        b.text(_which(compared, len(shown))),
        lists.controls("", ORDERS, None, lists.filter_buttons("Which rows", FILTERS, listed)),
        lists.explorer(titles, entries, [*zip(NAMES, views, strict=True)], f"{lists.shape(titles, listed)} compared"),
        b.note(CAUTION) if gold else None,
        menu="Rows",
    )


def _shown(compared: comparison.Comparison) -> list[comparison.DifferingRow]:
    """Return the rows to list, those on which both are sure first; if there are too many, those with gold go first."""
    cells = sum(len(side.result.votes.annotators) * len(side.result.votes.relations) for side in compared.sides)
    most = max(20, min(MOST_EXAMPLES, MOST_CELLS // max(cells, 1)))
    kept = sorted(compared.examples, key=lambda row: row.gold is None)[:most]
    return sorted(kept, key=lambda row: -row.certainty)


def _which(compared: comparison.Comparison, shown: int) -> str:
    if not compared.differing:
        return "None: no row has two different labels."
    order = "Those on which both are sure come first. Open a row to see the votes of both."
    if shown == compared.differing:
        return f"All {counted(shown, 'row')}. {order}"
    return f"{count(shown)} of {counted(compared.differing, 'row')}, those with gold labels among them. {order}"


def _said(row: comparison.DifferingRow, at: int) -> lists.Cell:
    kind, label, share, small = lists.said(row.outcomes[at])
    return "said right" if label is not None and label == row.gold else kind, label, share, small
