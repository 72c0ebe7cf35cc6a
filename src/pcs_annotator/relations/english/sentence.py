"""Whether a sentence is a plain statement in prose, and the parts of its clause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pcs_annotator.relations.facts import inflect, is_title, lemma, listed, readings, word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

SUBJECTS = frozenset({"nsubj", "nsubjpass", "expl"})
FINITE = frozenset({"VBD", "VBP", "VBZ", "MD"})
NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS"})

# A capital, words, and one mark at the end; no quotations, brackets, dashes, links, tags or emoji.
_PLAIN = re.compile(r"[A-Z](?:[^\W_]|[ ,$£€%&'’.-])*[.!]")
_BROKEN = re.compile(r"\. ?\.| -|- | ['’]|['’] |[^\W\d]\.[A-Z][a-z]|\b[A-Z]\.?\s?\.$")
_SHOUTED = re.compile(r"\b[A-Z]{4,}\b")
_ENDS = re.compile(r"[.!?][\"'”’)]*\s*\Z|\A\s*\Z|\n\s*\Z")
_NO_SURE_NUMBER = listed("sentence", "no_sure_number")
_PLURAL = word_set("people men women children they we these those")


def why_not_plain(sentence: Span) -> str:
    """Return why a sentence is not plain prose from its capital to its full stop; empty when it is."""
    if not _PLAIN.fullmatch(sentence.text) or _BROKEN.search(sentence.text):
        return "not plain prose"
    return why_not_whole(sentence)


def why_not_whole(sentence: Span) -> str:
    """Return why what the parser takes for a sentence may be a title or a part of a sentence; empty when it is not."""
    doc, text = sentence.doc, sentence.text
    before, after = doc[max(0, sentence.start - 3) : sentence.start].text, doc[sentence.end - 1].whitespace_
    if not _ENDS.search(before) or (not after and sentence.end < len(doc) and not doc[sentence.end].is_space):
        return "part of a sentence"
    shouted = any(readings(word.lower()) for word in _SHOUTED.findall(text))
    return "a title or capitals" if shouted or is_title(text) else ""


def finite_of(verb: Token) -> Token | None:
    """Return the word that carries the tense of a clause: its first auxiliary, or the verb itself."""
    helpers = [child for child in verb.lefts if child.dep_ in ("aux", "auxpass")]
    first = helpers[0] if helpers else verb
    return first if first.tag_ in FINITE else None


def subject_of(verb: Token) -> Token | None:
    """Return the subject of a clause if it has just one, in front of the verb."""
    found = [child for child in verb.children if child.dep_ in SUBJECTS or child.dep_ in ("csubj", "csubjpass")]
    return found[0] if len(found) == 1 and found[0].dep_ in SUBJECTS and found[0].i < verb.i else None


def is_plural(noun: Token) -> bool | None:
    """Return whether a noun or pronoun is plural; None when that is not clear."""
    word, before = noun.lower_, {child.lower_ for child in noun.lefts}
    if any(child.dep_ in ("conj", "cc", "appos") for child in noun.children) or word in _NO_SURE_NUMBER:
        return None
    if word in _PLURAL:
        return True
    one = not before.isdisjoint({"a", "an", "this", "that", "another"})
    if noun.tag_ == "NNS":
        return None if one or word.endswith("ics") or lemma(noun) == word else True
    counted = any(child.tag_ == "CD" and child.lower_ not in ("one", "1") for child in noun.lefts)
    if noun.tag_ not in ("NN", "NNP", "PRP", "DT", "EX") or counted or word == "you":
        return None
    # "Leeds", "the Mujahideen"
    unclear = (word.endswith("s") and not word.endswith("ss")) or ("the" in before and not readings(word))
    return None if noun.tag_ == "NNP" and unclear else False


def agrees(subject: Token, finite: Token) -> bool:
    """Return whether the form of a verb fits its subject; where it does not, the parse is wrong."""
    if finite.tag_ == "MD":
        return True
    if subject.lower_ in ("i", "you"):
        return finite.tag_ == "VBD" or (finite.tag_ == "VBP" and finite.lower_ not in ("is", "'s"))
    plural = is_plural(subject)
    if finite.tag_ == "VBZ" or finite.lower_ == "was":
        return plural is not True
    if finite.tag_ == "VBP" or finite.lower_ == "were":
        return plural is not False
    return finite.lower_ == inflect(lemma(finite), "VBD") or finite.lower_ in ("'d", "’d")
