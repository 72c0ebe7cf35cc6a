"""A verb with its auxiliaries, negation and adverbs, written in either voice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pcs_annotator.relations.rules.words import inflect, lemma, word_set

if TYPE_CHECKING:
    from spacy.tokens import Token

APOSTROPHES = str.maketrans("’", "'")

_DO = frozenset({"do", "does", "did"})
_HAVE = frozenset({"have", "has", "had", "'ve"})
_BE = frozenset({"am", "is", "are", "was", "were", "be", "been", "being", "'m", "'re"})
_MODALS = {"ca": "can", "wo": "will", "sha": "shall", "'ll": "will", "'d": "would"}
_NOT_CONTRACTED = {"can": "can't", "will": "won't", "shall": "shan't"}
_PARTICIPLE_ONLY = frozenset({"run", "come", "become", "overcome", "overrun", "outrun", "rerun"})
_NEVER_CONTRACTED = frozenset({"am", "may"})


class _Shape(NamedTuple):
    perfect: bool = False
    progressive: bool = False
    passive: bool = False


# Auxiliaries (M modal, D do, H have, B be) and the tags that the main verb may have after them.
_SHAPES: dict[tuple[str, str], _Shape] = {
    ("", "VBD"): _Shape(),
    ("", "VBZ"): _Shape(),
    ("", "VBP"): _Shape(),
    ("D", "VB"): _Shape(),
    ("M", "VB"): _Shape(),
    ("H", "VBN"): _Shape(perfect=True),
    ("MH", "VBN"): _Shape(perfect=True),
    ("B", "VBG"): _Shape(progressive=True),
    ("B", "VBN"): _Shape(passive=True),
    ("MB", "VBN"): _Shape(passive=True),
    ("BB", "VBN"): _Shape(progressive=True, passive=True),
    ("HB", "VBN"): _Shape(perfect=True, passive=True),
    ("MHB", "VBN"): _Shape(perfect=True, passive=True),
}

# Adverbs about the whole statement go after the first auxiliary; the others stay next to the verb.
_SENTENCE_ADVERBS = word_set(
    """
    currently evidently indeed presently obviously also never still already now often always just then probably likely
    reportedly allegedly recently previously repeatedly apparently certainly clearly definitely eventually finally
    generally initially later long once originally perhaps possibly rarely seldom since sometimes soon
    subsequently surely typically ultimately usually yet ever
    """
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbGroup:
    """A verb group apart from its voice.

    Attributes:
        verb: Dictionary form of the main verb.
        spelling: The past participle as the text spells it; empty when the text does not have one.
        past: Whether its first word is in the past tense; no effect after a modal.
        modal: The modal it begins with, written out; empty for none.
        perfect: Whether it has the perfect aspect.
        progressive: Whether it has the progressive aspect.
        passive: Whether it is in the passive voice.
        negation: `not` or `n't`, or empty.
        above: Adverbs before the negation.
        adverbs: All other adverbs.
    """

    verb: str
    spelling: str = ""
    past: bool = False
    modal: str = ""
    perfect: bool = False
    progressive: bool = False
    passive: bool = False
    negation: str = ""
    above: tuple[str, ...] = ()
    adverbs: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether its first word may change with the number of its subject."""
        return not self.modal


def read_group(verb: Token, before: Sequence[Token]) -> VerbGroup | None:
    """Return the group of a verb and the words between it and its subject; None if it is not a plain finite one."""
    auxiliaries = [token for token in before if token.dep_ in ("aux", "auxpass")]
    letters = "".join(_letter(token, verb) for token in auxiliaries)
    shape = _SHAPES.get((letters, verb.tag_))
    if shape is None:
        return None
    first = auxiliaries[0] if auxiliaries else verb
    negation = next((token for token in before if token.dep_ == "neg" and token.lower_ != "never"), None)
    if negation is not None and (negation.lower_.translate(APOSTROPHES) not in ("not", "n't") or not auxiliaries):
        return None
    adverbs = _adverbs(verb, before, negation)
    return VerbGroup(
        verb=lemma(verb),
        spelling=_spelling(verb),
        past=first.tag_ == "VBD" and first.lower_.translate(APOSTROPHES) != "'s",
        modal=_modal(first) if letters[:1] == "M" else "",
        perfect=shape.perfect,
        progressive=shape.progressive,
        passive=shape.passive,
        negation="" if negation is None else negation.lower_.translate(APOSTROPHES),
        above=tuple(text for index, text in adverbs if negation is not None and index < negation.i),
        adverbs=tuple(text for index, text in adverbs if negation is None or index > negation.i),
    )


