"""Replaces words with synonyms from an audited list."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.facts import FINITE, SMALL, SUBJECTS, inflect, why_not_whole
from pcs_annotator.relations.rule import NotApplicable, Replacement, sentence_rule, splice

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

LEXICON = "synonyms.toml"
MOST = 3
WordKind = Literal["verb", "noun", "word"]
TAGS: Mapping[WordKind, tuple[str, ...]] = {
    "verb": ("VB", "VBP", "VBZ", "VBD", "VBN", "VBG"),
    "noun": ("NN", "NNS"),
    "word": (),
}
_LISTS = ("tags", "next", "prev", "not_next", "not_prev")
_NOUNS = ("NN", "NNS", "NNP", "NNPS")
_MAY_STAND_AROUND = frozenset(" \t\n\r—–.,;:!?…")
# Enough for the words of the list; a test covers each of them.
_TAKES_AN = re.compile(r"(?!eu|us[eu]|one\b|once\b)[aeiou]")
_QUOTES = re.compile("[\"“”‘`«»]|(?<!\\w)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Synonym:
    """One line of the list, in one direction."""

    kind: WordKind
    words: tuple[str, ...]
    to: str
    tags: frozenset[str] = frozenset()
    next: frozenset[str] = frozenset()
    prev: frozenset[str] = frozenset()
    not_next: frozenset[str] = frozenset()
    not_prev: frozenset[str] = frozenset()

    def forms(self) -> Iterator[Form]:
        """Yield every inflected form; ValueError if one cannot be inflected."""
        if self.kind == "word":
            yield Form(self, self.words, "", self.to)
            return
        at = 0 if self.kind == "verb" else -1
        for tag in TAGS[self.kind]:
            if not self.tags or tag in self.tags:
                old, new = list(self.words), self.to.split()
                old[at], new[at] = _inflected(old[at], tag), _inflected(new[at], tag)
                yield Form(self, tuple(old), tag, " ".join(new))


class Form(NamedTuple):
    """One inflected form: the words to look for, the Penn tag of the first (empty for any), the replacement."""

    synonym: Synonym
    words: tuple[str, ...]
    tag: str
    to: str


@sentence_rule("rule:synonym", version="4", expects=Expectation())
def synonym(sentence: Span) -> str | NotApplicable:
    """Return the sentence with up to three words replaced by synonyms."""
    reason = why_not_whole(sentence)
    if reason:
        return NotApplicable(reason)
    taken: set[int] = set()
    changes: list[Replacement] = []
    chosen = 0
    for form, words in sorted(_matches(sentence), key=lambda match: -len(match[1])):
        # One more on each side: two changed words in a row, or with an article between them, need more checks.
        around = range(words.start - 1, words.end + 1)
        if taken.isdisjoint(around) and chosen < MOST:
            chosen += 1
            taken.update(around)
            changes += _replacements(form, words)
    if not changes:
        return NotApplicable("no word with a safe synonym")
    return splice(sentence.text, changes, sentence.start_char)


def _matches(sentence: Span) -> Iterator[tuple[Form, Span]]:
    known = forms_by_first_word()
    spelt = [_spelling(token) for token in sentence]
    for at, word in enumerate(spelt):
        for form in known.get(word, ()):
            end = at + len(form.words)
            if tuple(spelt[at:end]) == form.words and _fits(form, sentence[at:end], sentence):
                yield form, sentence[at:end]
                break


def _fits(form: Form, words: Span, sentence: Span) -> bool:
    """Return whether the words stand where the replacement means the same."""
    first, entry = words[0], form.synonym
    if (form.tag and first.tag_ != form.tag) or (entry.tags and first.tag_ not in entry.tags):
        return False
    before = sentence[words.start - sentence.start - 1] if words.start > sentence.start else None
    after = sentence[words.end - sentence.start] if words.end < sentence.end else None
    if not (_neighbour_fits(after, entry.next, entry.not_next) and _neighbour_fits(before, entry.prev, entry.not_prev)):
        return False
    free = entry.kind == "word" or (_is_verb(first) if entry.kind == "verb" else _is_noun(first))
    return free and _written_plainly(words, sentence) and not _repeats(form, words, sentence)


def _neighbour_fits(token: Token | None, wanted: frozenset[str], unwanted: frozenset[str]) -> bool:
    found = set() if token is None else {_spelling(token), f"@{token.tag_}"}
    return found.isdisjoint(unwanted) and (not wanted or not found.isdisjoint(wanted))


def _written_plainly(words: Span, sentence: Span) -> bool:
    """Return whether words are written like common words, apart from other signs and outside of quotations."""
    doc, opens = words.doc, words.start == sentence.start
    if any(token.tag_ in ("NNP", "NNPS") or not token.is_lower for token in words[1 if opens else 0 :]):
        return False
    # Two capitals in a row begin a title: `Begin Again is a film`.
    following = doc[words.end].text[:1] if words.end < len(doc) else ""
    if opens and (words[0].tag_ in ("NNP", "NNPS") or words[0].is_upper or following.isupper()):
        return False
    text, start, end = sentence.text, words.start_char - sentence.start_char, words.end_char - sentence.start_char
    around = {text[max(0, start - 1) : start], text[end : end + 1]}
    return _QUOTES.search(text, 0, start) is None and around <= {*_MAY_STAND_AROUND, ""}


def _is_noun(word: Token) -> bool:
    """Return whether a noun is no part of a compound, also of one that the parser missed."""
    following = word.nbor().tag_ if word.i + 1 < len(word.doc) else ""
    before = word.nbor(-1).tag_ if word.i else ""
    compound = word.dep_ in ("compound", "nmod", "amod") or any(child.dep_ == "compound" for child in word.children)
    return not compound and following not in (*_NOUNS, "JJ", "POS", "CD") and before not in (*_NOUNS, "POS", "VBN")


def _is_verb(word: Token) -> bool:
    """Return whether a verb is one: a plural or a participle is easily taken for it."""
    subjects = any(child.dep_ in SUBJECTS for child in word.children)
    joined = word.dep_ == "conj" and word.head.tag_ == word.tag_
    if word.dep_ in ("amod", "compound", "nmod") or (word.tag_ in FINITE and not (subjects or joined)):
        return False
    return not any(child.dep_ in ("det", "poss") for child in word.children)


def _repeats(form: Form, words: Span, sentence: Span) -> bool:
    """Return whether the new word would be there twice, or the old word is, which suggests two things or a pun."""
    others = {_spelling(token) for token in sentence if not words.start <= token.i < words.end}
    new = {*form.to.split(), *form.synonym.to.split()} - SMALL - {*form.words}
    return not others.isdisjoint(new) or (form.words[0] in others and form.words[0] not in SMALL)


def _replacements(form: Form, words: Span) -> Iterator[Replacement]:
    first = words[0]
    new = form.to[0].upper() + form.to[1:] if first.text[0].isupper() else form.to
    yield Replacement(words.start_char, words.end_char, new)
    article = first.nbor(-1) if first.i > words.sent.start else None
    if article is not None and article.lower_ in ("a", "an"):
        wanted = "an" if _TAKES_AN.match(form.to) else "a"
        if wanted != article.lower_:
            yield Replacement(article.idx, article.idx + len(article), article.text[0] + wanted[1:])


def _spelling(token: Token) -> str:
    return token.lower_.replace("’", "'")


@cache
def load() -> tuple[Synonym, ...]:
    """Return all synonyms of the packaged list."""
    sections = tomllib.loads(resources.files(__package__).joinpath(LEXICON).read_text("utf-8"))
    lines = ((cast(WordKind, kind), line) for kind in get_args(WordKind) for line in sections[f"{kind}s"])
    return tuple(entry for kind, line in lines for entry in entries(kind, line))


@cache
def forms_by_first_word() -> Mapping[str, tuple[Form, ...]]:
    """Return every form of every synonym, by its first word."""
    found: defaultdict[str, list[Form]] = defaultdict(list)
    for entry in load():
        for form in entry.forms():
            found[form.words[0]].append(form)
    return {word: tuple(forms) for word, forms in found.items()}


def entries(kind: WordKind, line: Mapping[str, Any]) -> Iterator[Synonym]:
    """Yield an entry for each of the alternatives of a line, and for the other direction where it holds as well."""
    lists = {name: frozenset(line.get(name, "").split()) for name in _LISTS}
    unknown = set(line) - {"from", "to", "both", *_LISTS}
    if unknown:
        raise ValueError(f"{LEXICON}: {line['from']!r} has unknown fields {sorted(unknown)}")
    pairs = [(old, line["to"]) for old in line["from"].split(" | ")]
    for old, new in [*pairs, *((new, old) for old, new in pairs if line.get("both"))]:
        yield Synonym(kind=kind, words=tuple(old.split()), to=new, **lists)


def _inflected(base: str, tag: str) -> str:
    # New nouns are missing in the inflector and regular.
    form = inflect(base, tag) or {"NN": base, "NNS": f"{base}s"}.get(tag)
    if form is None:
        raise ValueError(f"{LEXICON}: {base!r} has no form for {tag}")
    return form
