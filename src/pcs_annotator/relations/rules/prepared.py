"""Prepares headlines and tweets for the parser, which was trained on newspapers, and puts their spelling back.

A title is parsed in sentence case; mentions, tags, links and emoji at the ends of a text are set aside. What is parsed
has the same length as what was written, so that positions are the same in both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from pcs_annotator.relations.rules.words import NAMES_TOO, SMALL, SURE_NAMES, inflect, lemma_of, readings, word_set

_EMOJI = r"[\u200d\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]"
_SIGN = rf"(?:https?:\S+|www\.\S+|pic\.twitter\.com/\S+|[@#]\w+|{_EMOJI}|<3|[:;]-?[)(DP](?!\w)|[xX]{{2,}}\b)"
_BEFORE = re.compile(
    rf"\s*(?:(?:RT\s+)?\.?@\w+:?\s+|RT\s+|#\w+(?::\s+|\s+(?=#))|{_EMOJI}\s*"
    r"|(?:omg|lol|lmao|(?:ha){2,}|btw|fyi|tbh|yeah|ya|yes|yep|yup|wow|hey|ugh|damn|dude|bro)(?:[,!.]*\s+))*"
    r"(?:(?:breaking(?: news)?|just in|updated?|exclusive|watch|video|report|poll|study|analysis|opinion|fact check)"
    r"\s*(?::|-|–|—)\s+|(?-i:[A-Z][\w'’.-]*(?: (?:[A-Z\d][\w'’.-]*|of|the|and|in)){0,4}: (?=[\"“]?[A-Z])))?",
    re.IGNORECASE,
)
_AFTER = re.compile(rf"(?:\s*(?:\bvia(?=\s+@))?\s*{_SIGN})+[\s.]*$|\s+\|\s[^|]{{2,40}}$|\s+$")
_TAG = re.compile(r"(?<!\w)[@#]\w*[^\W\d]\w*")
_WORD = re.compile(r"(?:(?<!\w)[@#]\w*[^\W\d]\w*|[^\W_]+)(?:['’`][^\W_]+)*")
_SHOUTED = re.compile(r"(?<![\w'’-])[A-Z]{4,}(?![\w'’-])")
_I = re.compile(r"(?<![\w'’-])i(?=['’]\w|\s|$)")
_SENTENCE = re.compile(
    r"\S.*?(?:(?<!\b[A-Z])(?<!\b(?:St|Mr|Dr|Jr|Sr|vs|No|Co))(?<!\b(?:Mrs|Sen|Gov|Rep|Inc|Ltd|Jan|Feb|Aug|Oct|Nov|Dec))"
    r"(?<!\b(?:Corp|Sept))[.!?]+[\"'”’)]*(?=\s|$)|$)",
    re.MULTILINE,
)
_APOSTROPHE = re.compile(r"(?<=\w)`(?=\w)")
# What a mention in front belongs to: "@user is right", "@user and I".
_JOINS = word_set("and or & 's")
_CONTINUES = _JOINS | word_set("is was has had says said")
# Words that a tag or mention after them may belong to.
_TAKES_TAG = word_set(
    "a an the and or but of in on at to for from by with about as into over after before under between against during "
    "without through than near around like via my your his her its our their this that these those is are was were be "
    "am not no so very new love hate see watch meet join great good happy using called thank & + w/ -"
)
# Words that stay small in a title, unless its writer gives all words a capital.
_SMALL_IN_TITLES = word_set("a an the and or but nor of in on at to for from by with as via vs")
_LONG_SMALL = word_set("about over into after before under amid against between during without through than upon per")
# Parts of names when another name follows.
_BEFORE_NAMES = word_set("new old north south east west northern southern saudi san los las united great st")
_QUOTED = re.compile(r"[\"“](?:[^\s\"”]+ ){0,3}[^\s\"”]+[\"”]|[‘'](?:[^\s'’]+ ){0,3}[^\s'’]+['’](?!\w)")
_LONGEST_TAIL = 300
_LEAST_WORDS, _LEAST_CAPITALS = 2, 0.9


class Prepared(NamedTuple):
    """A text as it is parsed.

    Attributes:
        before: What was set aside in front.
        source: The rest, as written.
        text: The rest as parsed, of the same length.
        after: What was set aside at the end.
    """

    before: str
    source: str
    text: str
    after: str


# All rules parse the same texts.
@lru_cache(maxsize=2048)
def prepared(text: str) -> Prepared:
    """Return a text as it is parsed.

    >>> prepared("@user The Mayor Saves Her Old School #proud")
    Prepared(before='@user ', source='The Mayor Saves Her Old School', text='The mayor saves her old school', \
after=' #proud')
    """
    start, end = _bounds(text)
    source = text[start:end]
    plain = _TAG.sub(_stand_in, _APOSTROPHE.sub("'", source))
    parsed = _SENTENCE.sub(lambda found: _with_capitals(in_sentence_case(found[0])), plain)
    return Prepared(text[:start], source, parsed if len(parsed) == len(source) else source, text[end:])


def _stand_in(tag: re.Match[str]) -> str:
    """Return a name of the same length, which the parser reads as one: `Xbus` for `#bus`."""
    return f"X{tag[0][1:].lower()}".replace("_", "x")


def _in_small_letters(shouted: re.Match[str]) -> str:
    """Return a word in small letters if it is one, and no name or short form."""
    low = shouted[0].lower()
    return low if low not in NAMES_TOO and (low in SMALL or readings(low)) else shouted[0]


def _with_capitals(sentence: str) -> str:
    """Return a sentence that was typed in a hurry with a capital at its start and in "I"."""
    return _I.sub("I", sentence[0].upper() + sentence[1:] if sentence[:2].isalpha() else sentence)


def _bounds(text: str) -> tuple[int, int]:
    """Return where the words begin and end between what is set aside."""
    found = _BEFORE.match(text)
    start = found.end() if found else 0
    following = text[start:].split(maxsplit=1)
    if found and following and following[0].lower() in (_JOINS if text.count("@", 0, start) > 1 else _CONTINUES):
        start = 0
    tail = _AFTER.search(text, max(start, len(text) - _LONGEST_TAIL))
    end = tail.start() if tail else len(text)
    last, sign = (text[start:end].split() or [""])[-1].lower(), text[end:].lstrip()[:1]
    # "Back from #work": the tag is part of the sentence.
    if sign in ("#", "@") and (last in _TAKES_TAG or last[-1:] in (",", ":", "")):
        own = re.compile(r"\s*\S+").match(text, end)
        end = own.end() if own else end
    return _within_quotes(text, start, end) if start < end else (0, len(text))


def _within_quotes(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds without quotation marks around all of the words, or one that was left over at an end."""
    marks = [at for at in range(start, end) if text[at] == '"']
    opens, closes = start in marks, end - 1 in marks
    if len(marks) > 2 or len(marks) != opens + closes or end - start < 3:
        return start, end
    return start + opens, end - closes


