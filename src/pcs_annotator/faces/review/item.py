"""One row for a person: text, labels in their fixed order, why, variants, votes, and what the user knows about it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pcs_annotator.base.text import capital, series, short_names
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.variant import ORIGINAL, Variant
from pcs_annotator.faces.review.forms import QUEUES, Visit
from pcs_annotator.faces.review.layout import chip, link, post_form
from pcs_annotator.reviewing.values import Shown, ShownVote
from pcs_annotator.runs.folder_votes import Evidence, Exchange
from pcs_annotator.showing.diff import clipped, marked
from pcs_annotator.showing.formats import DASH, number
from pcs_annotator.showing.markup import Child, Markup, joined, section, sentence, tag, user_text
from pcs_annotator.showing.to_html import bar

SKIP = Markup('<button name="skip" value="1" id="skip" aria-keyshortcuts="S" formnovalidate><kbd>S</kbd>Skip</button>')
UNDO = Markup('<button form="undo" aria-keyshortcuts="U Control+Z"><kbd>U</kbd>Undo</button>')
NOTE = {"placeholder": "Note", "aria_label": "Note"}
BLIND = "What the models and other people say comes after your verdict."
ROOM = 1500  # about how many characters of a variant are shown
ROOM_FOR_QUESTION = 200  # about how many characters of a question are shown; all questions are much the same
EXCERPT = 80  # characters of a reply that are shown while it is folded
MOST_GRADES = 4
LEAST_GRADE = 0.005
DECIDED: Mapping[Any, str] = {"accept": "accepted", "agree": "answers agree", "review": "to review"}
STEPS = (("back", "←", "Row before", "ArrowLeft", "-1"), ("forth", "→", "Row after", "ArrowRight", "1"))
"""The links to the rows before and after: id, sign, name, key and direction."""
OVERRIDES = {"\u202d": "left-to-right override", "\u202e": "right-to-left override"}
_OVERRIDE = re.compile("([\u202d\u202e])")


def item_view(shown: Shown, visit: Visit, keys: Mapping[str, str]) -> Markup:
    """Return a row, the labels to choose from, and what models answered, folded; nobody's answer if it is blind."""
    why = _why(shown.outcome) if shown.outcome else None
    row = text_view(shown, visit, _people(shown, visit.reviewer), why)
    answers = answers_fold(shown, votes_table(shown, shown.outcome.label, "Votes")) if shown.outcome else None
    return joined(tag("div", row, _labels(shown, visit, keys), class_="card judge"), answers)


def text_view(shown: Shown, visit: Visit, *notes: Markup | None) -> Markup:
    """Return the text of a row, and what may be known about it before a verdict."""
    return tag(
        "article",
        _head(shown, visit),
        tag("div", _text(shown), class_="text", id="text", dir="auto", tabindex="0", lang=""),
        _legend(shown.outcome) if shown.words and shown.outcome else None,
        *notes,
        None if shown.outcome else sentence(BLIND, kind="why quiet"),
        id="item",
        tabindex="-1",
        aria_labelledby="item-title",
        aria_describedby="text",
    )


def _text(shown: Shown) -> Markup:
    """Return a text with the words marked that speak for the proposed label, or against it."""
    parts, at = list[Markup](), 0
    for start, end, contribution in shown.words:
        kind = "for" if contribution > 0 else "against"
        word = tag("mark", _in_order(shown.text[start:end]), class_=kind, title=f"speaks {kind} the label")
        parts += [_in_order(shown.text[at:start]), word]
        at = end
    return joined(*parts, _in_order(shown.text[at:])) if parts else readable(shown.text)


def _legend(outcome: Outcome) -> Markup:
    for_, against = tag("mark", "for", class_="for"), tag("mark", "against", class_="against")
    legend = ("Words that speak ", for_, " or ", against, " ", tag("b", user_text(outcome.leaf or "")))
    return sentence(*legend, ", as learned from gold texts.", kind="note")


