"""Two added negations that cancel out: "It is not false that the mayor resigned"."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations import facts
from pcs_annotator.relations.rule import NotApplicable, sentence_rule

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

FRAMES = (
    "It is not untrue that ",
    "It is not false that ",
    "It is not incorrect to say that ",
    "It is not inaccurate to say that ",
)
LONGEST = 2.5
_FEWEST_WORDS, _MOST_WORDS = 4, 40

# Saying these is doing them; nobody says that it is not false that they thank.
_DONE_BY_SAYING = facts.word_set(
    "thank apologize apologise congratulate promise dare bet swear beg wish welcome pray suggest"
)
_NO_PART_OF_A_STATEMENT = frozenset({"intj", "parataxis", "dep", "meta", "preconj"})
# "Lee named best actor" lacks its "was".
_NAMING = facts.word_set("name elect appoint call crown vote award give send charge sentence declare dub")


@sentence_rule(
    "rule:double-negation", version="4", expects=Expectation(negations="doubled", longest=LONGEST), vouches=True
)
def double_negation(sentence: Span) -> str | NotApplicable:
    """Return the sentence behind a frame that denies twice, or why it cannot stand there."""
    framed = _framed(sentence)
    if not isinstance(framed, NotApplicable) and _is_crowded(sentence):
        return NotApplicable("the sentence before it is changed")
    return framed


def _framed(sentence: Span) -> str | NotApplicable:
    reason = facts.why_not_plain(sentence) or _why_no_statement(sentence)
    if reason:
        return NotApplicable(reason)
    word, frame = facts.within_sentence(sentence[0]), _frame(sentence)
    if word is None or frame is None:
        return NotApplicable("the first word may be a name" if word is None else "too short")
    return frame + word + sentence.text[len(sentence[0]) :]


def _why_no_statement(sentence: Span) -> str:
    """Return why a sentence would read badly after "that"; empty when it begins with its subject and a tense."""
    verb = sentence.root
    subject, finite = facts.subject_of(verb), facts.finite_of(verb)
    if not _FEWEST_WORDS <= len(sentence) <= _MOST_WORDS:
        return "too short" if len(sentence) < _FEWEST_WORDS else "too long"
    if subject is None or finite is None or not subject.i < finite.i <= verb.i:
        return "no subject in front of a verb with a tense"
    # "It is not false that that is true" is hard to read.
    first = sentence[0]
    odd = first.i != subject.left_edge.i or first.tag_.startswith("W") or first.lower_ == "that"
    if odd or not _meet(subject, finite, verb):
        return "does not begin with its subject"
    if not facts.agrees(subject, finite) or _may_be_no_tense(subject, finite):
        return "the parse is in doubt"
    return "" if _is_one_statement(verb, subject) else "more than a statement"


def _meet(subject: Token, finite: Token, verb: Token) -> bool:
    """Return whether only adverbs stand between subject and verb, and the subject is one phrase without a clause."""
    between = subject.doc[subject.right_edge.i + 1 : finite.i]
    phrase = subject.subtree
    whole = all(token.text != "," and token.tag_ not in facts.FINITE for token in phrase)
    return whole and all(token.dep_ in ("advmod", "neg") and token.head in (verb, finite) for token in between)


def _may_be_no_tense(subject: Token, finite: Token) -> bool:
    """Return whether what looks like a tense may be none, as in "Ann Lee named best actor"."""
    base = facts.lemma(finite)
    # "An absolute must see"
    if finite.lower_ == "must" and subject.left_edge.lower_ in ("a", "an"):
        return True
    if finite.tag_ != "VBD" or base not in _NAMING or facts.inflect(base, "VBN") != finite.lower_:
        return False
    return finite.nbor().tag_ not in ("DT", "PRP", "PRP$", "IN")


def _is_one_statement(verb: Token, subject: Token) -> bool:
    """Return whether a sentence is one statement: no second clause beside it, no exclamation, no request."""
    if subject.lower_ in ("i", "we") and facts.lemma(verb) in _DONE_BY_SAYING:
        return False
    if any(token.dep_ in _NO_PART_OF_A_STATEMENT or token.tag_ in ("UH", "LS", "FW") for token in verb.sent):
        return False
    joined = [token for token in verb.children if token.dep_ == "conj"]
    if any(facts.subject_of(token) is not None or (token.tag_ == "VB" and verb.tag_ != "VB") for token in joined):
        return False
    # "He left, she said": the first clause is not the main one.
    return not any(child.dep_ in ("ccomp", "advcl") and child.i < subject.i for child in verb.children)


def _frame(sentence: Span) -> str | None:
    """Return one of the frames that are not too long for a sentence, always the same one for the same sentence."""
    room = (LONGEST * 0.96 - 1) * len(sentence.text)
    fitting = [frame for frame in FRAMES if len(frame) <= room]
    seed = int.from_bytes(blake2b(sentence.text.encode("utf-8", "surrogatepass"), digest_size=4).digest())
    return fitting[seed % len(fitting)] if fitting else None


def _is_crowded(sentence: Span) -> bool:
    """Return whether a sentence is an even one and the one before it is changed, so that frames do not pile up."""
    doc, start = sentence.doc, sentence.start
    if not sum(bool(token.is_sent_start) for token in doc[:start]) % 2:
        return False
    return not isinstance(_framed(doc[start - 1].sent), NotApplicable)
