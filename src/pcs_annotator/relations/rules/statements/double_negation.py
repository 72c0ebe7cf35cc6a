"""Two added negations that cancel out: "It is not the case that the mayor did not resign"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.rules.rule import NotApplicable, Replacement, sentence_rule, splice
from pcs_annotator.relations.rules.statements.negating import negated
from pcs_annotator.relations.rules.statements.opening import (
    SUBJECTS,
    ends_openly,
    finite_of,
    in_mid_sentence,
    part_of,
    statement_start,
    subject_of,
    why_no_statement,
)
from pcs_annotator.relations.rules.words import inflect, lemma, word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

CASE = "It is not the case that "
WHOLE = "It is not incorrect to say that "
LONGEST = 2.5

# Contradictories only: what is not one is the other. "Unhappy" is left out, because many people are neither.
PARTNERS = {
    "able": "unable",
    "available": "unavailable",
    "aware": "unaware",
    "constitutional": "unconstitutional",
    "correct": "incorrect",
    "eligible": "ineligible",
    "lawful": "unlawful",
    "legal": "illegal",
    "possible": "impossible",
    "relevant": "irrelevant",
    "true": "untrue",
    "valid": "invalid",
    "visible": "invisible",
}
_QUOTES = frozenset("\"“”‘'")
_PLAIN_BE = frozenset({"is", "are", "was", "were", "am", "'s", "’s", "'re", "’re"})
_MANY = word_set(
    """
    all every each both some any many most few several no none nobody nothing everyone everybody everything
    someone only neither either half
    """
)
# In a headline "hit" and "charged" may be participles without their "is"; these forms cannot be.
_NEVER_PARTICIPLE = frozenset({"VBZ", "MD", "VBP"})
# Headlines such as "The Real Reason She Left" are a noun with a clause, not a statement.
_TEASERS = word_set(
    """
    reason reasons way ways thing things everything moment moments time times how why what who when where
    """
)
_ODD_STARTS = frozenset({"WDT", "WP", "WP$", "UH", "VB", "LS", "VBG", "VBN", "RP", "CC"})
_ODD_FIRST_WORDS = frozenset(
    {"that", "how", "why", "here", "where", "what", "as", "like", "so", "such", "given", "no", "not", "never", "nor"}
)
_TIMES = frozenset({"today", "yesterday", "tomorrow", "now", "earlier", "later", "recently", "tonight"})


@sentence_rule("rule:double-negation", version="2", expects=Expectation(negations="doubled", longest=LONGEST))
def double_negation(sentence: Span) -> str | NotApplicable:
    """Return the sentence with two added negations that cancel out, or why it cannot have them."""
    reason = why_no_statement(sentence)
    if reason:
        return NotApplicable(reason)
    changes = _by_partner(sentence) or _around_statement(sentence)
    if isinstance(changes, NotApplicable):
        return changes
    result = splice(sentence.text, changes, sentence.start_char)
    if len(result) > LONGEST * 0.96 * len(sentence.text):
        return NotApplicable("too short")
    return result


def _by_partner(sentence: Span) -> list[Replacement] | None:
    """Return "is not impossible" for "is possible", for the first predicate that allows it."""
    quoted = False
    for token in sentence:
        if token.text in _QUOTES:
            quoted = not quoted
        partner = None if quoted or token.dep_ != "acomp" or token.tag_ != "JJ" else PARTNERS.get(token.text)
        if partner and _is_plain_predicate(token):
            verb = token.head
            finite = finite_of(verb) or verb
            return [
                Replacement(finite.idx + len(finite), finite.idx + len(finite), " not"),
                Replacement(token.idx, token.idx + len(token), partner),
            ]
    return None


def _is_plain_predicate(adjective: Token) -> bool:
    verb = adjective.head
    subject = subject_of(verb)
    if subject is None or lemma(verb) != "be" or subject.i > verb.i:
        return False
    finite = finite_of(verb)
    if finite is None or not (finite.lower_ in _PLAIN_BE or finite.lower_ in ("will", "would", "has", "have", "had")):
        return False
    if any(child.dep_ in ("neg", "advmod", "conj", "cc", "preconj") for child in adjective.children):
        return False
    if any(child.dep_ in ("neg", "conj", "advmod") and child.i < adjective.i for child in verb.children):
        return False
    if any(child.dep_ == "conj" for child in verb.children):
        return False
    return not any(word.lower_ in _MANY for word in subject.subtree)


def _around_statement(sentence: Span) -> list[Replacement] | NotApplicable:
    """Return "It is not the case that … not …" or, where an inner "not" would be unclear, a frame for the whole."""
    start = statement_start(sentence)
    if isinstance(start, NotApplicable):
        return start
    first = sentence.doc[start]
    reason = _why_no_clause(sentence, first) or _why_no_start(sentence.root, first)
    if reason:
        return NotApplicable(reason)
    inner = _inner_negation(sentence, start)
    if inner is None:
        reason = _why_not_whole(sentence)
        if reason:
            return NotApplicable(reason)
    word = in_mid_sentence(first)
    if word is None:
        return NotApplicable("the first word may be a name")
    frame = WHOLE if inner is None else CASE
    if start > sentence.start and sentence.doc[start - 1].text not in ("-", "--", "–", "—", ":"):
        frame = frame[0].lower() + frame[1:]
    opening = Replacement(first.idx, first.idx + len(first), frame + word)
    return [opening] if inner is None else [opening, inner]


def _why_no_clause(sentence: Span, first: Token) -> str:
    """Return why a sentence cannot follow "that"; empty when it can."""
    verb = sentence.root
    subject, finite = subject_of(verb), finite_of(verb)
    if finite is None:
        return "no finite verb"
    if subject is None or not first.i <= subject.i < finite.i:
        return "no subject in front of the verb"
    if ends_openly(sentence) and not _is_sure_headline(sentence, finite):
        return "a headline that may lack its verb"
    return ""


def _why_no_start(verb: Token, first: Token) -> str:
    """Return why the first words would read badly after "that"; empty when they would not."""
    if not first.text[0].isalpha():
        return "starts with a number or a sign"
    if any(token.text == ":" for token in first.doc[first.i : first.i + 6]):
        return "starts with a label"
    if first.tag_ in _ODD_STARTS or first.lower_ in _ODD_FIRST_WORDS or not _starts_plainly(verb, first):
        return "does not start as a statement"
    return ""


def _starts_plainly(verb: Token, first: Token) -> bool:
    """Return whether a clause begins with its subject or with a time or place."""
    part = part_of(verb, first)
    if part.dep_ == "advcl":
        return first.tag_ in ("IN", "WRB")
    if part.dep_ == "advmod":
        return first.lower_ in _TIMES
    if part.dep_ == "ccomp":
        said = part.i < verb.i and subject_of(part) is not None and finite_of(part) is not None
        return said and _starts_plainly(part, first)
    if part.dep_ in ("aux", "auxpass"):
        return part != first
    return part.dep_ in SUBJECTS or part.dep_ in ("prep", "npadvmod")


def _is_sure_headline(sentence: Span, finite: Token) -> bool:
    if ":" in sentence.text or any(token.lower_ in _TEASERS for token in sentence[:5]):
        return False
    if sum(child.dep_ in SUBJECTS for child in sentence.root.lefts) > 1:
        return False
    if finite.tag_ in _NEVER_PARTICIPLE:
        return True
    base = lemma(finite)
    return finite.tag_ == "VBD" and inflect(base, "VBD") != inflect(base, "VBN")


def _why_not_whole(sentence: Span) -> str:
    """Return why a frame around the whole would read badly; empty when it would not."""
    if len(sentence) > 50:
        return "too long"
    if any(child.dep_ == "neg" for child in sentence.root.children):
        return "already negated"
    subject = subject_of(sentence.root)
    if subject is not None and subject.lower_ in ("i", "you"):
        return "spoken by or to a person"
    if _follows_closely(sentence):
        return "a sentence shortly before it may be changed"
    return ""


def _follows_closely(sentence: Span) -> bool:
    """Return whether a sentence begins earlier in the same hundred words, so that frames do not repeat too often."""
    doc, block = sentence.doc, sentence.start - sentence.start % 100
    return (
        any(doc[index].is_sent_start for index in range(block, sentence.start))
        and len(doc[block : sentence.start].text) > 60
    )


def _inner_negation(sentence: Span, start: int) -> Replacement | None:
    body = sentence.doc[start : sentence.end]
    if len(body) > 36 or re.search(r"[;:—–\"“]|--| - ", body.text):
        return None
    return negated(sentence.root, list(body))