def readable(text: str) -> Markup:
    """Return a text with characters that reverse it made visible, in the order in which models read it."""
    return _in_order(text) if text else tag("span", "(empty text)", class_="quiet")


def _in_order(text: str) -> Markup:
    return joined(*(_override(part) if part in OVERRIDES else part for part in _OVERRIDE.split(text)))


def _override(character: str) -> Markup:
    name = OVERRIDES[character]
    return tag("span", "⇄", role="img", aria_label=name, title=f"{name}: shown, not applied", class_="sign")


def _head(shown: Shown, visit: Visit) -> Markup:
    """Return the ID of a row, how it came to the person, and links to the rows before and after."""
    queue = QUEUES[shown.queue]
    marks = [chip(queue.title, title=queue.purpose)]
    if not shown.for_estimates:
        marks.append(chip("not for estimates", kind="warn", title=queue.use))
    if shown.held_by:
        marks.append(chip(user_text(shown.held_by), " has this row in hand", kind="warn"))
    return tag(
        "header",
        tag("h1", "Row ", user_text(shown.id), id="item-title"),
        *marks,
        tag("span", *(_step(shown, visit, *step) for step in STEPS), class_="steps"),
        class_="item-head",
    )


def _step(shown: Shown, visit: Visit, *step: str) -> Markup:
    name, arrow, title, key, by = step
    where = link("/step", id=shown.id, by=by, queue=visit.queue)
    keys = {"title": f"{title} (Shift {arrow})", "aria_label": title, "aria_keyshortcuts": f"Shift+{key}"}
    return tag("a", arrow, href=where, id=name, data_go="", **keys, class_="button")


def _labels(shown: Shown, visit: Visit, keys: Mapping[str, str]) -> Markup:
    mine = shown.reviewed.by_reviewer.get(visit.reviewer) if shown.reviewed else None
    chosen = mine.label if mine else None
    labels = tag("ol", *(_label(shown, label, key, chosen) for label, key in keys.items()), class_="labels")
    if shown.steps:
        save = tag("button", tag("kbd", "↵"), "Save", class_="strong")
        proposed = shown.outcome.label if shown.outcome else None
        labels = tag("div", number_field("label", shown.steps, chosen or proposed), save)
    buttons = tag("div", *buttons_view(mine.note if mine else None), class_="beside")
    return verdict_form(shown, visit, labels, buttons, aria_label="Verdict", class_="verdict")


def number_field(name: str, steps: Sequence[str], value: str | None) -> Markup:
    """Return a field for a number, which only takes steps of its range."""
    range_ = {"min": steps[0], "max": steps[-1], "step": f"{float(steps[1]) - float(steps[0]):.9g}"}
    words = dict.fromkeys(("placeholder", "aria_label"), f"{steps[0]} to {steps[-1]}")
    return tag("input", type="number", name_=name, value=value or "", **words, **range_)


def verdict_form(shown: Shown, visit: Visit, *children: Child, **attributes: str) -> Markup:
    """Return a form for verdicts on a row, which sends back how it was shown."""
    carried = {"id": shown.id, "lease": shown.lease, "version": str(shown.version)}
    carried |= {"shown_by": shown.queue, "queue": visit.queue}
    return post_form("verdict", carried, *children, **attributes)


def buttons_view(note: str | None) -> Iterator[Markup]:
    """Yield what is below the labels: skip, undo, and a note."""
    yield SKIP
    yield UNDO
    field = tag("textarea", note, name_="note", id="note", rows="1", maxlength="2000", **NOTE)
    yield tag("label", tag("kbd", "N"), field, class_="note-field")


