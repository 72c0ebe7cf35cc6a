"""Finds the rewrite in a model's reply: among introductions, notes, markup, and further versions.

A reply is read by its structure first (turns, JSON, fences, tags), then by lines and sentences. Which of them belong to
the rewrite is judged by the letters that they have in common with the text, so this works in every language. What looks
like dirt may be part of the text: nothing that the text also has is removed, and a rewrite of JSON is JSON.
"""

import html
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from pcs_annotator.base.thinking import thinking_spans, without_thinking
from pcs_annotator.relations.language import listed, pattern

NOTHING_WRITTEN = "the model wrote nothing"
CHANGED_NOTHING = "the rewrite changed nothing"
CUT_OFF = "the rewrite was cut off"
DOES_NOT_APPLY = "the model says it does not apply"
REFUSES = "the model refuses"
NO_REWRITE = "the reply has no rewrite of the text"
LEAST = 0.1  # what a free paraphrase still has in common with its text; unrelated sentences have as little
REMINDER = "Now write the new version of this text, and nothing else."
"""The line after the text in our prompts; models that repeat the prompt repeat it too."""

SENTENCE = re.compile(
    r"(?<=[.!?…])(?<!\W\w\.)(?<!\b[DMS][rst]\.)[\"'”’»)\]]*+\s++(?=[^a-zà-öø-ÿ\s])|(?<=[。！？])(?=.)"
)
_WORD = re.compile(r"\w+")
_DOUBLE_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
_AROUND = " .!?…\"'“”‘’"
_NO_SPACES = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_COLON = re.compile(r":(?=[\s*_\"“„«]|\Z)|：")
_ENDS = re.compile(r"[.!?…。！？।؟][\"'”’»)\]*_]*\Z")
# No English sentence ends with one of these.
_GOES_ON = listed("reply", "goes_on")
_A_FEW, _FEW_GRAMS = 8, 25
_LONGEST_BESIDE = 4000  # what is far longer than the text is no rewrite, and comparing it would take long
_NOTHING = "NOT APPLICABLE"


class Refused(NamedTuple):
    """Why a reply gives no rewrite."""

    reason: str
    fails: bool = True  # false if this window may stay as it is while others change
    text: str | None = None  # the incomplete rewrite, to show to a person