def write_group(group: VerbGroup, *, passive: bool, plural: bool) -> str | None:
    """Return the words of a group in the given voice for a third-person subject; None if there is no such form."""
    if passive and group.progressive and (group.perfect or group.modal):
        return None
    words = _verbs(group, passive=passive, plural=plural)
    if words is None:
        return None
    *helpers, main = words
    if not helpers:
        return " ".join([*group.above, *group.adverbs, main])
    early = [word for word in group.adverbs if len(helpers) == 1 or word in _SENTENCE_ADVERBS]
    late = [adverb for adverb in group.adverbs if adverb not in early]
    return " ".join([*_negated(helpers[0], group), *early, *helpers[1:], *late, main])


def participle(group: VerbGroup) -> str | None:
    """Return the past participle of a group's verb."""
    return group.spelling or inflect(group.verb, "VBN")


def _spelling(verb: Token) -> str:
    """Return the participle as the text spells it; `showed` is a past tense, with the participle `shown`."""
    if verb.tag_ == "VBN":
        return verb.lower_
    regular = verb.tag_ == "VBD" and verb.lower_.endswith("ed") and (inflect(lemma(verb), "VBN") or "ed").endswith("ed")
    return verb.lower_ if regular else ""


def _letter(token: Token, verb: Token) -> str:
    word = token.lower_.translate(APOSTROPHES)
    if word == "'s":
        perfect = verb.tag_ == "VBN" and (token.dep_ == "aux" or any(word.lower_ == "been" for word in verb.lefts))
        return "H" if perfect else "B"
    if word == "'d" and verb.tag_ == "VBN":
        return "H"
    for letter, words in (("D", _DO), ("H", _HAVE), ("B", _BE)):
        if word in words:
            return letter
    # "UN to send troops" is a headline's future.
    return "M" if token.tag_ == "MD" or (word == "to" and verb.dep_ == "ROOT") else "?"


def _modal(token: Token) -> str:
    word = token.lower_.translate(APOSTROPHES)
    return _MODALS.get(word, word)


def _adverbs(verb: Token, before: Sequence[Token], negation: Token | None) -> list[tuple[int, str]]:
    """Return the adverbs with their positions; `no longer` counts as one adverb."""
    if not before:
        return []
    first, last = before[0].i, before[-1].i
    found = []
    for token in before:
        if token.head == verb and (token.dep_ == "advmod" or (token.dep_ == "neg" and token != negation)):
            words = [part.text for part in token.subtree if first <= part.i <= last]
            found.append((token.i, " ".join(words)))
    return found


def _verbs(group: VerbGroup, *, passive: bool, plural: bool) -> list[str] | None:
    """Return the auxiliaries and the main verb, each in the form that the one before it requires."""
    chain: list[tuple[str, str]] = []
    if group.perfect:
        chain.append(("have", "VBN"))
    if group.progressive:
        chain.append(("be", "VBG"))
    if passive:
        chain.append(("be", "VBN"))
    if group.negation and not chain and not group.modal:
        chain.append(("do", "VB"))
    words, form = ([group.modal], "VB") if group.modal else ([], "")
    for base, next_form in chain:
        words.append(_helper(base, form, past=group.past, plural=plural))
        form = next_form
    main = _main(group, form, plural=plural)
    return None if main is None else [*words, main]


def _main(group: VerbGroup, form: str, *, plural: bool) -> str | None:
    if form == "VB":
        return group.verb
    if form == "":
        form = "VBD" if group.past else ("VBP" if plural else "VBZ")
    if form == "VBP":
        return group.verb
    if form in ("VBN", "VBD") and group.spelling and (form == "VBN" or group.spelling.endswith("ed")):
        return group.spelling
    # "Broadcast" is its own past tense; "run" is its own participle only.
    if form == "VBD" and group.spelling == group.verb and group.verb not in _PARTICIPLE_ONLY:
        return group.verb
    return inflect(group.verb, form)


def _helper(base: str, form: str, *, past: bool, plural: bool) -> str:
    if form:
        return {"VB": base, "VBN": "been" if base == "be" else "had", "VBG": "being"}[form]
    present = {"be": ("is", "are"), "have": ("has", "have"), "do": ("does", "do")}
    before = {"be": ("was", "were"), "have": ("had", "had"), "do": ("did", "did")}
    return (before if past else present)[base][plural]


def _negated(first: str, group: VerbGroup) -> list[str]:
    if group.negation == "n't" and first not in _NEVER_CONTRACTED:
        return [*group.above, _NOT_CONTRACTED.get(first, f"{first}n't")]
    if first == "can" and group.negation and not group.above:
        return ["cannot"]
    return [first, *group.above, *(["not"] if group.negation else [])]