def _label(shown: Shown, label: str, key: str, chosen: str | None) -> Markup:
    proposed, share = shown.outcome is not None and label == shown.outcome.label, shown.probabilities.get(label)
    marks = [
        tag("span", "proposed ", tag("kbd", "↵"), class_="mark") if proposed else None,
        tag("span", "your verdict", class_="mark yours") if label == chosen else None,
        tag("span", "gold label in the data", class_="mark") if label == shown.gold else None,
    ]
    button = tag(
        "button",
        tag("kbd", key.upper(), hidden=not key),
        user_text(label),
        tag("span", *marks, class_="marks"),
        None if share is None else bar(share, kind="bar" if proposed else "bar soft"),
        None if share is None else tag("span", number(share), class_="number"),
        name_="label",
        value=label,
        data_key=key,
        data_proposed=proposed,
        aria_keyshortcuts=key.upper() or None,
        class_="choice",
    )
    return tag("li", button)


def _why(outcome: Outcome) -> Markup:
    words: list[Child] = ["No label is proposed. "]
    if outcome.label is not None:
        sure = f", score {number(outcome.scores[outcome.label])}, not calibrated. "
        if outcome.confidence is not None:
            sure = f", confidence {number(outcome.confidence)}. "
        tied = outcome.tied if outcome.confidence is None else ()
        label = series(tied or [outcome.label])
        words = ["Tied: " if tied else "Proposed: ", tag("b", user_text(label)), sure]
    if outcome.decision:
        words.append(chip(DECIDED[outcome.decision], kind=outcome.decision))
    reason = tag("span", capital(outcome.reason), dir="auto", class_="reason") if outcome.reason else None
    return sentence(*words, " ", reason, kind="why")


def _people(shown: Shown, reviewer: str) -> Markup | None:
    """Return what others said, as far as this person may know it before judging."""
    if shown.reviewed is None:
        return None
    others = {name: verdict for name, verdict in shown.reviewed.by_reviewer.items() if name != reviewer}
    if not others:
        return None
    notes = {name: tag("q", verdict.note, dir="auto") for name, verdict in others.items() if verdict.note}
    lines = [said_view(name, verdict.label or "skipped", notes.get(name)) for name, verdict in others.items()]
    differ = shown.reviewed.in_conflict
    title = tag("h2", "Reviewers differ" if differ else "Other reviewers")
    return tag("div", title, tag("ul", *lines), class_="others conflict" if differ else "others")


def said_view(name: str, label: str, note: Markup | None = None) -> Markup:
    """Return a line with what somebody said."""
    return tag("li", user_text(name), ": ", tag("b", user_text(label)), note)


def answers_fold(shown: Shown, *tables: Markup) -> Markup:
    """Return what models answered, folded, with a fold for prompts and replies."""
    unread = tag("p", f"Variants are not shown: {shown.unread}", class_="quiet") if shown.unread else None
    title = tag("summary", tag("h2", "Variants and votes"), tag("kbd", "V"))
    return tag("details", title, unread, *tables, evidence_fold(shown), id="answers", class_="card")


def votes_table(shown: Shown, label: str | None, about: str, *, texts: bool = True) -> Markup:
    """Return every model's answer under every relation and, with texts, every variant with what changed in it."""
    annotators = list(dict.fromkeys(vote.annotator for vote in shown.votes))
    votes: dict[tuple[str, str], list[ShownVote]] = {}
    for vote in shown.votes:
        votes.setdefault((vote.relation, vote.annotator), []).append(vote)
    variants = {variant.relation: variant for variant in shown.variants}
    relations = list(dict.fromkeys([ORIGINAL, *variants, *(vote.relation for vote in shown.votes)]))
    head = [
        tag("th", title, scope="col", dir="auto")
        for title in ("relation", *(["text or question"] if texts else []), *short_names(annotators))
    ]
    lines = []
    for relation in relations:
        variant = tag("td", _variant(shown, relation, variants.get(relation)), class_="variant", dir="auto")
        answers = [_votes(votes.get((relation, name), ()), name, label) for name in annotators]
        title = tag("th", relation, scope="row", dir="auto")
        lines.append(tag("tr", title, variant if texts else None, *answers))
    whole = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *lines), class_="votes")
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=about)