def is_title(sentence: str) -> bool:
    """Return whether nearly every word but the small ones has a capital, so that capitals do not mark names.

    >>> is_title("How the Mayor Saved Her Old School"), is_title("How Ann Lee saved her old school")
    (True, False)
    """
    words = [word for word in _WORD.findall(sentence)[1:] if word[0].isalpha()]
    words = [word for word in words if word not in _SMALL_IN_TITLES and word not in _LONG_SMALL]
    return len(words) >= _LEAST_WORDS and sum(not word.islower() for word in words) >= _LEAST_CAPITALS * len(words)


def in_sentence_case(sentence: str) -> str:
    """Return a title in sentence case, as far as its names can be told from other words; other sentences as they are.

    >>> in_sentence_case("Kathy Griffin Talks About North Korea and Her Worst Stories")
    'Kathy Griffin talks about North Korea and her worst stories'
    """
    if sentence.isupper():
        sentence = _WORD.sub(lambda found: found[0].capitalize(), sentence)
    titled = is_title(sentence)
    sentence = _SHOUTED.sub(_in_small_letters, sentence)
    if not titled:
        return sentence
    quoted = [found.span() for found in _QUOTED.finditer(sentence)]
    words = [found for found in _WORD.finditer(sentence) if not any(a < found.start() < b for a, b in quoted)]
    pieces, done, name = [], 0, ""
    for at, found in enumerate(words):
        word, start = found[0], found.start()
        following = words[at + 1][0] if at + 1 < len(words) else ""
        initial = len(word) == 1 and sentence[start + 1 : start + 2] == "."
        keeps = initial or _is_name(word, following, after=name if start == done + 1 else "")
        opens = not at or sentence[start - 1] in '“"' or sentence[start - 2 : start] == ": "
        pieces += [sentence[done:start], word if keeps or opens else word[0].lower() + word[1:]]
        done, name = found.end(), word if keeps and word[0].isalpha() and word[-2:] not in ("'s", "’s") else ""
    return "".join([*pieces, sentence[done:]])


