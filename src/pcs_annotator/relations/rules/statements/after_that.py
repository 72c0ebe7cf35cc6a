"""Whether a sentence is a statement that can follow "that"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.clauses.word_lists import TIMES
from pcs_annotator.relations.rules.statements.opening import (
    FINITE,
    SUBJECTS,
    ends_openly,
    finite_of,
    part_of,
    subject_of,
)
from pcs_annotator.relations.rules.words import inflect, lemma, word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

# In a headline "hit" and "charged" may be participles without their "is"; these forms cannot be.
_NEVER_PARTICIPLE = frozenset({"VBZ", "MD", "VBP"})
# These have an object in the passive too: "Lee named best actor".
_GIVING = word_set(
    "name elect appoint call charge grant award give offer hand tell ask order show teach pay sentence fine send "
    "declare vote crown dub leave find deny cost"
)
# Headlines such as "The Real Reason She Left" are a noun with a clause, not a statement.
_TEASERS = word_set(
    "reason reasons way ways thing things everything moment moments time times how why what who when where types kinds "
    "signs facts pictures photos tweets faces words questions struggles"
)
_ODD_STARTS = frozenset({"WDT", "WP", "WP$", "UH", "VB", "LS", "VBN", "RP", "CC", "JJS", "RBS"})
_ODD_FIRST_WORDS = word_set(
    "how why here where what like so such given not never nor nicest best worst ps congratulations thanks just "
    "watch see read check meet look too"
)
_TIMES = TIMES | word_set("now earlier later recently ago season")
_STARTS_CLAUSE = frozenset({"IN", "WRB", "TO"})
LONGEST_STATEMENT = 50
_SPEAKERS = frozenset({"i", "you", "he", "she", "it", "we", "they", "this", "that"})


def why_not_after_that(sentence: Span, first: Token) -> str:
    """Return why a sentence, from its first word on, would read badly after "that"; empty when it would not."""
    verb = sentence.root
    finite = finite_of(verb)
    # The parser sometimes attaches the subject to the auxiliary, and sometimes takes a dateline for a subject.
    heads = (verb,) if finite in (None, verb) else (verb, finite)
    subjects = [
        child for head in heads for child in head.lefts if child.dep_ in SUBJECTS and first.i <= child.i < head.i
    ]
    if len(sentence) > LONGEST_STATEMENT:
        return "too long"
    if finite is None:
        return "no finite verb"
    if not subjects or subjects[0].i > finite.i or subjects[0].lower_ in ("a", "an", "the"):
        return "no subject in front of the verb"
    if len(subjects) > 1 or _is_list_or_wish(subjects[0], finite):
        return "may be no statement"
    if ends_openly(sentence) and not _is_sure_headline(sentence, subjects[0], finite):
        return "a headline that may lack its verb"
    return _why_no_start(verb, first)


def _is_list_or_wish(subject: Token, finite: Token) -> bool:
    """Return whether a sentence only looks like a statement: "Nice case, feels good", "A must see", "God bless you"."""
    commas = re.sub(r"\(.*?\)", "", subject.doc[subject.i : finite.i].text).count(",")
    if commas == 1 and not any(child.dep_ == "conj" for child in subject.children):
        return True
    # "Screen quality, battery life, dropped calls."
    bare = [child for child in subject.children if child.dep_ == "appos" and child.tag_ in ("NN", "NNS")]
    if any(not {"det", "poss", "prep"} & {part.dep_ for part in word.children} for word in bare):
        return True
    if finite.tag_ == "VBP" and subject.tag_ == "NN" and lemma(finite) not in ("be", "have", "do"):
        return not any(child.lower_ == "of" or child.dep_ == "conj" for child in subject.children)
    if finite.lower_ == "must" and subject.left_edge.lower_ in ("a", "an"):
        return True
    # "Lee named best actor" lacks its "was"; whoever names, names somebody.
    if finite.tag_ == "VBD" and lemma(finite) in ("name", "crown"):
        return finite.nbor().tag_ not in ("NNP", "PRP", "DT", "PRP$")
    named = finite.text[0].isupper() and not finite.text.isupper()
    return named or (subject.lower_ in ("god", "lord") and finite.tag_ == "VBP")


def _is_sure_headline(sentence: Span, subject: Token, finite: Token) -> bool:
    """Return whether a headline has a verb in a tense: "Lee honored at gala" lacks its "is"."""
    spoken = sentence[0].lower_ in _SPEAKERS
    if ":" in sentence.text or (not spoken and any(token.lower_ in _TEASERS for token in sentence[:5])):
        return False
    if finite.tag_ == "VBP" and subject.tag_ in ("NN", "NNP"):
        return any(child.dep_ == "conj" for child in subject.children)
    base = lemma(finite)
    if spoken or finite.tag_ in _NEVER_PARTICIPLE or inflect(base, "VBN") != finite.lower_ == inflect(base, "VBD"):
        return True
    if finite.lower_ != inflect(base, "VBD"):
        return False
    return base not in _GIVING and any(child.dep_ == "dobj" for child in finite.rights)


def _why_no_start(verb: Token, first: Token) -> str:
    if not first.text[0].isalpha() and not _is_count(verb, first):
        return "starts with a number or a sign"
    if ":" in first.doc[first.i : first.sent.end].text or _starts_with_place(verb, first):
        return "starts with a label"
    odd = first.tag_ in _ODD_STARTS and first.lower_ != "most"
    if odd or first.lower_ in _ODD_FIRST_WORDS or not _starts_plainly(verb, first):
        return "does not start as a statement"
    return ""


def _is_count(verb: Token, first: Token) -> bool:
    """Return whether a number counts the subject; in headlines, "9 Faces You Know" is no statement."""
    return first.text[0].isdigit() and part_of(verb, first).dep_ in SUBJECTS and not ends_openly(first.sent)


def _starts_with_place(verb: Token, first: Token) -> bool:
    """Return whether a dateline that was not recognised is left: "Oslo, May 3 -- …", "PARIS Global leaders …"."""
    before = first.doc[first.i : verb.i]
    dashes = re.findall(r" - |--|–|—", before.text)
    following = next((token for token in before if not token.text.isupper()), verb)
    capitals = first.doc[first.i : following.i].text
    return len(dashes) % 2 == 1 or (len(capitals) > 4 and following.text[0].isupper())


def _starts_plainly(verb: Token, first: Token) -> bool:
    """Return whether a clause begins with its subject or with a time or place."""
    following = first.doc[first.i + 1]
    if first.lower_ in _SPEAKERS and following.tag_ in FINITE:
        return True
    part = part_of(verb, first)
    if part.dep_ == "ccomp":
        said = part.i < verb.i and subject_of(part) is not None and finite_of(part) is not None
        return said and _starts_plainly(part, first)
    if first.tag_ == "VBG":
        return part.dep_ == "csubj" and subject_of(verb) == part
    joined = following.text == "," and first.doc[first.i + 2].tag_ == "CC"
    if (
        joined
        or (first.tag_ == "JJ" and following.tag_ in (",", "CC", "PRP", "DT"))
        or re.search(r"(\w)\1\1", first.text)
    ):
        return False
    starts = {
        "advcl": first.tag_ in _STARTS_CLAUSE or first.lower_ == "once",
        "advmod": first.lower_ in _TIMES,
        "amod": first.tag_ == "DT",
        "aux": part != first,
        "auxpass": part != first,
        "npadvmod": any(token.lower_ in _TIMES for token in part.subtree),
        "prep": True,
    }
    return part.dep_ in SUBJECTS or starts.get(part.dep_, False)