def evidence_fold(shown: Shown) -> Markup:
    """Return a fold for prompts and replies, which the script fills when it is opened."""
    where = tag("a", "Show them", href=link("/evidence", id=shown.id))
    return tag("details", tag("summary", "Prompts and replies"), sentence(where), class_="evidence")


def evidence_view(evidence: Evidence) -> Markup:
    """Return every question as it was sent with its reply, folded, or why there are none."""
    exchanges = [exchange for some in evidence.exchanges for exchange in some]
    if not exchanges:
        missing = evidence.missing or "the ledger has no replies about this row"
        return sentence(f"Not shown: {missing}.", kind="quiet exchanges")
    return tag("div", *map(_exchange, exchanges), class_="exchanges")


def _exchange(exchange: Exchange) -> Markup:
    reply, used = exchange.reply, exchange.reply.usage
    tokens = " + ".join(DASH if count is None else f"{count:,}" for count in (used.input_tokens, used.output_tokens))
    named = (tag("b", user_text(exchange.relation)), " ", user_text(exchange.annotator), " ")
    excerpt = tag("q", clipped(reply.text, EXCERPT), dir="auto")
    spent = tag("span", f"{tokens} tokens, {reply.latency:.1f} s", class_="quiet")
    turns = [*((message.role, message.content) for message in exchange.messages), ("reply", reply.text)]
    messages = [joined(tag("b", who), tag("pre", readable(text), dir="auto", tabindex="0")) for who, text in turns]
    return tag("details", tag("summary", *named, excerpt, " ", spent), *messages)


def _variant(shown: Shown, relation: str, variant: Variant | None) -> Child:
    if relation == ORIGINAL:
        return tag("span", "the text as it is", class_="quiet")
    if variant is None:
        return tag("span", "not shown" if shown.unread else "no variant recorded", class_="quiet")
    if relation in shown.questions:
        return marked(shown.question, shown.questions[relation], ROOM_FOR_QUESTION)
    if variant.status == "original":
        return tag("span", "same text, question put differently", class_="quiet")
    rewritten = variant.refused if variant.text is None else variant.text
    changed = None if rewritten is None else marked(shown.text, rewritten, ROOM)
    if variant.status == "changed":
        return changed
    why = f"{variant.status.replace('_', ' ')}{f': {variant.reason}' if variant.reason else ''}"
    refused = None if changed is None else tag("span", changed, class_="refused")
    return joined(tag("span", why, class_="quiet"), refused)


def _votes(votes: Sequence[ShownVote], annotator: str, label: str | None) -> Markup:
    if not votes:
        return tag("td", DASH, class_="vote unasked", data_by=annotator, title="not asked")
    return tag("td", *(_vote(vote, label) for vote in votes), class_="vote", data_by=annotator, dir="auto")


def _vote(vote: ShownVote, label: str | None) -> Markup:
    if vote.label is None:
        return tag("span", "no answer", class_="silent")
    kind = "yes" if vote.label == label else "no"
    if vote.grades is None:
        return tag("span", user_text(vote.label), class_=kind)
    rest = sorted(((share, name) for name, share in vote.grades.items() if name != vote.label), reverse=True)
    seen = [joined(user_text(name), f" {number(share)}") for share, name in rest[:MOST_GRADES] if share >= LEAST_GRADE]
    others = tag("small", *(tag("span", grade) for grade in seen)) if seen else None
    return tag("span", user_text(vote.label), f" {number(vote.grades.get(vote.label))}", others, class_=kind)


def beside_view(shown: Shown) -> Markup | None:
    """Return the user's own columns of a row."""
    if not shown.columns:
        return None
    pairs = [
        tag("div", tag("dt", name, dir="auto"), tag("dd", clipped(value, ROOM), dir="auto"))
        for name, value in shown.columns.items()
    ]
    return section("columns", "Your columns", tag("dl", *pairs))
