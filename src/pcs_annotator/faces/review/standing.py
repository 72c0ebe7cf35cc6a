"""How the review goes: queues to choose from, work done, what was learned meanwhile, and how well people agree."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from pcs_annotator.base.text import capital, counted
from pcs_annotator.core.events import Queue
from pcs_annotator.faces.review.forms import FOR_ESTIMATES, QUEUES, TO_CHOOSE
from pcs_annotator.faces.review.item import readable, said_view
from pcs_annotator.faces.review.layout import chip, link
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import FitNews, ListedRow, Progress, ReviewerAgreement
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.diff import clipped
from pcs_annotator.showing.formats import count, number, percent
from pcs_annotator.showing.markup import Markup, joined, section, sentence, tag, user_text
from pcs_annotator.showing.to_html import bar, html

PREVIEW, MOST_SHOWN = 400, 20  # characters of a text, and conflicts, on the page of people
WHAT_ALPHA_IS = (
    "α and κ are 1 if people always agree and 0 if they agree as often as chance would; 0.8 is commonly asked for."
)


def progress_view(progress: Progress, queue: Queue) -> Markup:
    """Return the strip above the row."""
    now, goal = progress.queues[queue], progress.goal if queue == "finish" else ""
    share = now.done / (now.done + now.left) if now.done + now.left else 1.0
    left = f" of {count(now.done + now.left)} rows, then {goal}" if goal else f" done, {count(now.left)} left"
    title = f"{QUEUES[queue].title}: {percent(now.done, now.done + now.left)}"
    done = tag("span", bar(share), tag("b", count(now.done)), left, class_="done", title=title)
    speed = None
    if progress.seconds is not None:
        pace = f", {progress.per_hour:,.0f} an hour" if progress.per_hour else ""
        words = f"you: {count(progress.verdicts)} · {number(progress.seconds, 1)} s each{pace}"
        speed = tag("span", words, class_="quiet", title=f"{counted(progress.verdicts, 'verdict')} by you{pace}")
    return joined(done, speed, _news(progress.fit))


def _news(fit: FitNews) -> Markup:
    """Return whether there is a promise, as a button that opens the whole story."""
    stamp = html(b.STAMPS[fit.standing])
    more = [sentence(f"{capital(fit.promise)}.") if fit.promise else None]
    if fit.rows_to_go and not fit.changed:
        more.append(sentence("About ", tag("b", _span(fit.rows_to_go)), " more random rows to go."))
    if fit.changed:
        more += [tag("h3", "What the last fit changed"), tag("ul", *(tag("li", change) for change in fit.changed))]
    if fit.failed:
        more.append(sentence(fit.failed, kind="problem"))
    fits, waiting = counted(fit.fits, "fit") if fit.fits else "No fit", counted(fit.waiting, "judged row")
    state = f"{fits} since the page was started; {waiting} not learned from yet."
    more.append(sentence("A fit is running in the background." if fit.running else state, kind="note"))
    headline = fit.changed[0] if fit.changed else ""
    if fit.rows_to_go and not fit.changed:
        headline = f"{_span(fit.rows_to_go)} random rows to go"
    if fit.running:
        headline = "learning …"
    summary = tag("summary", stamp, tag("span", headline or None, class_="quiet", hidden=not headline))
    return tag("details", summary, tag("div", *more, class_="sheet"), class_="menu news")


def _span(ends: tuple[int, int]) -> str:
    return " to ".join(dict.fromkeys(map(count, ends)))


def queue_menu(progress: Progress, queue: Queue) -> Markup:
    """Return the queues to choose from, with what each is good for."""
    unused = [name for name in ("finish", "stream") if not any(progress.queues[name])]
    entries = [_entry(name, progress, name == queue) for name in TO_CHOOSE if name not in unused]
    summary = tag("summary", "Queue: ", tag("b", QUEUES[queue].title))
    return tag("details", summary, tag("ul", *entries, class_="sheet"), class_="menu queues", data_queue=queue)


def _entry(name: Queue, progress: Progress, current: bool) -> Markup:
    words, left = QUEUES[name], progress.queues[name].left
    fit = chip("fit for estimates", kind="good") if name in FOR_ESTIMATES else chip("unfit for estimates", kind="warn")
    lines = (
        tag("span", tag("b", words.title), tag("span", f"{count(left)} left", class_="quiet"), fit, class_="line"),
        tag("span", words.purpose),
        tag("span", words.use, class_="quiet"),
    )
    here = "true" if current else None
    return tag("li", tag("a", *lines, href=link("/", queue=name), data_go="", aria_current=here))


def end_view(queue: Queue, progress: Progress, why: str, folder: Path) -> Markup:
    """Return what is shown when a queue has no more rows for a person: why, and what they can do instead."""
    others = [
        tag("li", tag("a", QUEUES[name].title, href=link("/", queue=name), data_go=""), f": {QUEUES[name].purpose}")
        for name in TO_CHOOSE
        if name != queue and progress.queues[name].left
    ]
    if progress.fit.waiting:
        learn = tag("code", shlex.join(["pcs", "fit", str(folder)]))
        others.append(tag("li", learn, f": learn from {counted(progress.fit.waiting, 'judged row')} now"))
    title = tag("h1", f"Nothing is left for you in “{QUEUES[queue].title}”")
    return tag(
        "div", title, sentence(why), sentence("What next?"), tag("ul", *others), class_="card", id="item", tabindex="-1"
    )


def people_view(progress: Progress, reviews: Mapping[str, Review], reviewer: str) -> Markup:
    """Return reviewers, their agreement, and the rows to settle, as one of them may see that."""
    alone = next(iter(reviews.values())) if len(reviews) == 1 else None
    agreement = _agreement(alone.agreement()) if alone else _agreement_of(reviews)
    return tag(
        "div",
        tag("h1", "People"),
        tag("div", agreement, _reviewers(progress), class_="pair"),
        _conflicts(alone.conflicts(reviewer)) if alone else None,
        class_="people",
    )


def _agreement_of(reviews: Mapping[str, Review]) -> Markup:
    columns = [b.Column("variable"), *b.numbers("rows with two verdicts", "α", "conflicts")]
    rows: list[b.Row] = []
    for name, review in reviews.items():
        agreement = review.agreement()
        rows.append([b.name(name), agreement.rows, agreement.alpha, int(review.state.conflict.sum())])
    return section("agreement", "Agreement", html(b.Table(columns=columns, rows=rows)))


def _agreement(agreement: ReviewerAgreement) -> Markup:
    if not agreement.pairs:
        why = "No row has verdicts of two people yet. --double 0.2 shows a second person every fifth row."
        return section("agreement", "Agreement", sentence(why))
    rows: list[b.Row] = [
        [b.name(f"{pair.first} and {pair.second}"), pair.rows, percent(pair.alike, pair.rows), pair.kappa]
        for pair in agreement.pairs
    ]
    columns = [b.Column("two people"), *b.numbers("rows", "alike", "κ")]
    alpha = tag("b", f"α = {number(agreement.alpha)}", class_="figure")
    summary = sentence(alpha, f" over {counted(agreement.rows, 'row')} with verdicts of two or more")
    table = html(b.Table(columns=columns, rows=rows))
    return section("agreement", "Agreement", summary, table, sentence(WHAT_ALPHA_IS, kind="note"))


def _reviewers(progress: Progress) -> Markup:
    most = sorted(progress.reviewers.items(), key=lambda pair: -pair[1])
    table = b.Table(columns=[b.Column("reviewer"), *b.numbers("rows")], rows=[[b.name(who), n] for who, n in most])
    listed = html(table) if most else sentence("Nobody has reviewed a row yet.")
    reviewed = f"{counted(progress.reviewed, 'row')} of {count(progress.rows)} reviewed"
    total = sentence(f"{reviewed}; the others have the models' label.", kind="note")
    return section("reviewers", "Reviewers", listed, total)


def _conflicts(rows: Sequence[ListedRow]) -> Markup:
    if not rows:
        return section("conflicts", "Conflicts", sentence("No two people differ about a row."))
    start = tag("a", f"Settle them ({count(len(rows))})", href=link("/", queue="conflicts"), class_="button strong")
    rule = sentence("The verdict of a third person settles a row; whoever gives it sees what the others said.")
    listed = tag("ul", *map(_conflict, rows[:MOST_SHOWN]), class_="conflicts")
    return section("conflicts", "Conflicts", rule, sentence(start), listed)


def _conflict(row: ListedRow) -> Markup:
    people = row.reviewed.by_reviewer.items() if row.reviewed else ()
    verdicts = [said_view(name, verdict.label or "skipped") for name, verdict in people]
    return tag(
        "li",
        tag("a", "Row ", user_text(row.id), href=link("/row", id=row.id, shown_by="conflicts")),
        tag("p", readable(clipped(row.text, PREVIEW)), dir="auto"),
        tag("ul", *verdicts, class_="said"),
    )
