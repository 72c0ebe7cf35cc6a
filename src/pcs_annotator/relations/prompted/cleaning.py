"""Finds the rewrite in a model's reply: among introductions, notes, markup, and further versions.

A reply is read by its structure first (see `structure`), then by lines and sentences. Which of them belong to the
rewrite is judged by how much of the text they have in common with it, so this works in every language. What looks like
dirt may be part of the text: nothing that the text also has is removed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pcs_annotator.core.thinking import thinking_spans, without_thinking
from pcs_annotator.relations.language import other_language
from pcs_annotator.relations.prompted import structure

NOTHING_WRITTEN = "the model wrote nothing"
CHANGED_NOTHING = "the rewrite changed nothing"
CUT_OFF = "the rewrite was cut off"
DOES_NOT_APPLY = "the model says it does not apply"
REFUSES = "the model refuses"
NO_REWRITE = "the reply has no rewrite of the text"

LEAST = 0.1
"""What a free paraphrase still has in common with its text; unrelated sentences have as little."""

REMINDER = "Now write the new version of this text, and nothing else."
"""The line after the text in our prompts; models that repeat the prompt repeat it too."""


class Refused(NamedTuple):
    """Why a reply gives no rewrite.

    Attributes:
        reason: One of a few fixed sentences, so that reasons can be counted.
        fails: Whether the whole text fails; False if this window may stay as it is while others change.
        text: The incomplete rewrite, to show to a person.
    """

    reason: str
    fails: bool = True
    text: str | None = None


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
# The usual refusals in languages of the texts, which models answer in.
_FOREIGN_REFUSAL = re.compile(
    r"""\W*(?:
        (?:es\s)?tut\smir\sleid\b.{0,60}?\bkann\b | leider\skann\sich\b
      | lo\ssiento\b.{0,60}?\bno\spuedo\b | (?:je\ssuis\s)?désolée?\b.{0,60}?\bne\speux\spas\b
      | mi\sdispiace\b.{0,60}?\bnon\sposso\b | (?:desculpe|lamento|sinto\smuito)\b.{0,60}?\bnão\sposso\b
      | (?:het\sspijt\sme|sorry)\b.{0,60}?\bkan\sik\b | przykro\smi\b.{0,60}?\bnie\smogę\b
      | (?:извините|к\sсожалению)\b.{0,60}?\bне\sмогу\b | üzgünüm\b.{0,80}?(?:amam|emem|amıyorum|emiyorum)\b
      | (?:很?抱歉|对不起|對不起).{0,30}?(?:不能|无法|無法) | 申し訳.{0,40}?(?:できません|できかねます)
      | (?:عذر[اًا]*|آسف).{0,60}?لا\s(?:أستطيع|يمكنني)
    )""",
    re.X | re.I | re.S,
)
_NOT_APPLICABLE = re.compile(r"\W*(?:not[ _-]applicable|n/a)\s*(?:\Z|[.:;,!()\n*–—-])", re.I)


def read_versions(reply: str, source: str, *, least: float = LEAST, translated: bool = False) -> list[str] | Refused:
    r"""Return the rewrites that a reply offers, in its order, or why there is none.

    Args:
        reply: What the model wrote.
        source: The text to rewrite.
        least: How much a rewrite has in common with the source at least, from 0 to 1.
        translated: Whether the rewrite is in another language, so that only lengths can be compared.

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
    about = _Source(source, translated)
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
    whole = [version for version in versions if not about.is_cut(version)]
    alike = [version for version in whole if about.may_be(version, least)]
    if translated:
        alike.sort(key=about.likeness, reverse=True)
    return alike or Refused(NO_REWRITE if whole else CUT_OFF, text=versions[0])


def _refusal(text: str, source: str) -> Refused | None:
    if _says_not_applicable(text) and not _says_not_applicable(source):
        return Refused(DOES_NOT_APPLY, fails=False)
    # A text that is itself an apology may be rewritten as another one.
    refuses = any(refusal.match(text) and not refusal.match(source) for refusal in (_REFUSAL, _FOREIGN_REFUSAL))
    return Refused(REFUSES) if refuses else None


def _says_not_applicable(text: str) -> bool:
    return structure.NOTHING in text or _NOT_APPLICABLE.match(text) is not None


