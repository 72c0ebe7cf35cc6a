"""Replaces words with synonyms from an audited lexicon."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.rules.rule import NotApplicable, Replacement, sentence_rule, splice
from pcs_annotator.relations.rules.synonyms.frames import FRAMES, PhrasePlace
from pcs_annotator.relations.rules.synonyms.lexicon import Form, LexiconEntry, fixed_phrases, forms_by_first_word
from pcs_annotator.relations.rules.words import SMALL, lemma

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

MOST = 3
LAST_RESORT = 3

_NAMES = ("NNP", "NNPS")
_FINITE = ("VBZ", "VBP", "VBD")
_SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass", "expl")
_COMPLEMENTS = ("dobj", "ccomp", "xcomp")
_QUOTES = "\"“”‘’'`«»"
_MAY_STAND_BEFORE = " \t\n\r([—–\"“‘'’`"
_MAY_STAND_AFTER = " \t\n\r)]—–\"”’'.,;:!?…"
# A quotation of up to six words may be a title or a term, which must stay.
_SHORT_QUOTATION = re.compile(r"""(?<![\w'’])(["'“‘`])(?=\S)(?:(?!["“”])\S+ ){0,5}(?:(?!["“”])\S)+?["'”’](?!\w)""")
# Enough for the words of the lexicon; a test covers each of them.
_VOWEL = re.compile(r"[aeiou]")
_CONSONANT_SOUND = re.compile(r"eu|us[eu]|one\b|once\b")


class Match(NamedTuple):
    """A form of an entry, found in a sentence."""

    form: Form
    place: PhrasePlace


@sentence_rule("rule:synonym", version="2", expects=Expectation())
def synonym(sentence: Span) -> str | NotApplicable:
    """Return the sentence with up to three words replaced by synonyms."""
    matches = list(_matches(sentence))
    if not matches:
        return NotApplicable("no word with a safe synonym")
    chosen = _chosen(matches)
    replacements = [replacement for match in chosen for replacement in _replacements(match)]
    return splice(sentence.text, replacements, sentence.start_char)


def _matches(sentence: Span) -> Iterator[Match]:
    known = forms_by_first_word()
    words = [token.lower_ for token in sentence]
    fixed: set[int] | None = None
    for at, word in enumerate(words):
        for form in known.get(word, ()):
            if tuple(words[at : at + len(form.words)]) != form.words:
                continue
            start = sentence.start + at
            place = PhrasePlace(sentence, start, start + len(form.words))
            if not (_written_plainly(form, place) and _conditions_hold(form.entry, place) and _is_free(form, place)):
                continue
            fixed = {*_quoted(sentence), *_in_fixed_phrases(sentence)} if fixed is None else fixed
            if fixed.isdisjoint(range(place.start, place.end)):
                yield Match(form, place)


def _chosen(matches: list[Match]) -> list[Match]:
    """Return the safest matches, none adjacent to another; a last resort only if there is nothing else."""
    taken: set[int] = set()
    chosen: list[Match] = []
    for match in sorted(matches, key=lambda match: (match.form.entry.rank, -len(match.form.words), match.place.start)):
        # One more on each side: two changed words in a row, or with an article between them, need more checks.
        around = range(match.place.start - 1, match.place.end + 1)
        if len(chosen) == MOST or (chosen and match.form.entry.rank == LAST_RESORT):
            break
        if taken.isdisjoint(around):
            chosen.append(match)
            taken.update(around)
    return chosen


def _replacements(match: Match) -> Iterator[Replacement]:
    form, place = match
    first, last = place.word, place.sentence.doc[place.end - 1]
    new = form.to[0].upper() + form.to[1:] if first.text[0].isupper() else form.to
    if first.idx > place.sentence.start_char and first.text[0] in "'’":
        new = f" {new}"
    yield Replacement(first.idx, last.idx + len(last), new)
    article = place.before()
    if article is not None and article.lower_ in ("a", "an"):
        wanted = "an" if _takes_an(form.to) else "a"
        if wanted != article.lower_:
            start = article.idx
            yield Replacement(start, start + len(article), article.text[0] + wanted[1:])


def _takes_an(word: str) -> bool:
    return bool(_VOWEL.match(word)) and not _CONSONANT_SOUND.match(word)


def _written_plainly(form: Form, place: PhrasePlace) -> bool:
    """Whether the words have the tags of the entry and are written like common words."""
    first, tags = place.word, form.entry.tags
    if (form.tag and first.tag_ != form.tag) or (tags and first.tag_ not in tags):
        return False
    tokens = [place.sentence.doc[at] for at in range(place.start, place.end)]
    if not all(_is_common(token, first=token.i == first.i and _opens(place)) for token in tokens):
        return False
    before, after = _character_before(first), _character_after(tokens[-1])
    if first.text[0] in "'’":
        return after.isspace()
    return before in _MAY_STAND_BEFORE and after in _MAY_STAND_AFTER


def _is_common(token: Token, *, first: bool) -> bool:
    """Whether a word is not written like a name."""
    if token.text[0].isupper() and (not first or token.text[1:] != token.text[1:].lower()):
        return False
    return token.tag_ not in _NAMES


def _character_before(token: Token) -> str:
    """Return the character before a word; a space at the beginning of the text."""
    if not token.i:
        return " "
    before = token.nbor(-1)
    return before.whitespace_ or before.text[-1]


def _character_after(token: Token) -> str:
    """Return the character after a word; a space at the end of the text."""
    if token.whitespace_ or token.i + 1 == len(token.doc):
        return " "
    return token.nbor().text[0]


def _opens(place: PhrasePlace) -> bool:
    """Whether any word has a capital here: at the start of a sentence or quotation, after a colon or dash."""
    before, after = place.before(), place.after()
    # Two capitals in a row begin a title: `Begin Again is a film`.
    if after is not None and after.text[0].isupper() and after.lower_ in SMALL and after.text != "I":
        return False
    return before is None or FRAMES["first"](place) or before.text in (*_QUOTES, ":", "-", "--", "–", "—")


def _is_free(form: Form, place: PhrasePlace) -> bool:
    """Whether no compound, particle or repetition prevents the replacement."""
    word, entry = place.word, form.entry
    inside = range(place.start, place.end)
    if entry.kind == "noun" and not _noun_is_free(word):
        return False
    if entry.kind == "verb" and not _verb_is_free(word, inside):
        return False
    others = {token.lower_ for token in place.sentence if token.i not in inside}
    # The new word twice in a sentence reads badly; replacing one of two old words suggests two things or spoils a pun.
    new = {part.strip(",") for part in f"{form.to} {entry.to}".lower().split()} - SMALL
    if not others.isdisjoint(new.difference(form.words)):
        return False
    return place.word.tag_[:2] not in ("NN", "JJ", "RB") or form.words[0] not in others


def _noun_is_free(word: Token) -> bool:
    if word.dep_ in ("compound", "nmod") or any(child.dep_ in ("compound", "nmod") for child in word.children):
        return False
    following = word.nbor() if word.i + 1 < len(word.doc) else None
    # An adjacent noun means a compound that the parser missed; an adjective, an apostrophe that the writer did.
    missed = ("NN", "NNS", *_NAMES) if word.tag_ == "NN" else ("NN", "NNS", *_NAMES, "JJ", "JJS", "RBS")
    if following is not None and following.tag_ in missed:
        return False
    before = word.nbor(-1) if word.i else None
    return before is None or before.tag_ not in ("NN", "NNS", *_NAMES)


def _verb_is_free(word: Token, inside: range) -> bool:
    if word.dep_ in ("amod", "compound", "nmod"):
        return False
    # A plural noun or a participle is easily mistaken for a verb; a real one has a subject or joins a verb with one.
    subjects = [child for child in word.children if child.dep_ in _SUBJECTS]
    disagrees = {"VBZ": ("NNS", "NNPS"), "VBP": ("NN",)}.get(word.tag_, ())
    if any(child.tag_ in disagrees and not child.conjuncts for child in subjects):
        return False
    if word.tag_ in _FINITE and word.i and word.nbor(-1).tag_ in ("POS", "PRP$"):
        return False
    if word.tag_ in _FINITE and not (
        subjects
        or (word.dep_ == "conj" and word.head.tag_ in _FINITE)
        or (word.dep_ == "ROOT" and word.is_sent_start and any(child.dep_ in _COMPLEMENTS for child in word.children))
    ):
        return False
    return not any(child.dep_ in ("prt", "det", "poss") and child.i not in inside for child in word.children)


def _conditions_hold(entry: LexiconEntry, place: PhrasePlace) -> bool:
    frames = (FRAMES[name.removeprefix("!")](place) != name.startswith("!") for name in entry.frame)
    return _neighbours_fit(entry, place) and _parse_fits(entry, place) and all(frames)


def _neighbours_fit(entry: LexiconEntry, place: PhrasePlace) -> bool:
    previous, following = _spelling(place.before()), _spelling(place.after())
    if (entry.next and following not in entry.next) or following in entry.not_next:
        return False
    if (entry.prev and previous not in entry.prev) or previous in entry.not_prev:
        return False
    return not entry.without or entry.without.isdisjoint(map(_spelling, place.sentence))


def _spelling(token: Token | None) -> str:
    return "" if token is None else token.lower_.replace("’", "'")


def _parse_fits(entry: LexiconEntry, place: PhrasePlace) -> bool:
    if entry.subject:
        subjects = (child for child in place.word.children if child.dep_ in ("nsubj", "nsubjpass"))
        if entry.subject.isdisjoint(name for token in subjects for name in _names_of(token)):
            return False
    if entry.object or entry.not_object:
        objects = {name for token in place.objects for name in _names_of(token)}
        if (entry.object and entry.object.isdisjoint(objects)) or not entry.not_object.isdisjoint(objects):
            return False
    if entry.head or entry.not_head:
        head = lemma(place.word.head)
        if (entry.head and head not in entry.head) or head in entry.not_head:
            return False
    return True


def _names_of(token: Token) -> tuple[str, ...]:
    if token.tag_ not in _NAMES:
        return (lemma(token),)
    # A name with an article is more often a thing than a person.
    return () if any(child.dep_ == "det" for child in token.children) else ("@name",)


def _quoted(sentence: Span) -> Iterator[int]:
    """Yield the positions of words in quotations so short that they may be titles or terms."""
    for found in _SHORT_QUOTATION.finditer(sentence.text):
        start, end = found.start() + sentence.start_char, found.end() + sentence.start_char
        yield from (token.i for token in sentence if start <= token.idx < end)


def _in_fixed_phrases(sentence: Span) -> Iterator[int]:
    """Yield the positions of words in phrases that allow no other word."""
    words = [{_spelling(token), lemma(token)} for token in sentence]
    for at, first in enumerate(words):
        for phrase in (phrase for word in first for phrase in fixed_phrases().get(word, ())):
            here = words[at : at + len(phrase)]
            if len(here) == len(phrase) and all(word in found for word, found in zip(phrase, here, strict=True)):
                yield from range(sentence.start + at, sentence.start + at + len(phrase))
