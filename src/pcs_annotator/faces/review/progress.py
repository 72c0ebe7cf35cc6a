"""How the review goes: queues to choose from, work done, and what the machine learned meanwhile."""

from __future__ import annotations

from pcs_annotator.core.review import Queue
from pcs_annotator.faces.review.layout import link
from pcs_annotator.faces.review.queues import QUEUES, TO_CHOOSE
from pcs_annotator.runs.review.values import FitNews, Progress
from pcs_annotator.showing.drawings import bar
from pcs_annotator.showing.formats import capital, count, counted, number, percent
from pcs_annotator.showing.markup import Child, Markup, joined, sentence, tag


def progress_view(progress: Progress, queue: Queue) -> Markup:
    """Return the strip above the row."""
    now = progress.queues[queue]
    share = now.done / (now.done + now.left) if now.done + now.left else 1.0
    done = tag(
        "span",
        bar(share),
        tag("b", count(now.done)),
        f" done, {count(now.left)} left",
        class_="done",
        title=f"{QUEUES[queue].title}: {percent(now.done, now.done + now.left)}",
    )
    return joined(done, _pace(progress), _news(progress.fit))


def _pace(progress: Progress) -> Markup | None:
    if progress.seconds is None:
        return None
    pace = f", {progress.per_hour:,.0f} an hour" if progress.per_hour else ""
    said = f"you: {count(progress.verdicts)} · {number(progress.seconds, 1)} s each{pace}"
    return tag("span", said, class_="quiet", title=f"{counted(progress.verdicts, 'verdict')} by you{pace}")


def _news(fit: FitNews) -> Markup:
    """Return whether there is a promise, as a button that opens the whole story."""
    stamp = tag(
        "span", "promise holds" if fit.holds else "no promise yet", class_=f"stamp {'good' if fit.holds else ''}"
    )
    more = [sentence(f"{capital(fit.promise)}.") if fit.promise else None]
    if fit.rows_to_go and not fit.changed:
        more.append(sentence("About ", tag("b", _span(fit.rows_to_go)), " more random rows to go."))
    if fit.changed:
        more += [tag("h3", "What the last fit changed"), tag("ul", *(tag("li", one) for one in fit.changed))]
    if fit.failed:
        more.append(sentence(fit.failed, kind="problem"))
    more.append(sentence(_state(fit), kind="note"))
    return tag(
        "details",
        tag("summary", stamp, tag("span", _headline(fit) or None, class_="quiet", hidden=not _headline(fit))),
        tag("div", *more, class_="sheet"),
        class_="menu news",
    )


def _headline(fit: FitNews) -> str:
    if fit.running:
        return "learning …"
    if fit.rows_to_go and not fit.changed:
        return f"{_span(fit.rows_to_go)} random rows to go"
    return fit.changed[0] if fit.changed else ""


def _span(ends: tuple[int, int]) -> str:
    low, high = ends
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def _state(fit: FitNews) -> str:
    if fit.running:
        return "A fit is running in the background."
    fits = counted(fit.fits, "fit") if fit.fits else "No fit"
    return f"{fits} since the page was started; {counted(fit.waiting, 'verdict')} not learned from yet."


def queue_menu(progress: Progress, queue: Queue) -> Markup:
    """Return the queues to choose from, with what each is good for."""
    entries = [_entry(name, progress, name == queue) for name in TO_CHOOSE]
    summary = tag("summary", "Queue: ", tag("b", QUEUES[queue].title))
    return tag("details", summary, tag("ul", *entries, class_="sheet"), class_="menu queues", data_queue=queue)


def _entry(name: Queue, progress: Progress, current: bool) -> Markup:
    words, left = QUEUES[name], progress.queues[name].left
    fit: list[Child] = [
        tag(
            "span",
            "fit for estimates" if words.estimates else "unfit for estimates",
            class_=f"chip{'' if words.estimates else ' warn'}",
        )
    ]
    return tag(
        "li",
        tag(
            "a",
            tag("span", tag("b", words.title), tag("span", f"{count(left)} left", class_="quiet"), *fit, class_="line"),
            tag("span", words.purpose),
            tag("span", words.use, class_="quiet"),
            href=link("/", queue=name),
            data_go="",
            aria_current="true" if current else None,
        ),
    )


def end_view(queue: Queue, progress: Progress) -> Markup:
    """Return what is shown when a queue has no more rows for a person: the queues that may have some."""
    others = [
        tag("li", tag("a", QUEUES[name].title, href=link("/", queue=name), data_go=""), f": {QUEUES[name].purpose}")
        for name in TO_CHOOSE
        if name != queue and progress.queues[name].left
    ]
    title = tag("h1", f"Nothing is left for you in “{QUEUES[queue].title}”")
    if others:
        advice = joined(sentence("Choose another queue:"), tag("ul", *others))
    else:
        every = tag("a", "Rows", href="/rows")
        advice = tag("p", "Every row has a gold label or a verdict. ", every, " lists all of them.")
    return tag("div", title, advice, class_="card", id="item", tabindex="-1")