class SourceText:
    """The text to rewrite, to compare parts of a reply with."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sentences = len(SENTENCE.split(text))
        self.lines = sum(1 for line in text.splitlines() if line.strip())
        self.colons = len(_COLON.findall(text))
        self._gram_length = 1 if _NO_SPACES.search(text) else 3
        self._grams = self._grams_of(text)
        self.is_short = len(self._grams) < _FEW_GRAMS  # then all of its words may change

    def _grams_of(self, text: str) -> frozenset[str]:
        """Return all runs of three letters in a text, or of one where words have no spaces between them."""
        plain = " ".join(_WORD.findall(text.casefold()))
        return frozenset(plain[at : at + self._gram_length] for at in range(len(plain) - self._gram_length + 1))

    def covers(self, text: str) -> float:
        """Return how much of the source is in a text."""
        return len(self._grams_of(text) & self._grams) / max(1, len(self._grams))

    def likeness(self, text: str) -> float:
        """Return how much the shorter of source and text has in common with the longer."""
        grams = self._grams_of(text)  # of a single word, they say nothing: it may well be in both
        return len(grams & self._grams) / max(1, min(max(len(grams), _A_FEW), len(self._grams)))

    def is_cut(self, text: str) -> bool:
        """Return whether a text breaks off in the middle of a sentence."""
        if _ENDS.search(self.text) or _ENDS.search(text):
            return not _ENDS.search(text)
        last = _WORD.findall(text.casefold())[-1:]
        return last != _WORD.findall(self.text.casefold())[-1:] and not _GOES_ON.isdisjoint(last)


def read_versions(reply: str, source: str, least: float = LEAST) -> list[str] | Refused:
    """Return the rewrites that a reply offers, in its order, each with the share `least` in common with the source."""
    source = source.strip()
    reply = (reply if thinking_spans(source) else without_thinking(reply)).strip()
    if reply == source:
        return [source]
    about = SourceText(source)
    turns = _own_turns(reply[: _LONGEST_BESIDE + 4 * len(source)], source)
    if refusal := next(filter(None, (_refusal(turn, source) for turn in turns)), None):
        return refusal
    offered = list(dict.fromkeys(version for turn in turns for version in _versions(turn, about)))
    # A reply that repeats the text gives the rewrite, too.
    same = source.strip(_AROUND)
    versions = [version for version in offered if version.strip(_AROUND) != same] or offered
    if not versions:
        return Refused(NOTHING_WRITTEN)
    if refusal := _refusal(versions[0], source):
        return refusal
    alike = [version for version in versions if about.is_short or about.likeness(version) >= least]
    whole = [version for version in alike if not about.is_cut(version)]
    return whole or Refused(CUT_OFF if alike else NO_REWRITE, text=versions[0])


_REFUSALS = [pattern(name, re.I | re.S) for name in ("refusal", "foreign_refusal")]
_NOT_APPLICABLE = re.compile(r"(?s:.*)NOT APPLICABLE|(?i:\W*(?:not[ _-]applicable|n/a)\s*(?:\Z|[.:;,!()\n*–—-]))")


def _refusal(text: str, source: str) -> Refused | None:
    # A text that is itself an apology may be rewritten as another one.
    if _NOT_APPLICABLE.match(text) and not _NOT_APPLICABLE.match(source):
        return Refused(DOES_NOT_APPLY, fails=False)
    refuses = any(refusal.match(text) and not refusal.match(source) for refusal in _REFUSALS)
    return Refused(REFUSES) if refuses else None


# The marks between turns, as models of many families write them when their template goes wrong.
_MARK = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|<｜[^｜<>\n]{1,40}｜>|</?s>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<(?:bos|eos|pad|unk)>"
)
_OPENS_PROMPT, _ENDS_PROMPT = ("[INST]", "<<SYS>>"), ("[/INST]", "<</SYS>>")
_SPEAKER = re.compile(
    r"(?<!\W)\W*(?:(?P<model>assistant|ai|model|bot|chatgpt|response|answer|output|final)"
    r"|user|human|system|prompt|instruction|input|question)\W*",
    re.I,
)
_GLUED_NAME = re.compile(r"(?<=[.!?\"”。])(?:assistant|user|model)\s*\n")


def _own_turns(reply: str, source: str) -> list[str]:
    """Return what a reply says in the model's first turn; two texts where either may be that."""
    turns = [reply] if _MARK.search(source) else _between_marks(reply)
    return [text for turn in turns if (text := _GLUED_NAME.split(turn, maxsplit=1)[0].strip())]


def _between_marks(reply: str) -> Iterator[str]:
    is_models, spoken = True, False
    for mark, piece in zip(["", *_MARK.findall(reply)], _MARK.split(reply), strict=True):
        # Another's turn follows, unless this is the end of a prompt that was repeated.
        if spoken and mark not in _ENDS_PROMPT:
            return
        head, _, rest = piece.strip().partition("\n")
        alone = _SPEAKER.fullmatch(head) if mark else None
        speaker = alone or _SPEAKER.search(mark)
        if speaker is not None:
            is_models = speaker["model"] is not None
        else:
            is_models = mark in _ENDS_PROMPT or (is_models and mark not in _OPENS_PROMPT)
        turn = rest if alone else piece
        if is_models and turn.strip():
            spoken = True
            yield turn


_BEGINS_JSON = re.compile(r"[{\[]\s*[\"'{\[]")
_JSON_ENTRY = re.compile(r'"([^"\\]+)"\s*:\s*("(?:[^"\\]|\\.)*"|null)', re.S)
_BESIDE = pattern("beside_rewrite", re.I)


def _in_json(text: str, source: str) -> list[str] | None:
    """Return the texts in a JSON answer; None if there is none, empty if it is broken off."""
    start = _BEGINS_JSON.search(text)
    if start is None or _BEGINS_JSON.search(source):
        return None
    entries = [entry for key, entry in _JSON_ENTRY.findall(text) if not _BESIDE.search(key)]
    try:
        texts = [json.loads(entry, strict=False) or _NOTHING for entry in entries]
    except ValueError:
        texts = []
    return texts if texts or start[0][0] == "{" else None