_WORD = re.compile(r"\w+")
_AROUND = " .!?…\"'“”‘’"
_LONGEST_BESIDE = 4000  # what is far longer than the text is no rewrite, and comparing it would take long
_A_FEW, _FEW_GRAMS = 8, 25
_NO_SPACES = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_COLON = re.compile(r":(?=[\s*_\"“„«]|\Z)|：")
_ENDS = re.compile(r"[.!?…。！？।؟][\"'”’»)\]*_]*\Z")
_SENTENCE = re.compile(
    r"(?<=[.!?…])(?<!\W\w\.)(?<!\b[DMS][rst]\.)[\"'”’»)\]]*+\s++(?=[^a-zà-öø-ÿ\s])|(?<=[。！？])(?=.)"
)
# No English sentence ends with one of these.
_HANGING = "a an the of to and or but by with from for into than that which who whose if as at on in"
_GOES_ON = frozenset(_HANGING.split())


class _Source:
    """The text to rewrite, to compare parts of a reply with."""

    def __init__(self, text: str, translated: bool) -> None:
        self.text = text
        self.sentences = len(_SENTENCE.split(text))
        self.lines = text.count("\n") + 1
        self.colons = len(_COLON.findall(text))
        self.has_quotes = any(mark in text for mark in _DOUBLE_QUOTES)
        self._words = _WORD.findall(text.casefold())
        self._translated = translated
        self._length = 1 if _NO_SPACES.search(text) else 3
        self._grams = self.grams(text)

    def grams(self, text: str) -> frozenset[str]:
        """Return all runs of three letters in a text, or of one where words have no spaces between them."""
        plain = " ".join(_WORD.findall(text.casefold()))
        return frozenset(plain[at : at + self._length] for at in range(len(plain) - self._length + 1))

    def covers(self, text: str) -> float:
        """Return how much of the source is in a text."""
        if self._translated:
            return min(1.0, len(text) / len(self.text))
        return len(self.grams(text) & self._grams) / max(1, len(self._grams))

    def likeness(self, text: str) -> float:
        """Return how much the shorter of source and text has in common with the longer."""
        grams = self.grams(text)
        if self._translated:
            lengths = sorted((len(text), len(self.text)))
            return lengths[0] / lengths[1] if other_language(self.text, text) else 0.0
        # A single word says nothing: it may well be in both.
        return len(grams & self._grams) / max(1, min(max(len(grams), _A_FEW), len(self._grams)))

    def may_be(self, text: str, least: float) -> bool:
        """Return whether a text has enough in common with the source to be a rewrite; few words may all change."""
        return self._translated or len(self._grams) < _FEW_GRAMS or self.likeness(text) >= least

    def is_same(self, text: str) -> bool:
        """Return whether a text is the source, but for marks around it."""
        return text.strip(_AROUND) == self.text.strip(_AROUND)

    def is_cut(self, text: str) -> bool:
        """Return whether a text breaks off in the middle of a sentence."""
        words = _WORD.findall(text.casefold())
        if self._translated or not words or not self._words or _ENDS.search(text):
            return False
        last, known = words[-1], set(words)
        if not _ENDS.search(self.text):
            return last in _GOES_ON and last != self._words[-1]
        # A full stop may be left out, but then the end of the source is there, and no word of it that must follow.
        following = {new for old, new in pairwise(self._words) if old == last}
        begun = any(word.startswith(last) for word in self._words if word not in known)
        ends = {word[:2] for word in known}
        hangs = last in _GOES_ON and last != self._words[-1]
        return self._words[-1] not in known or hangs or begun or not {word[:2] for word in following} <= ends

    def lost_without(self, whole: str, part: str) -> float:
        """Return how much of the source is in a text and no longer in a part of it."""
        return self.covers(whole) - self.covers(part)


def _versions(text: str, about: _Source) -> list[str]:
    """Return the rewrites in a text, each put together from the lines that belong to it."""
    pieces = list(_pieces(text, about))
    if about.lines > 1:
        return [_bare(_trimmed(piece, "\n", about.lines, about), about) for piece in pieces]
    units = [unit for piece in pieces if (unit := _bare(piece, about))]
    best = max(map(about.likeness, units), default=0.0)
    count = sum(len(_SENTENCE.split(unit)) for unit in units)
    if count > about.sentences:
        units = [unit for unit in units if about.likeness(unit) >= 0.5 * best]
    groups: list[list[str]] = []
    for unit in units:
        sentences = sum(len(_SENTENCE.split(part)) for part in groups[-1]) if groups else about.sentences
        if sentences < about.sentences and not _overlap(unit, groups[-1], about):
            groups[-1].append(unit)
        else:
            groups.append([unit])
    joint = "" if _NO_SPACES.search(about.text) else " "
    return [version for group in groups for version in _split(joint.join(group), about)]


