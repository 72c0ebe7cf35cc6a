"""Finds the rewrite in a model's reply: among introductions, notes, markup, and further versions.

A reply is read by its structure first (see `structure`), then by lines and sentences. Which of them belong to the
rewrite is judged by the letters that they have in common with the text, so this works in every language. What looks
like dirt may be part of the text: nothing that the text also has is removed.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pcs_annotator.base.thinking import thinking_spans, without_thinking
from pcs_annotator.relations.facts import pattern
from pcs_annotator.relations.prompted import structure

DOUBLE_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
WORD = re.compile(r"\w+")
AROUND = " .!?…\"'“”‘’"
_A_FEW, _FEW_GRAMS = 8, 25
NO_SPACES = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
COLON = re.compile(r":(?=[\s*_\"“„«]|\Z)|：")
_ENDS = re.compile(r"[.!?…。！？।؟][\"'”’»)\]*_]*\Z")
SENTENCE = re.compile(
    r"(?<=[.!?…])(?<!\W\w\.)(?<!\b[DMS][rst]\.)[\"'”’»)\]]*+\s++(?=[^a-zà-öø-ÿ\s])|(?<=[。！？])(?=.)"
)
# No English sentence ends with one of these.
_HANGING = "a an the of to and or but by with from for into than that which who whose if as at on in"
_GOES_ON = frozenset(_HANGING.split())


class SourceText:
    """The text to rewrite, to compare parts of a reply with."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sentences = len(SENTENCE.split(text))
        self.lines = sum(1 for line in text.splitlines() if line.strip())
        self.colons = len(COLON.findall(text))
        self.has_quotes = any(mark in text for mark in DOUBLE_QUOTES)
        self._words = WORD.findall(text.casefold())
        self._length = 1 if NO_SPACES.search(text) else 3
        self._grams = self.grams(text)

    def grams(self, text: str) -> frozenset[str]:
        """Return all runs of three letters in a text, or of one where words have no spaces between them."""
        plain = " ".join(WORD.findall(text.casefold()))
        return frozenset(plain[at : at + self._length] for at in range(len(plain) - self._length + 1))

    def covers(self, text: str) -> float:
        """Return how much of the source is in a text."""
        return len(self.grams(text) & self._grams) / max(1, len(self._grams))

    def likeness(self, text: str) -> float:
        """Return how much the shorter of source and text has in common with the longer."""
        grams = self.grams(text)
        # A single word says nothing: it may well be in both.
        return len(grams & self._grams) / max(1, min(max(len(grams), _A_FEW), len(self._grams)))

    def may_be(self, text: str, least: float) -> bool:
        """Return whether a text has enough in common with the source to be a rewrite; few words may all change."""
        return len(self._grams) < _FEW_GRAMS or self.likeness(text) >= least

    def is_same(self, text: str) -> bool:
        """Return whether a text is the source, but for marks around it."""
        return text.strip(AROUND) == self.text.strip(AROUND)

    def is_cut(self, text: str) -> bool:
        """Return whether a text breaks off in the middle of a sentence."""
        if _ENDS.search(self.text) or _ENDS.search(text):
            return not _ENDS.search(text)
        last = WORD.findall(text.casefold())[-1:]
        return last != self._words[-1:] and not _GOES_ON.isdisjoint(last)

    def lost_without(self, whole: str, part: str) -> float:
        """Return how much of the source is in a text and no longer in a part of it."""
        return self.covers(whole) - self.covers(part)


NOTHING_WRITTEN = "the model wrote nothing"
CHANGED_NOTHING = "the rewrite changed nothing"
CUT_OFF = "the rewrite was cut off"
DOES_NOT_APPLY = "the model says it does not apply"
REFUSES = "the model refuses"
NO_REWRITE = "the reply has no rewrite of the text"

LEAST = 0.1  # what a free paraphrase still has in common with its text; unrelated sentences have as little

REMINDER = "Now write the new version of this text, and nothing else."
"""The line after the text in our prompts; models that repeat the prompt repeat it too."""