_FENCE = re.compile(r"(```|~~~)(?:[\w+-]*[ \t]*\n)?(.*?)(?:\1|\Z)", re.S)
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]{0,30})/?>")
_MARKUP = re.compile(r"</?(?:b|i|u|em|strong|mark|p|br|span|div|blockquote)/?>", re.I)


def _in_fences(text: str, source: str) -> list[str] | None:
    """Return the contents of fences; None if there are none."""
    has_fences = "```" in source or "~~~" in source
    return None if has_fences else [inner for _, inner in _FENCE.findall(text)] or None


def _in_tags(text: str, source: str) -> list[str] | None:
    """Return what is inside of tags that the text does not have, then what is outside of them; None without tags."""
    text = text if _MARKUP.search(source) else _MARKUP.sub("", text)
    tags = list(_TAG.finditer(text))
    if not tags or any(tag[0].lower() in source.lower() for tag in tags):
        return None
    inside, outside, opened, end = [], [], None, 0
    for tag in tags:
        if opened is None and not tag[1]:
            outside.append(text[end : tag.start()])
            opened = tag
        elif opened is not None and tag[1] and tag[2] == opened[2]:
            inside.append(text[opened.end() : tag.start()])
            opened, end = None, tag.end()
    rest = text[end if opened is None else opened.end() :]
    return [*inside, *outside, _TAG.sub("", rest)]


def _without_markup(text: str, source: str) -> str:
    """Return a text without bold and italic type, tabs, entities and escapes that the source does not have."""
    if "\t" not in source:
        text = re.sub(r"(?<=\w)\t(?=\S)", ": ", text)  # a label in a column of its own
    if "*" not in source:
        text = re.sub(r"\*\*|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])", "", text)
    if "__" not in source:
        text = text.replace("__", "")
    if "&" not in source.replace("& ", ""):
        text = html.unescape(text)
    if "\\" not in source:
        text = re.sub(r"\\([\"'*_`#-])", r"\1", text.replace("\\n", "\n"))
    return text if _MARKUP.search(source) else _MARKUP.sub("", text)


def _versions(text: str, about: SourceText) -> list[str]:
    """Return the rewrites in a text, each put together from the lines that belong to it."""
    pieces = list(_pieces(text, about))
    if about.lines > 1:
        return [_bare(_trimmed(piece, "\n", about.lines, about), about) for piece in pieces]
    units = [unit for piece in pieces if (unit := _bare(piece, about))]
    best = max(map(about.likeness, units), default=0.0)
    if sum(len(SENTENCE.split(unit)) for unit in units) > about.sentences:
        units = [unit for unit in units if about.likeness(unit) >= 0.5 * best]
    groups: list[list[str]] = []
    sentences = about.sentences
    for unit in units:
        if sentences >= about.sentences:
            groups.append([])
            sentences = 0
        groups[-1].append(unit)
        sentences += len(SENTENCE.split(unit))
    joint = "" if _NO_SPACES.search(about.text) else " "
    return [version for group in groups for version in _split(joint.join(group), about)]


_CELL = re.compile(r"\||→|->|=>|⇒|➡️?|➜|—>")
_QUOTED = re.compile("|".join(f"{a}[^{a}{b}]*{b}" for a, b in _DOUBLE_QUOTES.items()))


def _pieces(text: str, about: SourceText) -> Iterator[str]:
    """Yield the texts inside the structure of a reply."""
    pending = [text]
    while pending:
        text = pending.pop(0)
        structures = (find(text, about.text) for find in (_in_json, _in_fences, _in_tags))
        inside = next((texts for texts in structures if texts is not None), None)
        if inside is not None:
            pending[:0] = inside
        elif about.lines > 1:
            yield text
        else:
            for line in _without_markup(text, about.text).splitlines():
                for cell in _cells(line, about):
                    yield from _quoted(cell, about) or [cell]


def _cells(line: str, about: SourceText) -> list[str]:
    """Return the cells of a line of a table, or what is around an arrow, but for those that repeat the source."""
    cells = [line] if _CELL.search(about.text) else _CELL.split(line)
    if len(cells) < 2:
        return cells
    return [cell for cell in cells if _without_bullet(cell.strip(), about).strip(_AROUND) not in about.text]


