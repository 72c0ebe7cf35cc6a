"""The ways in which a set of labels may be spelled and decorated in a reply, prepared once per set.

Whole replies, words in prose and the tokens of an answer are all compared with labels here.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

# Direction marks, joiners, soft hyphens and emoji variants: without meaning at the edge of a label.
INVISIBLE = "\u00ad\u061c" + "".join(map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A))))
INVISIBLE += "\ufe0e\ufe0f\ufeff"
_DRESS = " \t\r\n\f\v\x00\xa0\"'`´“”„‘’‚«»‹›*_~()[]{}<>" + INVISIBLE
_END = _DRESS + ".,;:!?…。、，！？؟،"
# A token may show its space as a sign, and may begin in the markup before the answer.
_TOKEN_DRESS = _DRESS + "▁Ġ:="
_MARK = r"(?:[-–—•·+>]|#{1,6})"
_BULLET = re.compile(rf"{_MARK}\s+")
_BULLET_BEGUN = re.compile(rf"{_MARK}(?:\s+|\Z)")
_GAP = r"[\s_\-‐‑–]"
_SEPARATORS = re.compile(rf"{_GAP}+")
_JOINT = re.compile(rf"(?<=\w){_GAP}+(?=\w)")
_WORD_GOES_ON = "+#'’"
_DRESS_ROOM = 16

# A word ends where no letter or digit follows; an underscore is emphasis, but inside `non_toxic` it acts as a hyphen.
_STARTS = r"(?<![^\W_])(?<![^\W_][-_‐‑–'’])"
_ENDS = r"(?![^\W_])(?![-_‐‑–'’][^\W_])(?![+#\u200d\U0001F3FB-\U0001F3FF])"
_DIGIT_STARTS = r"(?<![-−+$€£])(?<!\d[.,:/])"
_DIGIT_ENDS = r"(?![.,:/]\d)(?!\s?%)"
# Such a label is an ordinary word, not an answer, if the sentence continues after it: "A good text", "no doubt".
_NOT_GOING_ON = r"(?!\s+[^\W\d_])"
_CAPITALS_MATTER = frozenset(["an", "as", "at", "in", "is", "it", "or", "us"])
_FUNCTION_WORDS = _CAPITALS_MATTER | {"no", "not"}


class Mention(NamedTuple):
    """A label that occurs in a text as a whole word."""

    label: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelVocabulary:
    """A label set, prepared for reading replies."""

    labels: tuple[str, ...]  # the labels as the user spells them
    forms: dict[str, str]  # case-folded spelling → label, without spellings that could mean two labels
    longest: int  # a text longer than this is not a label alone, even with punctuation around it
    longest_answer: int  # letters of the longest label in a tag
    pattern: re.Pattern[str] | None  # finds labels as whole words, the longest first; its groups are the labels

    def match(self, text: str) -> str | None:
        """Return the label that the whole text is, ignoring quotes, emphasis, brackets and final punctuation."""
        text = text.strip()
        if len(text) > self.longest:
            return None
        folded = text.casefold()
        return self.forms.get(folded) or self.forms.get(_plain(folded))

    def starting_with(self, text: str, cut: bytes = b"") -> set[str]:
        """Return the labels that an answer with these first tokens may be; `cut` has the bytes of half a character."""
        bare = self.undressed(text).casefold()
        spaced = _SEPARATORS.sub(" ", bare)
        labels: set[str] = set()
        complete = ""
        for form, label in self.forms.items():
            if any(_starts(form, start, cut) for start in {text.casefold(), bare, spaced}):
                labels.add(label)
            elif len(form) > len(complete) and spaced.startswith(form) and _word_ends(spaced[len(form) :]):
                complete = form
        return labels | {self.forms[complete]} if complete else labels

    def undressed(self, text: str) -> str:
        """Return the first tokens of an answer without what may stand before a label."""
        bare = text.lstrip(_TOKEN_DRESS)
        if any(form.startswith(bare.casefold()) for form in self.forms):  # with a label -1, a minus is not a bullet
            return bare
        return _undressed(bare, _TOKEN_DRESS, _BULLET_BEGUN)

    def has_word(self, text: str) -> bool:
        """Return whether a text is a label, or the first word of one."""
        text = text.casefold()
        return any(form.startswith(text) and not form[len(text) : len(text) + 1].isalnum() for form in self.forms)

    def mentions(self, text: str) -> Iterator[Mention]:
        """Yield the labels that occur in the text as whole words, from left to right, without overlap."""
        if self.pattern is None:
            return
        for match in self.pattern.finditer(text):
            # one group per label, so the last group that matched is the only one
            yield Mention(self.labels[(match.lastindex or 1) - 1], *match.span())


@lru_cache(maxsize=256)
def vocabulary(labels: tuple[str, ...]) -> LabelVocabulary:
    """Return the prepared label set; the same labels are prepared once."""
    folded = Counter(label.strip().casefold() for label in set(labels))
    # `Task` refuses labels that differ only in case; if given such labels, we do not guess which is meant.
    clear = {label for label in labels if label.strip() and folded[label.strip().casefold()] == 1}
    usable = tuple(sorted(clear, key=lambda label: (-len(label), label)))
    spelled = {label: _composed(label.strip().casefold()) for label in usable}
    forms: dict[str, str] = {}
    # An exact spelling of a label means that label, even if it could be a variant of another.
    _claim(forms, spelled)
    _claim(forms, {label: {_plain(form) for form in spellings} for label, spellings in spelled.items()})
    _claim(
        forms, {label: {re.sub(r"\b[-‐‑]\b", "", form) for form in spellings} for label, spellings in spelled.items()}
    )
    pattern = "|".join(f"({_whole_word(label)})" for label in usable)
    longest = max((len(form) for form in forms), default=0)
    return LabelVocabulary(
        labels=usable,
        forms=forms,
        longest=longest + _DRESS_ROOM,
        longest_answer=longest + len("label") * 2,
        pattern=re.compile(pattern, re.IGNORECASE) if usable else None,
    )


def _composed(text: str) -> set[str]:
    # Accents may be composed or decomposed; both forms are kept, so that replies need no normalising.
    return {text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)}


def _claim(forms: dict[str, str], wanted: dict[str, set[str]]) -> None:
    owners: dict[str, set[str]] = {}
    for label, keys in wanted.items():
        for key in keys:
            owners.setdefault(key, set()).add(label)
    for key, labels in owners.items():
        if key and key not in forms and len(labels) == 1:
            forms[key] = min(labels)


@lru_cache(maxsize=1024)  # most answers are the same few
def _plain(folded: str) -> str:
    return _SEPARATORS.sub(" ", _undressed(folded, _DRESS, _BULLET).rstrip(_END))


def _undressed(text: str, dress: str, bullets: re.Pattern[str]) -> str:
    text = text.lstrip(dress)
    bullet = bullets.match(text)
    return text[bullet.end() :].lstrip(dress) if bullet else text


def _starts(form: str, text: str, cut: bytes) -> bool:
    if not form.startswith(text):
        return False
    if not cut:
        return True
    following = form[len(text) : len(text) + 1]
    return any(letter.encode().startswith(cut) for letter in (following, following.upper()))


def _word_ends(rest: str) -> bool:
    """Return whether a label that has this after it is complete; a space alone may be followed by more of a label."""
    following = rest.lstrip(" ")
    if not following:
        return True
    if following[0].isalnum() or (following == rest and rest[0] in _WORD_GOES_ON):
        return False
    return not (rest[0] in ".," and rest[1:2].isdigit())


def _whole_word(label: str) -> str:
    core = label.strip()
    body = "|".join(sorted(map(_flexible, _composed(core)), key=lambda form: (-len(form), form)))
    folded = core.casefold()
    single_letter = len(core) == 1 and core.isalpha()
    body = f"(?-i:{body})" if single_letter or folded in _CAPITALS_MATTER else f"(?:{body})"
    going_on = folded in _FUNCTION_WORDS or (single_letter and unicodedata.normalize("NFD", folded)[0] in "aeiouy")
    first, last = core[0], core[-1]
    before = (_STARTS if first.isalnum() else "") + (_DIGIT_STARTS if first.isdigit() else "")
    after = (_DIGIT_ENDS if last.isdigit() else "") + (_NOT_GOING_ON if going_on else "")
    return before + body + _ENDS + after


def _flexible(label: str) -> str:
    """Return a pattern in which a hyphen may be a space or nothing, and a space a hyphen or a line break."""
    pieces = _JOINT.split(label)
    joints = [_GAP + ("{1,3}" if "-" not in joint else "{0,3}") for joint in _JOINT.findall(label)]
    return "".join(re.escape(piece) + joint for piece, joint in zip(pieces, [*joints, ""], strict=True))