def _overlap(unit: str, group: Sequence[str], about: _Source) -> bool:
    new, old = about.grams(unit), about.grams(" ".join(group))
    return 2 * len(new & old) >= min(len(new), len(old))


def _pieces(text: str, about: _Source) -> Iterator[str]:
    """Yield the texts inside the structure of a reply."""
    source = about.text
    text = structure.without_markup(text, source)
    table = structure.in_table(text, source)
    if table is not None:
        beside, rows = table
        yield from beside
        yield from _in_rows(rows, about)
        return
    for read in (structure.in_json, structure.in_fences, structure.in_tags):
        inside = read(text, source)
        if inside is not None:
            for part in inside:
                yield from _pieces(part, about)
            return
    if about.lines > 1:
        yield text
        return
    for line in text.splitlines():
        yield from _quoted(line, about) or [line]


def _in_rows(rows: Sequence[Sequence[str]], about: _Source) -> list[str]:
    cells = [cell for row in rows for cell in row]
    if any(about.covers(cell) > 0.5 and not about.is_same(cell) for cell in cells):
        return cells
    columns = zip(*(row for row in rows[1:] if len(row) == len(rows[0])), strict=True)
    return [" ".join(column) for column in columns]


_DOUBLE_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
_QUOTED = re.compile("|".join(f"{a}[^{a}{b}]*{b}" for a, b in _DOUBLE_QUOTES.items()))


def _quoted(line: str, about: _Source) -> list[str]:
    """Return the rewrites that a line gives in quotation marks."""
    if about.has_quotes:
        return []
    inside = [found[1:-1].strip() for found in _QUOTED.findall(line)]
    if not _WORD.search(_QUOTED.sub("", line)):
        return inside
    return [one for one in inside if about.covers(one) >= 0.5 * about.covers(line)]


_OTHER = r"(?:or|alternatively|oder|alternativ|ou|alternativement|o|alternativamente|或者?|または|или)"
_BETWEEN = re.compile(rf"\s+[/|]\s+|[,;]?\s+\(?{_OTHER}\)?[,:]?\s+|\s+→\s+", re.I)


def _split(text: str, about: _Source) -> list[str]:
    """Return a text without sentences that do not belong to it; if it has several versions, each of them."""
    text = _bare(_trimmed(text, " ", about.sentences, about), about)
    for parts in (_SENTENCE.split(text), _BETWEEN.split(text)):
        whole = about.covers(text)
        if len(parts) > about.sentences and all(about.covers(part) >= 0.6 * whole for part in parts):
            return [_bare(part, about) for part in parts]
    return [text]


_TALK = re.compile(r"\w{2}")  # less than that may be an emoticon


def _trimmed(text: str, between: str, most: int, about: _Source) -> str:
    """Return a text without lines or sentences at its ends that are not of the source, as long as it has too many."""
    parts = [part for part in (text.splitlines() if between == "\n" else _SENTENCE.split(text)) if part.strip()]
    best = max(map(about.likeness, parts), default=0.0)

    def is_beside(part: str, rest: list[str]) -> bool:
        unlike = _TALK.search(part) is not None and about.likeness(part) < 0.5 * best
        return unlike and about.lost_without(text, between.join(rest)) < 0.1

    while len(parts) > most:
        if is_beside(parts[-1], parts[:-1]):
            parts.pop()
        elif is_beside(parts[0], parts[1:]):
            parts.pop(0)
        else:
            break
    first, last = parts[:1], parts[-1:]
    return text[text.find(first[0]) : text.rfind(last[0]) + len(last[0])] if parts else ""


_ARROW = re.compile(r"->|=>|⇒|➡️?|➜|—>")
_BULLET = re.compile(r"\s*(?:[-*•–—→>#]+\s|[\[(]?(?:\d{1,2}|[A-Za-z])[\])]+\s|\d{1,2}\.\s)\s*")
_LABEL = re.compile(rf"[^:：\n]{{1,200}}(?:{_COLON.pattern})[*_]*")
_OR = re.compile(rf"\W*{_OTHER}\b[,:]\s*", re.I)
_ASIDE = r"[(\[（【][^()\[\]（）]*[)\]）】]"
_ASIDES = (re.compile(rf"\s*{_ASIDE}[.:]?\Z"), re.compile(rf"\A{_ASIDE}:?\s*"))
_BRACKETS = "([（【"


