"""Reads a label from a model's reply, or a silence with its reason.

The first rule that applies decides:

1. Reasoning is not an answer: `<think>…</think>` and similar tags are left out, up to the end if never closed.
2. The last complete `<label>…</label>`. If it contains no label, that is a silence. Tags that only list the options,
   such as `<label>Fake</label> or <label>Real</label>`, are not a decision; one tag after another is a correction, and
   the last one counts, unless three or more labels are listed in full.
3. JSON with a key such as `label` or `answer`.
4. The bare label: the whole reply, or every line of the form `Answer: …`.
5. The only label that occurs in the reply as a whole word without a negation before it.

Verbatim quotations of the text to label never count, unless the reply is a bare label. A tag that also occurs in the
text counts only if it is alone on its line, as an answer is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, pairwise
from json import loads
from typing import Literal, NamedTuple

from pcs_annotator.asking.annotators.prompt import AnswerFormat, letters_of
from pcs_annotator.asking.annotators.prose import verdict
from pcs_annotator.asking.annotators.quotation import without_fence, without_quotations
from pcs_annotator.asking.annotators.vocabulary import LabelVocabulary, vocabulary

ParseKind = Literal["", "bare", "tag", "json", "stated", "prose"]

# Possessive quantifiers, because a reply can be hostile: no pattern may try a second way to match the same characters.
_REASONING = re.compile(r"<\s*+(/?+)\s*+(think|thinking|thought|reasoning|reflection|scratchpad)\s*+>", re.IGNORECASE)
_TAG = re.compile(r"<\s*+(/?+)\s*+label\s*+>", re.IGNORECASE)
_ALTERNATIVES = re.compile(r"\s*(?:,|;|/|\||(?:,\s*)?(?:and/or|and|or))\s*", re.IGNORECASE)
_CUT_OFF = re.compile(
    r"\s*(?:[,;]\s*<\s*(?:l|\Z)|(?:/|\||(?:and/or|and|or)(?!\w))\s*(?:<\s*(?:l|\Z)|\Z))", re.IGNORECASE
)
_LIST_STEP = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])?\s*")
_LONGEST_GAP = 12
_PAIR = (
    r"""["'](?:label|answer|category|class|sentiment)["']\s*+:\s*+(\[?+)\s*+"""
    r"""("(?:[^"\\\n]|\\.)*+"|'[^'\\\n]*+'|-?\d++(?![.\d])|true\b|false\b)\s*+(\]?+)"""
)
_KEYED = re.compile(_PAIR, re.IGNORECASE)
_ANSWER = re.compile(rf"<\s*+label\s*+>[^<>]*+<\s*+/\s*+label\s*+>|{_PAIR}", re.IGNORECASE)
_STATED = re.compile(
    r"(?:(?:so|thus|therefore|hence),?\s+)?(?:(?:my|the|your|its)\s+)?"
    r"(?:(?:final|correct|best|right|predicted|chosen|appropriate|overall)\s+)?"
    r"(?:answer|category|class|classification|label|output|prediction|sentiment|tag|verdict)"
    r"(?:\s+(?:for|of)\s+(?:the|this)\s+\w+)?"
    r"(?:\s+(?:is|would\s+be|should\s+be)\b\s*:?|\s*[:=]|\s*[-–=]>|\s*→|\s+[-–—])\s*+",
    re.IGNORECASE,
)
_LETTERED = re.compile(r"[\s*_`\"'(\[]*+([A-Z])[*_`\"']*+[.):\]]")
_EMPHASIS = str.maketrans("", "", "*`")
_STATEMENT_ROOM = 80
# A reply with more tags than this is a list rather than an answer; reading on would only cost time.
_TAGS_LOOKED_AT = 50
_ECHOES_LOOKED_AT = 200
_BESIDE = " \t\r*_`{}"


class Reading(NamedTuple):
    """The label in a reply, or the reason why there is none.

    Attributes:
        label: One of the labels, as the user spells it; None for a silence.
        reason: Why there is no label; empty if there is one.
        how: The rule that found the label; empty for a silence.
    """

    label: str | None
    reason: str = ""
    how: ParseKind = ""