def _quoted(line: str, about: SourceText) -> list[str]:
    """Return the rewrites that a line gives in quotation marks."""
    if any(mark in about.text for mark in _DOUBLE_QUOTES):
        return []
    quotations = [quotation[1:-1].strip() for quotation in _QUOTED.findall(line)]
    if not _WORD.search(_QUOTED.sub("", line)):
        return quotations
    return [quotation for quotation in quotations if about.covers(quotation) >= 0.5 * about.covers(line)]


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


_TALK = re.compile(r"\w{2}")  # less than that may be an emoticon
_REMARK_SIGNS = (": ", "(", "[", '"', "→")


def _trimmed(text: str, between: str, most: int, about: SourceText) -> str:
    """Return a text without lines or sentences at its ends that are not of the source, as long as it has too many."""
    parts = [part for part in (text.splitlines() if between == "\n" else SENTENCE.split(text)) if part.strip()]
    best = max(map(about.likeness, parts), default=0.0)

    def is_beside(part: str, rest: list[str]) -> bool:
        if not _TALK.search(part) or about.likeness(part) >= 0.5 * best:
            return False
        remark = any(sign in part and sign not in about.text for sign in _REMARK_SIGNS)
        return remark or about.covers(text) - about.covers(between.join(rest)) < 0.1

    while len(parts) > most:
        if is_beside(parts[-1], parts[:-1]):
            parts.pop()
        elif is_beside(parts[0], parts[1:]):
            parts.pop(0)
        else:
            break
    return text[text.find(parts[0]) : text.rfind(parts[-1]) + len(parts[-1])] if parts else ""


def _bare(text: str, about: SourceText) -> str:
    """Return a text without markup, bullet, label, quotation marks and asides, as far as the source has none."""
    for _ in range(3):
        before = text
        text = _without_markup(text.strip(), about.text)
        for step in (_without_bullet, _without_quotes, _without_label, _without_signs):
            text = step(text, about).strip()
        if text == before:
            break
    return text


_BULLET = re.compile(r"\s*(?:[-*•–—→>#]+\s|[\[(]?(?:\d{1,2}|[A-Za-z])[\])]+\s|\d{1,2}\.\s)\s*")
_LABEL = re.compile(rf"[^:：\n]{{1,200}}(?:{_COLON.pattern})[*_]*")


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
    label = _LABEL.match(text)
    if label is None or len(_COLON.findall(text)) <= about.colons:
        return text
    rest = text[label.end() :].strip()
    if not rest:
        return ""
    if any(2 * about.covers(sentence) > about.covers(rest) for sentence in SENTENCE.split(label[0])[:-1]):
        return text
    long_enough = len(rest) > len(label[0]) or about.covers(rest) >= 0.5
    return rest if long_enough and about.covers(text) - about.covers(rest) < 0.1 else text


_QUOTES = {**_DOUBLE_QUOTES, "'": "'", "‘": "’", "`": "`"}


def _without_quotes(text: str, about: SourceText) -> str:
    """Return a text without quotation marks around the whole, unless the source has them too."""
    mark, close = text[:1], _QUOTES.get(text[:1], "")
    # A rewrite of `He said "yes" and then "no"` may begin and end with a quotation.
    extra = sum(text.count(quote) - about.text.count(quote) for quote in {mark, close})
    if not close or extra < 1:
        return text
    if text.endswith(close) and extra > 1:
        return text[1:-1]
    return text[1:] if extra == 1 and mark in _DOUBLE_QUOTES else text


_OPENING = "\"'“‘«„「『([{¿¡$€£#@&-…"
_CLOSING = ".!?…,;:\"'”’»」』)]}%°€$£。！？।؟"


def _without_signs(text: str, about: SourceText) -> str:
    """Return a text without signs at its ends that rewrites do not add."""
    strange = {sign for sign in text if unicodedata.category(sign)[0] not in "LMN"} - {*about.text}
    return text.lstrip("".join(strange - {*_OPENING})).rstrip("".join(strange - {*_CLOSING}))
