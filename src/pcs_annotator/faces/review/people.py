"""Several people: how well they agree, and the rows on which they differ."""

from __future__ import annotations

from pcs_annotator.faces.review.item import readable
from pcs_annotator.faces.review.layout import link
from pcs_annotator.runs.review.values import Agreement, Found, FoundRow, Progress
from pcs_annotator.showing.diff import clipped
from pcs_annotator.showing.formats import count, counted, number, percent
from pcs_annotator.showing.markup import Markup, section, sentence, table, tag, user_text

PREVIEW = 400
WHAT_ALPHA_IS = (
    "α and κ are 1 if people always agree and 0 if they agree as often as chance would; 0.8 is commonly asked for."
)


def people_view(progress: Progress, agreement: Agreement, conflicts: Found) -> Markup:
    """Return reviewers, their agreement, and the rows to settle."""
    return tag(
        "div",
        tag("h1", "People"),
        tag("div", _agreement(agreement), _reviewers(progress), class_="pair"),
        _conflicts(conflicts),
        class_="people",
    )


def _agreement(agreement: Agreement) -> Markup:
    if not agreement.pairs:
        why = "No row has verdicts of two people yet. --double 0.2 shows a second person every fifth row."
        return section("agreement", "Agreement", sentence(why))
    lines = [
        (
            user_text(f"{pair.first} and {pair.second}"),
            count(pair.rows),
            percent(pair.alike, pair.rows),
            number(pair.kappa),
        )
        for pair in agreement.pairs
    ]
    titles = (("two people", ""), ("rows", "number"), ("alike", "number"), ("κ", "number"))
    return section(
        "agreement",
        "Agreement",
        sentence(
            tag("b", f"α = {number(agreement.alpha)}", class_="figure"),
            f" over {counted(agreement.rows, 'row')} with verdicts of two or more",
        ),
        table(titles, lines),
        sentence(WHAT_ALPHA_IS, kind="note"),
    )


def _reviewers(progress: Progress) -> Markup:
    lines = [
        (user_text(name), count(rows)) for name, rows in sorted(progress.reviewers.items(), key=lambda one: -one[1])
    ]
    known = (
        table((("reviewer", ""), ("rows", "number")), lines) if lines else sentence("Nobody has reviewed a row yet.")
    )
    total = (
        f"{counted(progress.reviewed, 'row')} of {count(progress.rows)} reviewed; the others have the models' label."
    )
    return section("reviewers", "Reviewers", known, sentence(total, kind="note"))


def _conflicts(found: Found) -> Markup:
    if not found.total:
        return section("conflicts", "Conflicts", sentence("No two people differ about a row."))
    start = tag("a", f"Settle them ({count(found.total)})", href=link("/", queue="conflicts"), class_="button strong")
    more = tag("a", "All of them", href=link("/rows", conflict="yes")) if found.total > len(found.rows) else None
    return section(
        "conflicts",
        "Conflicts",
        sentence("The verdict of a third person settles a row; whoever gives it sees what the others said."),
        sentence(start, " ", more),
        tag("ul", *map(_conflict, found.rows), class_="conflicts"),
    )


def _conflict(row: FoundRow) -> Markup:
    said = [
        tag("li", user_text(name), ": ", tag("b", user_text(one.label or "skipped")))
        for name, one in (row.reviewed.by_reviewer.items() if row.reviewed else ())
    ]
    return tag(
        "li",
        tag("a", "Row ", user_text(row.id), href=link("/row", id=row.id, shown_by="conflicts")),
        tag("p", readable(clipped(row.text, PREVIEW)), dir="auto"),
        tag("ul", *said, class_="said"),
    )