class Answer(NamedTuple):
    """The label in a reply, and how it is put.

    Attributes:
        label: One of the labels; None for a silence.
        reason: Why there is no label; empty if there is one.
        how: The rule that found the label; empty for a silence.
        choices: What the reply chooses from: the labels, or their letters.
        chosen: Its choice; empty for a silence.
    """

    label: str | None
    reason: str
    how: ParseKind
    choices: tuple[str, ...]
    chosen: str


class _Tag(NamedTuple):
    start: int
    end: int
    label: str | None


def read_label(reply: str, labels: Sequence[str], asked: str = "") -> Reading:
    """Return the label that a reply decides for, or a silence with its reason; it never raises and never guesses.

    Args:
        reply: The model's reply.
        labels: The labels to choose from.
        asked: The text to label; a label that the reply only quotes from it does not count.

    Examples:
        >>> read_label("I first thought <label>Real</label>, but it is <label>Fake</label>.", ["Fake", "Real"]).label
        'Fake'
        >>> read_label("The headline is not real news.", ["Fake", "Real"])
        Reading(label=None, reason='negated label', how='')
    """
    words = vocabulary(tuple(labels))
    answer = reply.strip()
    if not answer:
        return Reading(None, "empty reply")
    label = words.match(answer)
    if label is not None:
        return Reading(label, how="bare")
    if answer == asked.strip():
        return Reading(None, "only echoes the text")
    if answer.startswith("<label>") and answer.endswith("</label>"):
        label = words.match(answer[7:-8])
        if label is not None:
            return Reading(label, how="tag")
    return _read_long(answer, words, asked)


def read_answer(reply: str, labels: Sequence[str], answer: AnswerFormat, asked: str = "") -> Answer:
    """Return the label that a reply to a question decides for, in the form that the question asked for.

    A reply that names a label where its letter was asked for counts, too.

    Examples:
        >>> read_answer("B", ["fake", "real"], "bare letter").label
        'real'
        >>> read_answer("Fake", ["fake", "real"], "bare letter").label
        'fake'
    """
    words = tuple(labels)
    if answer in ("tag", "bare"):
        reading = read_label(reply, words, asked)
        return Answer(*reading, words, reading.label or "")
    letters = letters_of(labels)
    reading = read_label(reply, letters, asked)
    lead = _LETTERED.match(reply)
    if reading.how == "prose" and (lead is None or lead[1] != reading.label):
        reading = Reading(None, "no label in reply")  # in a sentence, "A" and "I" are words
    by_letter = Answer(*reading, letters, reading.label or "")
    if reading.label is not None:
        by_letter = by_letter._replace(label=labels[letters.index(reading.label)])
        if reading.how == "bare":
            return by_letter
    by_word = read_answer(reply, labels, "bare", asked)
    if by_word.label is None:
        return by_letter
    if by_letter.label not in (None, by_word.label):
        return by_letter._replace(label=None, reason="letter and label differ", how="")
    return by_word if by_letter.label is None else by_letter


def _read_long(answer: str, words: LabelVocabulary, asked: str) -> Reading:
    said = without_reasoning(answer)
    if not said.strip():
        return Reading(None, "only reasoning, no answer")
    own = without_fence(said)
    own = _without_echoes(without_quotations(own, asked, words), asked) if asked else own
    reading = _from_tags(own, words) or _from_json(own, words)
    if reading is None and answer in asked:
        return Reading(None, "only echoes the text")
    reading = reading or _from_statement(own, words)
    if reading is not None:
        return reading
    label, reason = verdict(own, words)
    if reason == "no label in reply" and own != said:
        reason = "only echoes the text"
    return Reading(label, reason, "prose" if label is not None else "")


