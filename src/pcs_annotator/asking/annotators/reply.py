"""Reads a label from a model's reply, or a silence with its reason.

Only the model's own words are read. What it repeats from the text or the prompt, altered or not, is left out first (see
`quotation`). So are phrases in quotation marks that the text has, and its tags and JSON answers, unless they are alone
on their line in the reply as it came, as an answer is. Whether tags list the options is judged on the reply as it
came, too. A reply that is nothing but a label always counts, because a quotation of it looks the same.

The first rule that applies decides:

1. Reasoning is not an answer: `<think>…</think>` and similar tags are left out, up to the end if never closed.
2. The last complete `<label>…</label>`. If it contains no label, that is a silence. Tags that only list the options,
   such as `<label>Fake</label> or <label>Real</label>`, are not a decision; one tag after another is a correction, and
   the last one counts, unless three or more labels are listed in full.
3. JSON with a key such as `label` or `answer`.
4. The bare label: the whole reply, or every line of the form `Answer: …`.
5. The only label that occurs in the reply as a whole word without a negation before it.
"""

import re
from collections.abc import Sequence
from itertools import islice, pairwise
from json import loads
from typing import Literal, NamedTuple

from pcs_annotator.asking.annotators.prompt import NOTHING
from pcs_annotator.asking.annotators.prose import label_in_prose
from pcs_annotator.asking.annotators.quotation import ECHO, blanked, collapsed, normal, normal_text, own_words
from pcs_annotator.asking.annotators.vocabulary import LabelVocabulary, vocabulary
from pcs_annotator.base.thinking import thinking_spans, without_thinking
from pcs_annotator.core.chat import Message
from pcs_annotator.core.numbers import nearest_step, number_in
from pcs_annotator.core.passages import NO, YES
from pcs_annotator.core.task import AskedTogether
from pcs_annotator.models.logprobs import ANSWER_KEY, OPENING_TAG

ParseKind = Literal["", "bare", "tag", "json", "stated", "prose"]

# Possessive quantifiers, because a reply can be hostile: no pattern may try a second way to match the same characters.
_TAG = re.compile(r"<\s*+(/?+)\s*+label\s*+>", re.IGNORECASE)
# "And" and "or" in the languages of our prompts.
_AND_OR = "and/or|and|or|und|oder|et|ou|y|e|o|en|of|i|lub|и|или|ve|veya|和|或|と|または|و|أو|और|या"
_ALTERNATIVES = re.compile(rf"\s*(?:[,،、，;؛；/|]|(?:[,،、，]\s*)?(?:{_AND_OR}))\s*", re.IGNORECASE)
_CUT_OFF = re.compile(
    rf"\s*+(?:[,،、，;؛；]\s*+<\s*+(?:l|\Z)|(?:/|\||(?:{_AND_OR})(?!\w))\s*+(?:<\s*+(?:l|\Z)|\Z))", re.IGNORECASE
)
_LIST_STEP = re.compile(r"\s*+(?:[-*•]|\d{1,2}[.)])?+\s*+")
_LONGEST_GAP = 12
_PAIR = (
    rf"{ANSWER_KEY}(\[?+)\s*+"
    r"""("(?:[^"\\\n]|\\.)*+"|'[^'\\\n]*+'|-?\d++(?![.\d])|true\b|false\b)\s*+(\]?+)"""
)
_KEYED = re.compile(_PAIR, re.IGNORECASE)
_QUOTES = '"“”„`«»'
_FORM = rf"{OPENING_TAG}[^<>]*+<\s*+/\s*+label\s*+>|{_PAIR}"
_ANSWER = re.compile(_FORM, re.IGNORECASE)
_QUOTING = re.compile(f"[<'{_QUOTES}]")
_QUOTABLE = re.compile(
    rf"{_FORM}|(?P<phrase>(?<!\w)[{_QUOTES}](?=\w++[^\w{_QUOTES}\n]++\w)[^{_QUOTES}\n]++[{_QUOTES}])", re.IGNORECASE
)
_STATED = re.compile(
    r"(?:(?:so|thus|therefore|hence),?\s+)?(?:(?:my|the|your|its)\s+)?"
    r"(?:(?:final|correct|best|right|predicted|chosen|appropriate|overall)\s+)?"
    r"(?:answer|category|class|classification|label|output|prediction|sentiment|tag|verdict)"
    r"(?:\s+(?:for|of)\s+(?:the|this)\s+\w+)?"
    r"(?:\s+(?:is|would\s+be|should\s+be)\b\s*:?|\s*[:=]|\s*[-–=]>|\s*→|\s+[-–—])\s*+",
    re.IGNORECASE,
)
_EMPHASIS = str.maketrans("", "", "*`")
_STATEMENT_ROOM = 80
_QUOTATIONS_LOOKED_AT = 200
# Of longer replies, both ends are read: that is where answers are.
_LONGEST_READ = 1_000_000
_BESIDE = f" \t\r*_`{{}}{ECHO}"