def _bare(text: str, about: _Source) -> str:
    """Return a text without markup, bullet, label, quotation marks and asides, as far as the source has none."""
    for _ in range(3):
        before = text
        text = structure.without_markup(text.strip(), about.text)
        text = text if "→" in about.text else _ARROW.sub("→", text)
        for step in _STEPS:
            text = step(text, about).strip()
        if text == before:
            break
    return text


def _without_bullet(text: str, about: _Source) -> str:
    bullet = _BULLET.match(text)
    if bullet is None or _BULLET.match(about.text):
        return text
    text = text[bullet.end() :]
    first, _, last = bullet[0].strip().partition("1")
    for number in range(2, about.sentences + 1):
        if last and f" {first}{number}{last} " not in about.text:
            text = text.replace(f" {first}{number}{last} ", " ")
    return text


def _without_label(text: str, about: _Source) -> str:
    """Return what follows a colon, if nothing of the source is before it."""
    other = _OR.match(text)
    if other is not None and not _OR.search(about.text):
        return text[other.end() :]
    label = _LABEL.match(text)
    if label is None or len(_COLON.findall(text)) <= about.colons:
        return text
    rest = text[label.end() :].strip()
    if not rest:
        return ""
    own = _SENTENCE.split(label[0])[:-1]
    if any(2 * about.covers(sentence) > about.covers(rest) for sentence in own):
        return text
    long_enough = len(rest) > len(label[0]) or about.covers(rest) >= 0.5
    return rest if long_enough and about.lost_without(text, rest) < 0.1 else text


def _without_asides(text: str, about: _Source) -> str:
    for pattern in _ASIDES:
        if sum(map(text.count, _BRACKETS)) > sum(map(about.text.count, _BRACKETS)):
            rest = pattern.sub("", text)
            text = rest if about.lost_without(text, rest) < 0.1 else text
    return text


_OTHER_QUOTES = {"'": "'", "‘": "’", "`": "`"}
_SINGLE_INSIDE = re.compile(r"(?<!\w)['‘’`]|['‘’`](?!\w)")


def _without_quotes(text: str, about: _Source) -> str:
    """Return a text without quotation marks around the whole, unless the source has them too."""
    source = about.text
    close = _DOUBLE_QUOTES.get(text[:1])
    extra = _double_quotes(text) - _double_quotes(source)
    # A rewrite of `He said "yes" and then "no"` may begin and end with a quotation.
    if close is not None and text.endswith(close) and extra >= 2:
        return text[1:-1]
    if extra == 1 and text[:1] in _DOUBLE_QUOTES:
        return text[1:]
    if extra == 1 and text[-1:] in _DOUBLE_QUOTES.values():
        return text[:-1]
    for mark, close in _OTHER_QUOTES.items():
        inner = text[1:-1]
        if text.startswith(mark) and text.endswith(close) and inner and source[:1] != mark and source[-1:] != close:
            return text if _SINGLE_INSIDE.search(inner) else inner
    return text


def _double_quotes(text: str) -> int:
    return sum(map(text.count, '"“”„«»「」『』'))


def _without_signs(text: str, about: _Source) -> str:
    """Return a text without signs at its ends that rewrites do not add."""
    start, end = 0, len(text)
    while start < end and _is_strange(text[start], _OPENING + about.text):
        start += 1
    while end > start and _is_strange(text[end - 1], _CLOSING + about.text):
        end -= 1
    return text[start:end]


_OPENING = "\"'“‘«„「『([{¿¡$€£#@&-…"
_CLOSING = ".!?…,;:\"'”’»」』)]}%°€$£。！？।؟"


def _is_strange(sign: str, usual: str) -> bool:
    return sign not in usual and unicodedata.category(sign)[0] not in "LMN"


def _after_arrow(text: str, about: _Source) -> str:
    """Return what follows an arrow, if part of the source is before it."""
    before, arrow, after = text.partition("→")
    return after if arrow and "→" not in about.text and before.strip(f" {_AROUND}") in about.text else text


_STEPS: tuple[Callable[[str, _Source], str], ...] = (
    _without_bullet,
    _without_quotes,
    _without_label,
    _without_asides,
    _after_arrow,
    _without_signs,
)