def without_reasoning(reply: str) -> str:
    """Return a reply without the contents of `<think>…</think>` and similar tags."""
    kept: list[str] = []
    position, opened = 0, ""
    for found in _REASONING.finditer(reply):
        closing, name = found[1], found[2].lower()
        if not closing and not opened:
            kept.append(reply[position : found.start()])
            opened = name
        elif closing and opened in ("", name):
            # Closed without being opened: the server's template opened it, so everything before was reasoning as well.
            kept = kept if opened else []
            position, opened = found.end(), ""
    return "\n".join(kept if opened else [*kept, reply[position:]])


def _without_echoes(text: str, asked: str) -> str:
    """Return the text without tags and JSON answers that also occur in `asked`, unless they are alone on their line."""
    kept, position = [], 0
    for found in islice(_ANSWER.finditer(text), _ECHOES_LOOKED_AT):
        if found[0] in asked and not _alone_on_line(text, *found.span()):
            kept.append(text[position : found.start()])
            position = found.end()
    return "\n".join([*kept, text[position:]])


def _alone_on_line(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - _STATEMENT_ROOM) : start].rpartition("\n")[2]
    after = text[end : end + _STATEMENT_ROOM].partition("\n")[0]
    around = (before + after).strip(_BESIDE)
    return not around or _STATED.fullmatch(around) is not None


def _from_tags(text: str, words: LabelVocabulary) -> Reading | None:
    tags = _complete_tags(text, words)
    if not tags:
        return None
    decisions = [run for run in _runs(text, tags) if not _lists_options(text, run, words)]
    if not decisions:
        return Reading(None, "lists the options")
    label = decisions[-1][-1].label
    return Reading(label, how="tag") if label is not None else Reading(None, "no label in the tag")


def _complete_tags(text: str, words: LabelVocabulary) -> list[_Tag]:
    tags: list[_Tag] = []
    opening: re.Match[str] | None = None
    for found in _TAG.finditer(text):
        if not found[1]:
            opening = found
        elif opening is not None:
            tags.append(_Tag(opening.start(), found.end(), words.match(text[opening.end() : found.start()])))
            opening = None
    return tags[-_TAGS_LOOKED_AT:]


def _runs(text: str, tags: list[_Tag]) -> list[list[_Tag]]:
    """Return the tags in groups, with only list marks, `or` and the like between the tags of a group."""
    runs = [[tags[0]]]
    for before, after in pairwise(tags):
        gap = text[before.end : min(after.start, before.end + _LONGEST_GAP)]
        if _ALTERNATIVES.fullmatch(gap) or _LIST_STEP.fullmatch(gap):
            runs[-1].append(after)
        else:
            runs.append([after])
    return runs


def _lists_options(text: str, run: list[_Tag], words: LabelVocabulary) -> bool:
    named = {tag.label for tag in run}
    if _CUT_OFF.match(text, run[-1].end):
        return True
    if len(named) < 2:
        return False
    gaps = (text[before.end : after.start] for before, after in pairwise(run))
    return len(named) >= max(3, len(words.labels)) or any(_ALTERNATIVES.fullmatch(gap) for gap in gaps)


def _from_json(text: str, words: LabelVocabulary) -> Reading | None:
    values = list(_KEYED.finditer(text))
    if not values:
        return None
    # a list is an answer only if it has one element
    single = [found for found in values if bool(found[1]) == bool(found[3])]
    named = {words.match(_unquoted(found[2])) for found in single} - {None}
    if len(named) == 1:
        return Reading(named.pop(), how="json")
    return Reading(None, "two labels in reply" if named else "no label in the JSON")


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value.strip("'")
    try:
        return str(loads(value, strict=False))
    except ValueError:
        return value[1:-1]


def _from_statement(text: str, words: LabelVocabulary) -> Reading | None:
    label = words.match(text)
    if label is not None:
        return Reading(label, how="bare")
    stated = set()
    for line in text.splitlines():
        if len(line) > words.longest + _STATEMENT_ROOM:
            continue
        plain = line.translate(_EMPHASIS).strip().lstrip("#>- ")
        lead = _STATED.match(plain)
        label = words.match(plain[lead.end() :]) if lead else None
        if label is not None:
            stated.add(label)
    return Reading(stated.pop(), how="stated") if len(stated) == 1 else None