class Refused(NamedTuple):
    """Why a reply gives no rewrite."""

    reason: str  # one of a few fixed sentences, so that reasons can be counted
    fails: bool = True  # whether the whole text fails; False if this window may stay as it is while others change
    text: str | None = None  # the incomplete rewrite, to show to a person


_I_CAN_NOT = r"(?:i\s(?:really\s)?(?:can['’]?t|can\s?not|won['’]?t|could\snot|couldn['’]?t|am\s(?:unable|not\sable))\b)"
_REFUSAL = re.compile(
    rf"""\W*(?:
        (?:i['’]?m|i\sam)\s(?:\w+\s){{0,2}}(?:sorry|afraid)\b.{{0,60}}?{_I_CAN_NOT}
      | (?:sorry|apologies|my\sapologies|i\sapologi[sz]e|unfortunately)\b.{{0,40}}?{_I_CAN_NOT}
      | (?:as|i['’]?m|i\sam)\s(?:just\s|only\s)?an?\s(?:ai\b|artificial\sintell|(?:large\s)?language\smodel)
      | (?:i['’]?m\s(?:unable|not\sable)|{_I_CAN_NOT})\s(?:to\s)?(?:\w+\s)?(?:help|assist|rewrite|comply|provide|fulfil
          |do\s(?:that|this)|create|generate|process|complete|engage|reproduce|translate)
      | please\s(?:provide|share|paste|enter)\s.{{0,30}}?\b(?:text|sentence|passage)\b
      | (?:there\s(?:is|was)|you\sprovided|i\s(?:see|found))\sno\s(?:text|sentence|passage)\b
    )""",
    re.X | re.I | re.S,
)
_FOREIGN_REFUSAL = pattern("foreign_refusal", re.I | re.S)
_NOT_APPLICABLE = re.compile(r"\W*(?:not[ _-]applicable|n/a)\s*(?:\Z|[.:;,!()\n*–—-])", re.I)

_LONGEST_BESIDE = 4000  # what is far longer than the text is no rewrite, and comparing it would take long


def read_versions(reply: str, source: str, least: float = LEAST) -> list[str] | Refused:
    r"""Return the rewrites that a reply offers, in its order, or why there is none.

    A rewrite has at least the share `least` in common with the source.

    >>> read_versions('Sure! Here is the new text:\n\n"The man was bitten by the dog."', "The dog bit the man.")
    ['The man was bitten by the dog.']
    >>> read_versions("I'm sorry, but I can't help with that.", "The dog bit the man.").reason
    'the model refuses'
    """
    source = source.strip()
    said = (reply if thinking_spans(source) else without_thinking(reply)).strip()
    if said == source:
        return [source]
    said = said[: _LONGEST_BESIDE + 4 * len(source)]
    about = SourceText(source)
    turns = structure.own_turns(said, source)
    refusals = (_refusal(turn, source) for turn in turns)
    refused = next((refusal for refusal in refusals if refusal), None) if turns else Refused(NOTHING_WRITTEN)
    if refused is not None:
        return refused
    found = list(dict.fromkeys(version for turn in turns for version in _versions(turn, about)))
    # A reply that repeats the text gives the rewrite, too.
    versions = [version for version in found if not about.is_same(version)] or found
    refused = _refusal(versions[0], source) if versions else Refused(NOTHING_WRITTEN)
    if refused is not None:
        return refused
    alike = [version for version in versions if about.may_be(version, least)]
    whole = [version for version in alike if not about.is_cut(version)]
    return whole or Refused(CUT_OFF if alike else NO_REWRITE, text=versions[0])


def _refusal(text: str, source: str) -> Refused | None:
    if _says_not_applicable(text) and not _says_not_applicable(source):
        return Refused(DOES_NOT_APPLY, fails=False)
    # A text that is itself an apology may be rewritten as another one.
    refuses = any(refusal.match(text) and not refusal.match(source) for refusal in (_REFUSAL, _FOREIGN_REFUSAL))
    return Refused(REFUSES) if refuses else None