def _is_name(word: str, following: str, after: str) -> bool:
    """Return whether a word of a title keeps its capital in a sentence; `after` is the name in front of it."""
    low = _key(word).removesuffix("'s")
    if low == "i" or any(letter.isupper() or letter.isdigit() for letter in word[1:]) or not word[0].isalpha():
        return True
    beside = bool(after) or _may_be_name(_key(following))
    common = low in SMALL and not (low in _BEFORE_NAMES and beside)
    if word[0].islower() or common or low.endswith(("self", "selves", "n't")):
        return False
    found = readings(low)
    if not found or low in SURE_NAMES or (beside and (low in NAMES_TOO or low in _BEFORE_NAMES)):
        return True
    return bool(after) and "NOUN" in found and not ("VERB" in found and _may_follow(low, after))


def _may_be_name(low: str) -> bool:
    return bool(low) and (low in NAMES_TOO or not (low in SMALL or readings(low)))


def _may_follow(verb: str, name: str) -> bool:
    """Return whether a verb may have a name before it as its subject: one person "talks" or "talked"."""
    base = lemma_of(verb, "VB")
    return verb != base or name.endswith("s") or inflect(base, "VBD") == base


def as_written(rewrite: str, source: str, parsed: str) -> str:
    """Return the rewrite of a parsed sentence in the spelling of its source: the words of the source as they were.

    >>> as_written("Her old school is saved by the mayor", "The Mayor Saves Her Old School", "The mayor saves …")
    'Her Old School Is Saved by the Mayor'
    """
    if source == parsed:
        return rewrite
    written, read = _WORD.findall(source), _WORD.findall(parsed)
    pairs = list(zip(written, read, strict=False))
    titled = any(old[0].isupper() and not old.isupper() and new[0].islower() for old, new in pairs)
    all_capitals = any(word[0].isupper() and word.lower() in _SMALL_IN_TITLES for word in written[1:])
    small = frozenset[str]() if all_capitals else _SMALL_IN_TITLES
    changed = {_key(new) for old, new in pairs if old != new or titled}
    spellings: dict[str, list[str]] = {}
    for old, new in pairs[1:] if titled and _key(written[0]) in small else pairs:
        if _key(new) in changed:
            spellings.setdefault(_key(new), []).append(old)
    text = rewrite
    # From the end, because a word that is there twice is mostly followed by the same words as before.
    for found in reversed(list(_WORD.finditer(rewrite))):
        word, known = found[0], spellings.get(_key(found[0]), [])
        if known:
            word = known.pop() if len(known) > 1 else known[0]
        elif titled and _key(word) not in small:
            word = word[0].upper() + word[1:]
        text = text[: found.start()] + word + text[found.end() :]
    return _begun_like(source, text, written)


def keeps_emphasis(source: str, rewrite: str) -> bool:
    """Return whether a rewrite keeps all words that its source has in capitals."""
    return source.isupper() or not set(_SHOUTED.findall(source)) - set(_SHOUTED.findall(rewrite))


def _begun_like(source: str, text: str, words: list[str]) -> str:
    """Return a text with a capital at its start, unless its source has none there or has that word without one."""
    if source.isupper():
        return text.upper()
    first = next((at for at, letter in enumerate(text) if letter.isalnum()), 0)
    if text[:first].endswith(("#", "@")):
        return text
    if source[0] in "#@" or not next((letter for letter in source if letter.isalnum()), "").islower():
        return text[:first] + text[first].upper() + text[first + 1 :]
    return text if _WORD.findall(text)[0] in words else text[:first] + text[first].lower() + text[first + 1 :]


def _key(word: str) -> str:
    return word.lower().replace("’", "'")
