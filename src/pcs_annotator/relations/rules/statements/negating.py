"""Negating the finite verb of a clause, where that negates the clause and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.clauses.word_lists import TELLING
from pcs_annotator.relations.rules.rule import Replacement
from pcs_annotator.relations.rules.statements.opening import FINITE, finite_of, subject_of
from pcs_annotator.relations.rules.words import inflect, lemma, word_set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spacy.tokens import Token

# Words whose scope is unclear beside a negation, or that change with one ("some", "any").
UNCLEAR_BESIDE_NOT = word_set(
    """
    some any all most many much few fewer several every each both either neither no none nobody nothing nowhere
    never not n't n’t without cannot everyone everybody everything everywhere someone somebody something somewhere
    anyone anybody anything another half always often usually sometimes frequently rarely seldom hardly barely
    scarcely only even also already still just too almost nearly yet ever again merely simply solely finally
    eventually once twice really actually certainly definitely clearly obviously probably perhaps maybe possibly
    likely allegedly reportedly apparently presumably supposedly hopefully unfortunately fortunately far because
    since until till unless if although though whereas while lest whether rather instead so deny denies denied
    denying fail fails failed refuse refuses refused lack lacks lacked nor than bit little quite
    """
)
# "Does not think that" mostly means "thinks that … not", which is another statement.
_SLIP_INTO_COMPLEMENT = word_set(
    "think believe expect suppose want seem appear feel intend plan tend hope wish like imagine guess look reckon "
    "anticipate advise recommend suggest schedule set need dare ought use happen"
)
_SPANS = frozenset({"years", "months", "weeks", "days", "hours", "minutes", "decades", "centuries", "long", "time"})
_TAKE_NOT = frozenset({"is", "are", "was", "were", "am", "has", "have", "had", "does", "do", "did"})
_SAFE_MODALS = {"will": "will not", "would": "would not", "can": "cannot"}
# Past forms that two verbs share → the likely one, or nothing.
_SHARED = "found:find saw:see fell:fall felt:feel left:leave lied:lie lay: wound: ground: bore: bound:"
_BASE_OF_SHARED = dict(pair.split(":") for pair in _SHARED.split())


def negated(verb: Token, words: Sequence[Token]) -> Replacement | None:
    """Return the change that negates a clause, or None if "not" would negate more or less than the clause.

    Args:
        verb: The main verb of the clause.
        words: All words within reach of the negation.
    """
    subject, finite = subject_of(verb), finite_of(verb)
    if subject is None or finite is None or subject.i > finite.i:
        return None
    out_of_reach = _out_of_reach(verb, words)
    within = [word for word in words if word.i not in out_of_reach]
    if any(_is_unclear(word) or (word.tag_ in FINITE and word != finite) for word in within):
        return None
    if not _is_one_thing(subject) or _has_loose_parts(verb, subject, finite):
        return None
    # "Has said no and expressed regret": would both be denied?
    shared = any(child.dep_ == "conj" and subject_of(child) is None for child in verb.rights)
    if shared or lemma(verb) in _SLIP_INTO_COMPLEMENT:
        return None
    return _with_not(finite, verb)


def _out_of_reach(verb: Token, words: Sequence[Token]) -> set[int]:
    """Return the positions of words that a "not" beside the verb does not affect.

    These are relative clauses and reported statements: in "did not say that some left", "some" is unaffected. Where
    two clauses are joined after the verb, the second may not be reported.
    """
    reported = lemma(verb) in TELLING and not any(_is_joined_clause(word) for word in words)
    islands = [
        word for word in words if word.dep_ == "relcl" or (reported and word.dep_ == "ccomp" and word.head == verb)
    ]
    return {inner.i for island in islands if island.i > verb.i for inner in island.subtree}


def _is_joined_clause(word: Token) -> bool:
    return word.dep_ == "conj" and word.tag_.startswith("VB") and subject_of(word) is not None


def _is_unclear(word: Token) -> bool:
    if word.lower_ in ("as", "that"):
        return word.dep_ == "advmod" or (word.lower_ == "as" and word.dep_ != "prep")
    # "Has not written for years" means a pause of years.
    if word.lower_ in _SPANS:
        return any(before.lower_ in ("for", "in", "over") for before in word.doc[max(0, word.i - 4) : word.i])
    # Of two joined verbs, only the first is certain to be negated by "not".
    return word.lower_ in UNCLEAR_BESIDE_NOT or (word.dep_ == "conj" and word.tag_.startswith("VB"))


def _is_one_thing(subject: Token) -> bool:
    """Return whether a subject names one definite thing; with several, "not" could mean not all or none."""
    children = list(subject.children)
    if any(child.dep_ in ("conj", "cc", "nummod", "predet", "quantmod", "preconj") for child in children):
        return False
    if subject.dep_ not in ("nsubj", "nsubjpass") or any(token.dep_ == "cc" for token in subject.subtree):
        return False
    if subject.tag_ == "PRP":
        return subject.lower_ in ("he", "she", "it", "i")
    if subject.tag_ not in ("NN", "NNP"):
        return False
    # "A" may depend on a word before the noun, as in "a men's group".
    before = [token.lower_ for token in subject.subtree if token.i < subject.i]
    return not any(word in ("a", "an", "these", "those", "such", "more", "less") for word in before)


def _has_loose_parts(verb: Token, subject: Token, finite: Token) -> bool:
    """Return whether a clause has a part that may be inside or outside the scope of "not"."""
    # "Is to meet" is a plan, "is not to meet" a ban.
    planned = finite == verb and lemma(verb) == "be"
    return any(_is_loose(child, verb, subject) for child in verb.children) or (
        planned and any(child.dep_ in ("xcomp", "ccomp") for child in verb.children)
    )


def _is_loose(part: Token, verb: Token, subject: Token) -> bool:
    if part.dep_ == "cc":
        # A "but" at the start joins the sentence to the one before.
        return part.i > subject.i
    if part.dep_ in ("conj", "neg", "parataxis", "preconj", "expl", "intj", "dep"):
        return True
    if part.dep_ == "advcl":
        is_purpose = part.tag_ == "VB" and [left.lower_ for left in part.lefts][:1] == ["to"]
        return not is_purpose
    if part.dep_ in ("npadvmod", "ccomp"):
        return part.i < verb.i
    if part.dep_ == "advmod":
        return subject.i < part.i < verb.i
    return part.dep_ in ("dobj", "attr", "acomp", "dative") and any(below.dep_ == "conj" for below in part.children)


def _with_not(finite: Token, verb: Token) -> Replacement | None:
    start, end, word = finite.idx, finite.idx + len(finite), finite.lower_
    if finite.tag_ == "MD":
        with_modal = _SAFE_MODALS.get(word) if verb.tag_ != "VBD" else None
        return Replacement(start, end, with_modal) if with_modal else None
    if finite != verb or lemma(verb) == "be":
        return Replacement(start, end, f"{finite.text} not") if word in _TAKE_NOT else None
    base = base_form(verb)
    # News reports describe past events in the present tense; "does not say" would be a habit.
    if base is None or verb.tag_ != "VBD":
        return None
    return Replacement(start, end, f"did not {base}")


def base_form(verb: Token) -> str | None:
    """Return the dictionary form of a verb; None when its inflection leaves doubt."""
    word = verb.lower_
    if word in _BASE_OF_SHARED:
        return _BASE_OF_SHARED[word] or None
    if not word.isalpha():
        return None
    base = lemma(verb)
    # If inflecting the base does not give the word back, the tag is wrong or the verb unknown.
    return base if inflect(base, verb.tag_) == word else None