def _says_not_applicable(text: str) -> bool:
    return structure.NOTHING in text or _NOT_APPLICABLE.match(text) is not None


def _versions(text: str, about: SourceText) -> list[str]:
    """Return the rewrites in a text, each put together from the lines that belong to it."""
    pieces = list(_pieces(text, about))
    if about.lines > 1:
        return [_bare(_trimmed(piece, "\n", about.lines, about), about) for piece in pieces]
    units = [unit for piece in pieces if (unit := _bare(piece, about))]
    best = max(map(about.likeness, units), default=0.0)
    count = sum(len(SENTENCE.split(unit)) for unit in units)
    if count > about.sentences:
        units = [unit for unit in units if about.likeness(unit) >= 0.5 * best]
    groups: list[list[str]] = []
    for unit in units:
        sentences = sum(len(SENTENCE.split(part)) for part in groups[-1]) if groups else about.sentences
        if sentences < about.sentences:
            groups[-1].append(unit)
        else:
            groups.append([unit])
    joint = "" if NO_SPACES.search(about.text) else " "
    return [version for group in groups for version in _split(joint.join(group), about)]


def _pieces(text: str, about: SourceText) -> Iterator[str]:
    """Yield the texts inside the structure of a reply."""
    pending = [text]
    while pending:
        text = pending.pop(0)
        found = (read(text, about.text) for read in (structure.in_json, structure.in_fences, structure.in_tags))
        inside = next((texts for texts in found if texts is not None), None)
        if inside is not None:
            pending[:0] = inside
        elif about.lines > 1:
            yield text
        else:
            for line in structure.without_markup(text, about.text).splitlines():
                for cell in _cells(line, about):
                    yield from _quoted(cell, about) or [cell]


_CELL = re.compile(r"\||→|->|=>|⇒|➡️?|➜|—>")


def _cells(line: str, about: SourceText) -> list[str]:
    """Return the cells of a line of a table, or what is around an arrow, but for those that repeat the source."""
    cells = [line] if _CELL.search(about.text) else _CELL.split(line)
    if len(cells) < 2:
        return cells
    return [cell for cell in cells if _without_bullet(cell.strip(), about).strip(AROUND) not in about.text]


_QUOTED = re.compile("|".join(f"{a}[^{a}{b}]*{b}" for a, b in DOUBLE_QUOTES.items()))


def _quoted(line: str, about: SourceText) -> list[str]:
    """Return the rewrites that a line gives in quotation marks."""
    if about.has_quotes:
        return []
    inside = [found[1:-1].strip() for found in _QUOTED.findall(line)]
    if not WORD.search(_QUOTED.sub("", line)):
        return inside
    return [one for one in inside if about.covers(one) >= 0.5 * about.covers(line)]


_OTHER = r"(?:or|alternatively|oder|alternativ|ou|alternativement|o|alternativamente|或者?|または|или)"
_BETWEEN = re.compile(rf"(?<!\s)\s+[/|]\s+|(?:[,;]|(?<!\s))\s+\(?{_OTHER}\)?[,:]?\s+", re.I)


def _split(text: str, about: SourceText) -> list[str]:
    """Return a text without sentences that do not belong to it; if it has several versions, each of them."""
    text = _bare(_trimmed(text, " ", about.sentences, about), about)
    for parts in (SENTENCE.split(text), _BETWEEN.split(text)):
        whole = about.covers(text)
        if len(parts) > about.sentences and all(about.covers(part) >= 0.6 * whole for part in parts):
            return [_bare(part, about) for part in parts]
    return [text]


def _is_marked(part: str, about: SourceText) -> bool:
    """Return whether a part has signs of a remark that the source does not have."""
    return any(sign in part and sign not in about.text for sign in (": ", "(", "[", '"', "→"))


_TALK = re.compile(r"\w{2}")  # less than that may be an emoticon


