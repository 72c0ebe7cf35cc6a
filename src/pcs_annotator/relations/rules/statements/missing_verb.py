"""The "is" or "was" that headlines leave out: "Two sailors rescued off Oslo", "Oslo to sell its ferry"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.rule import Replacement
from pcs_annotator.relations.rules.statements.opening import SUBJECTS, ends_openly
from pcs_annotator.relations.rules.words import inflect, lemma, lemma_of, word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

# In the active these need an object, so that without one they are passive.
_NEEDS_OBJECT = word_set(
    """
    abduct abolish accuse acquit affect airlift ambush appoint apprehend arrest assassinate attack award ban behead
    blame bomb cancel capture charge convict cremate criticise criticize crown crush damage deport destroy detain
    discover elect evacuate execute expel find fine force free hire hold honor honour hospitalize hurt identify
    indict injure jail kidnap kill link list murder name nominate oust postpone raid recover release rescue rob sack
    seize sentence shoot stab suspend target torture train trap urge use withdraw wound
    """
)
_NOUNS = ("NN", "NNS", "NNP", "NNPS")
_NEVER_PASSIVE = word_set("be become come fall go grow rise run arise")
# Who may be about to do something; "Ideas to Cheer You Up" are for somebody else to use.
_DOERS = re.compile(r"(?:er|or|ist|ian|ial|man|men|woman|women|ent|ant)s?$")


def missing_verb(sentence: Span) -> Replacement | None:
    """Return the form of "be" that a headline lacks, where it is certain; None otherwise."""
    if not ends_openly(sentence) or re.search(r"[,:;]", sentence.text) or sentence[0].tag_.startswith("W"):
        return None
    root = sentence.root
    subjects = [child for child in root.lefts if child.dep_ in SUBJECTS]
    if root.tag_ in (*_NOUNS, "CD"):
        participle = next((child for child in root.rights if child.dep_ == "acl"), None)
        found = participle if participle is not None and participle.tag_ == "VBN" and _is_passive(participle) else None
        return None if subjects or found is None else _form(root, found, "was", "were")
    if len(subjects) != 1:
        return None
    to = root.nbor(-1) if root.i > sentence.start else root
    if root.tag_ == "VB" and to.tag_ == "TO":
        counted = any(child.dep_ == "nummod" for child in subjects[0].children)
        may_do = subjects[0].tag_ != "NNS" or _DOERS.search(subjects[0].lower_)
        return _form(subjects[0], to, "is", "are") if may_do and not counted else None
    return _form(subjects[0], root, "was", "were") if root.tag_ in ("VBD", "VBN") and _is_passive(root) else None


def _is_passive(verb: Token) -> bool:
    base = lemma(verb)
    if (
        any(child.dep_ in ("aux", "auxpass", "dobj", "ccomp", "conj", "neg") for child in verb.children)
        or base in _NEVER_PASSIVE
    ):
        return False
    irregular = verb.tag_ == "VBN" and verb.lower_ == inflect(base, "VBN") != inflect(base, "VBD")
    return base in _NEEDS_OBJECT or irregular


def _form(subject: Token, before: Token, one: str, many: str) -> Replacement | None:
    """Return the form for a subject that opens the sentence and ends in front of a word."""
    whole = [
        token for token in subject.doc[subject.left_edge.i : before.i] if token == subject or subject.is_ancestor(token)
    ]
    opens = whole[0].i == subject.sent.start and len(whole) == before.i - whole[0].i
    if not opens or subject.tag_ not in (*_NOUNS, "CD") or any(token.dep_ in ("acl", "advmod") for token in whole):
        return None
    joined = any(child.dep_ == "conj" and child.i < before.i for child in subject.children)
    plural = joined or subject.tag_ in ("NNS", "CD") or lemma_of(subject.lower_, "NNS") != subject.lower_
    return Replacement(before.idx, before.idx, f"{many if plural else one} ")