class ParsedReply(NamedTuple):
    """The label in a reply, or the reason why there is none."""

    label: str | None  # one of the labels, as the user spells it; None for a silence
    reason: str = ""  # why there is no label; empty if there is one
    how: ParseKind = ""  # the rule that found the label; empty for a silence


class _Tag(NamedTuple):
    start: int
    end: int
    label: str | None
    own: bool


def read_label(reply: str, labels: Sequence[str], asked: str = "", prompt: Sequence[Message] = ()) -> ParsedReply:
    """Return the label that a reply decides for, or a silence with its reason; it never raises and never guesses.

    Args:
        reply: The model's reply.
        labels: The labels to choose from.
        asked: The text to label; a label that the reply only repeats from it does not count.
        prompt: The messages that the model replied to; repeating them is not an answer.

    Examples:
        >>> read_label("I first thought <label>Real</label>, but it is <label>Fake</label>.", ["Fake", "Real"]).label
        'Fake'
        >>> read_label("The headline is not real news.", ["Fake", "Real"])
        ParsedReply(label=None, reason='negated label', how='')
    """
    words = vocabulary(tuple(labels))
    answer = reply.strip()
    return _read_short(answer, words, asked) or _read_long(*_own_words(answer, words, asked, prompt), asked, words)


def read_number(reply: str, labels: Sequence[str]) -> ParsedReply:
    """Return the step of a number in a reply: in its last tag, else in the whole of it; a range is a silence.

    >>> read_number("<label>about 1,200 euros</label>", ("0", "500", "1000", "1500")).label
    '1000'
    """
    answer = without_thinking(reply)
    tags = re.findall(rf"{OPENING_TAG}([^<>]*+)<\s*+/\s*+label\s*+>", answer, re.IGNORECASE)
    value = number_in(tags[-1] if tags else answer)
    if value is None:
        return ParsedReply(None, "no number, or several" if answer.strip() else "empty reply")
    label = nearest_step(value, labels)
    return ParsedReply(label, "" if label else "outside the range", "" if label is None else "tag" if tags else "bare")


def _read_short(answer: str, words: LabelVocabulary, asked: str) -> ParsedReply | None:
    if not answer:
        return ParsedReply(None, "empty reply")
    label = words.match(answer)
    if label is not None:
        return ParsedReply(label, how="bare")
    if len(answer) == len(asked.strip()) and answer.casefold() == asked.strip().casefold():
        return ParsedReply(None, "only echoes the text")
    if answer.startswith("<label>") and answer.endswith("</label>"):
        label = words.match(answer[7:-8])
        if label is not None:
            return ParsedReply(label, how="tag")
    return None


def _own_words(answer: str, words: LabelVocabulary, asked: str, prompt: Sequence[Message]) -> tuple[str, str]:
    """Return a reply without its reasoning, and only its own words; both have every character in its place."""
    if len(answer) > _LONGEST_READ:
        answer = f"{answer[: _LONGEST_READ // 2]}\n{answer[-_LONGEST_READ // 2 :]}"
    written = own_words(answer, asked, prompt, words.longest_answer) if asked else answer
    # Reasoning is found after repetitions, because a text cannot open or close it.
    reasoning = thinking_spans(written)
    came, written = blanked(answer, reasoning), blanked(written, reasoning)
    if asked and _QUOTING.search(written):
        written = _without_short_quotations(came, written, words, asked)
    return came, written