def _trimmed(text: str, between: str, most: int, about: SourceText) -> str:
    """Return a text without lines or sentences at its ends that are not of the source, as long as it has too many."""
    parts = [part for part in (text.splitlines() if between == "\n" else SENTENCE.split(text)) if part.strip()]
    best = max(map(about.likeness, parts), default=0.0)

    def is_beside(part: str, rest: list[str]) -> bool:
        unlike = _TALK.search(part) is not None and about.likeness(part) < 0.5 * best
        return unlike and (_is_marked(part, about) or about.lost_without(text, between.join(rest)) < 0.1)

    while len(parts) > most:
        if is_beside(parts[-1], parts[:-1]):
            parts.pop()
        elif is_beside(parts[0], parts[1:]):
            parts.pop(0)
        else:
            break
    first, last = parts[:1], parts[-1:]
    return text[text.find(first[0]) : text.rfind(last[0]) + len(last[0])] if parts else ""


_BULLET = re.compile(r"\s*(?:[-*•–—→>#]+\s|[\[(]?(?:\d{1,2}|[A-Za-z])[\])]+\s|\d{1,2}\.\s)\s*")
_LABEL = re.compile(rf"[^:：\n]{{1,200}}(?:{COLON.pattern})[*_]*")
_OR = re.compile(rf"(?<!\W)\W*{_OTHER}\b[,:]\s*", re.I)


def _bare(text: str, about: SourceText) -> str:
    """Return a text without markup, bullet, label, quotation marks and asides, as far as the source has none."""
    for _ in range(3):
        before = text
        text = structure.without_markup(text.strip(), about.text)
        for step in _STEPS:
            text = step(text, about).strip()
        if text == before:
            break
    return text


def _without_bullet(text: str, about: SourceText) -> str:
    bullet = _BULLET.match(text)
    if bullet is None or _BULLET.match(about.text):
        return text
    text = text[bullet.end() :]
    first, _, last = bullet[0].strip().partition("1")
    for number in range(2, about.sentences + 1):
        if last and f" {first}{number}{last} " not in about.text:
            text = text.replace(f" {first}{number}{last} ", " ")
    return text


def _without_label(text: str, about: SourceText) -> str:
    """Return what follows a colon, if nothing of the source is before it."""
    other = _OR.match(text)
    if other is not None and not _OR.search(about.text):
        return text[other.end() :]
    label = _LABEL.match(text)
    if label is None or len(COLON.findall(text)) <= about.colons:
        return text
    rest = text[label.end() :].strip()
    if not rest:
        return ""
    own = SENTENCE.split(label[0])[:-1]
    if any(2 * about.covers(sentence) > about.covers(rest) for sentence in own):
        return text
    long_enough = len(rest) > len(label[0]) or about.covers(rest) >= 0.5
    return rest if long_enough and about.lost_without(text, rest) < 0.1 else text


_QUOTES = {**DOUBLE_QUOTES, "'": "'", "‘": "’", "`": "`"}


def _without_quotes(text: str, about: SourceText) -> str:
    """Return a text without quotation marks around the whole, unless the source has them too."""
    mark, close = text[:1], _QUOTES.get(text[:1], "")
    # A rewrite of `He said "yes" and then "no"` may begin and end with a quotation.
    extra = sum(text.count(one) - about.text.count(one) for one in {mark, close})
    if not close or extra < 1:
        return text
    if text.endswith(close) and extra > 1:
        return text[1:-1]
    return text[1:] if extra == 1 and mark in DOUBLE_QUOTES else text


_OPENING = "\"'“‘«„「『([{¿¡$€£#@&-…"
_CLOSING = ".!?…,;:\"'”’»」』)]}%°€$£。！？।؟"


def _without_signs(text: str, about: SourceText) -> str:
    """Return a text without signs at its ends that rewrites do not add."""
    strange = {sign for sign in text if unicodedata.category(sign)[0] not in "LMN"} - {*about.text}
    return text.lstrip("".join(strange - {*_OPENING})).rstrip("".join(strange - {*_CLOSING}))


_STEPS: tuple[Callable[[str, SourceText], str], ...] = (
    _without_bullet,
    _without_quotes,
    _without_label,
    _without_signs,
)