def _read_long(came: str, written: str, asked: str, words: LabelVocabulary) -> ParsedReply:
    if not came.strip():
        return ParsedReply(None, "only reasoning, no answer")
    if _is_part_of_text(came, asked):
        return ParsedReply(None, "only echoes the text")
    reading = _from_tags(came, written, words)
    answer = collapsed(written)
    reading = reading or _from_json(answer, words) or _from_statement(answer, words)
    if reading is not None:
        return reading
    label, reason = label_in_prose(answer, words)
    if reason == "no label in reply" and written != came:
        reason = "only echoes the text"
    return ParsedReply(label, reason, "prose" if label is not None else "")


def _is_part_of_text(came: str, asked: str) -> bool:
    """Return whether the text has the whole reply in it, and the reply is not just a tag or JSON, as an answer is."""
    if len(came) > len(asked) or normal(came) not in normal_text(asked):
        return False
    return bool(_ANSWER.sub("", came).strip(_BESIDE + "\n"))


def without_reasoning(reply: str) -> str:
    """Return a reply with white space in the place of `<think>…</think>` and similar tags."""
    return blanked(reply, thinking_spans(reply))


def _without_short_quotations(came: str, written: str, words: LabelVocabulary, asked: str) -> str:
    """Leave out tags and JSON answers that the text has, unless alone on their line, and phrases in quotation marks."""
    quotations = list(islice(_QUOTABLE.finditer(written), _QUOTATIONS_LOOKED_AT))
    text = normal_text(asked)
    options = {form.start() for pair in pairwise(quotations) if _are_options(came, *pair) for form in pair}
    return blanked(
        written,
        [
            form.span()
            for form in quotations
            if normal(form[0].strip(_QUOTES)) in text
            and form.start() not in options
            and (words.match(form[0]) is None if form["phrase"] else not _alone_on_line(came, *form.span()))
        ],
    )


def _are_options(text: str, before: re.Match[str], after: re.Match[str]) -> bool:
    gap = text[before.end() : min(after.start(), before.end() + _LONGEST_GAP)]
    return _ALTERNATIVES.fullmatch(gap.strip("{}[]\"' ")) is not None


def _alone_on_line(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - _STATEMENT_ROOM) : start].rpartition("\n")[2]
    after = text[end : end + _STATEMENT_ROOM].partition("\n")[0]
    around = (before + after).strip(_BESIDE)
    return not around or _STATED.fullmatch(around) is not None


def _from_tags(came: str, written: str, words: LabelVocabulary) -> ParsedReply | None:
    tags = _complete_tags(came, written, words)
    if not any(tag.own for tag in tags):
        return None
    decisions = [tag for run in _runs(came, tags) if not _lists_options(came, run, words) for tag in run if tag.own]
    if not decisions:
        return ParsedReply(None, "lists the options")
    label = decisions[-1].label
    return ParsedReply(label, how="tag") if label is not None else ParsedReply(None, "no label in the tag")


def _complete_tags(came: str, written: str, words: LabelVocabulary) -> list[_Tag]:
    """Return the tags of the reply as it came, because a list of options is one even if the text has one of them."""
    tags: list[_Tag] = []
    opening: re.Match[str] | None = None
    for match in _TAG.finditer(came):
        if not match[1]:
            opening = match
        elif opening is not None:
            inside = slice(opening.end(), match.start())
            label = words.match(came[inside])
            tags.append(_Tag(opening.start(), match.end(), label, came[inside] == written[inside]))
            opening = None
    return tags


def _runs(text: str, tags: list[_Tag]) -> list[list[_Tag]]:
    """Return the tags in groups, with only list marks, `or` and the like between the tags of a group."""
    runs = [[tags[0]]]
    for before, after in pairwise(tags):
        gap = text[before.end : min(after.start, before.end + _LONGEST_GAP)]
        if _ALTERNATIVES.fullmatch(gap) or (before.own == after.own and _LIST_STEP.fullmatch(gap)):
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


def _from_json(text: str, words: LabelVocabulary) -> ParsedReply | None:
    values = list(_KEYED.finditer(text))
    if not values:
        return None
    # a list is an answer only if it has one element
    single = [match for match in values if bool(match[1]) == bool(match[3])]
    named = {words.match(_unquoted(match[2])) for match in single} - {None}
    if len(named) == 1:
        return ParsedReply(named.pop(), how="json")
    return ParsedReply(None, "two labels in reply" if named else "no label in the JSON")


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value.strip("'")
    try:
        return str(loads(value, strict=False))
    except ValueError:
        return value[1:-1]


def _from_statement(text: str, words: LabelVocabulary) -> ParsedReply | None:
    label = words.match(text)
    if label is not None:
        return ParsedReply(label, how="bare")
    stated = set()
    for line in text.splitlines():
        if len(line) > words.longest + _STATEMENT_ROOM:
            continue
        plain = line.translate(_EMPHASIS).strip().lstrip("#>- ")
        lead = _STATED.match(plain)
        label = words.match(plain[lead.end() :]) if lead else None
        if label is not None:
            stated.add(label)
    return ParsedReply(stated.pop(), how="stated") if len(stated) == 1 else None


# Every variable of a codebook is a task of its own, with its own votes. Tasks that are asked together have the same
# prompt, so that only the first of them pays for the call; each reads its own line of the reply.
TOKENS_PER_PART = 48  # an answer has a line for each part
_BETWEEN = re.compile(r"[;,|\n]|\band\b")


def read_part(reply: str, asked: AskedTogether, text: str, prompt: Sequence[Message]) -> ParsedReply:
    """Return the label of one variable in a reply to several questions; a variable that cannot be read is silent."""
    part = asked.own
    line = _own_line(reply, asked)
    if not part.many:
        return read_label(line, part.labels, text, prompt)
    *answers, _ = re.split("</label>", line, flags=re.IGNORECASE)
    tags = [
        tag[1] for answer in answers if len(tag := re.split("<label>", answer, maxsplit=1, flags=re.IGNORECASE)) > 1
    ]
    if not tags:
        return ParsedReply(None, f"no <{part.name}> in the reply")
    words = vocabulary((*part.labels, NOTHING))
    whole = words.match(tags[-1])  # a label may have a comma in it
    named = [whole] if whole else [words.match(name) for name in _BETWEEN.split(tags[-1].strip().strip("[]")) if name]
    if not named or None in named or (NOTHING in named and len(named) > 1):
        return ParsedReply(None, f"<{part.name}> has something that is not a label")
    return ParsedReply(YES if asked.label in named else NO, how="tag")


def _own_line(reply: str, asked: AskedTogether) -> str:
    """Return a reply in which the answer of this variable stands where a single answer would, without the others."""
    for part in asked.parts:
        name = re.escape(part.name)
        if part.name == asked.name:
            reply = re.sub(rf"<\s*+(/?+)\s*+{name}\s*+>", r"<\1label>", reply, flags=re.IGNORECASE)
            reply = re.sub(rf"([\"']){name}\1\s*+:", '"label":', reply, flags=re.IGNORECASE)
        else:
            closing = rf"<\s*+/\s*+{name}\s*+>"
            # Tags that are never closed come after the last closing one; each of them would be read to the end.
            end = max((tag.end() for tag in re.finditer(closing, reply, re.IGNORECASE)), default=0)
            answered = rf"<\s*+{name}\s*+>.*?{closing}"
            reply = re.sub(answered, "", reply[:end], flags=re.IGNORECASE | re.DOTALL) + reply[end:]
            value = r"(?:\"[^\"]*\"|\[[^\]]{0,2000}\]|[^,}\n]*),?"
            reply = re.sub(rf"([\"']){name}\1\s*+:\s*+{value}", "", reply, flags=re.IGNORECASE)
    return reply
