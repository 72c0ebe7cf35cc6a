"""What `'s` and `'d` stand for, judged by the words that follow."""

from __future__ import annotations

import re

from pcs_annotator.relations.facts import word_set

# Of a contracted word, only the part before the contraction counts.
_NEXT = re.compile(r"\s+[\"“'‘(]*(?:([A-Za-z]+?(?:-[A-Za-z]+)*)(?:[nN]?['’][A-Za-z]+)*(?![A-Za-z'’-])|([$£€#]?\d))")

_ADVERBS = word_set(
    "not never always already just still also ever only even now then almost hardly often soon long once since "
    "again really probably definitely certainly actually finally recently simply clearly apparently reportedly "
    "obviously currently basically literally quickly previously initially originally all both"
)

_PARTICIPLES = word_set(
    "been had done gone seen taken given made got gotten become come known said lost won found heard told left "
    "met written thought begun built sent spent kept felt held sold bought brought caught taught shot put set cut "
    "hit hurt let run read led fed drawn grown shown thrown worn born torn sworn sung struck stuck broken chosen "
    "driven eaten fallen flown forgotten forgiven frozen hidden ridden risen shaken spoken stolen swum drunk sunk "
    "understood stood paid laid lain fought sought slept swept wept dealt meant lent bent bet cost shut split "
    "spread quit rid beaten bitten blown proven proved dug hung spun wrung withdrawn overcome undergone "
    "undertaken mistaken forbidden woken awoken sat lit slid"
)
# Both the base form and the participle: `he'd come` may be either.
_BOTH = word_set("become come put set cut hit hurt let run read bet cost shut split spread quit rid overcome")
_HAS_ONLY = word_set("been had got gotten become")
_NOT_PAST = word_set("need feed seed speed bleed breed heed proceed succeed exceed indeed embed shed shred wed red bed")
_BASES = word_set(
    "be have like love rather prefer say do go get know want see give make take think need try use find tell ask "
    "work seem feel leave call keep begin help show hear play move live believe hold bring happen write provide "
    "sit stand lose pay meet include continue learn change lead understand watch follow stop create speak allow "
    "add spend grow open walk win offer remember consider appear buy wait serve die send expect build stay fall "
    "reach kill remain suggest raise pass sell require report decide pull vote support hope wish suppose hate "
    "choose look talk turn start eat drink sleep wear argue guess recommend appreciate suspect imagine agree push"
)

_PRONOUNS = word_set("i you he she it we they this that")
_D_SUBJECTS = word_set("i you he she we they it there who")
_S_SUBJECTS = word_set("he she it that this there here who what where how")
_QUESTION = word_set("what where how")
# `who's` counts only before these: it is often a misspelt `whose`.
_AFTER_WHO = word_set("a an the not in on at to going there here your his her my our their")
_NOT_AFTER_S = word_set("own and or but if of")
_OTHERS_IN_EN = word_set(
    "open seven ten even golden wooden sudden often when then men women children keen green between"
)


def what_s_means(subject: str, following: str) -> str:
    """Return `is`, `has` or `us` for the `'s` after a lower-case subject; empty when unclear.

    >>> what_s_means("it", " been raining"), what_s_means("it", " raining"), what_s_means("it", " finished")
    ('has', 'is', '')
    """
    words = next_words(following)
    if subject == "let":
        return "us" if words else ""
    if subject not in _S_SUBJECTS or not words or words[0] in _NOT_AFTER_S:
        return ""
    telling = after_adverbs(words)
    if telling in _HAS_ONLY:
        return "has"
    if not telling or _may_be_participle(telling) or (subject in _QUESTION and words[0] in _PRONOUNS):
        return ""
    doubtful = subject == "who" and telling not in _AFTER_WHO and not telling.endswith("ing")
    return "" if doubtful else "is"


def what_d_means(subject: str, following: str) -> str:
    """Return `had` or `would` for the `'d` after a lower-case subject; empty when unclear.

    >>> what_d_means("she", " never seen it"), what_d_means("she", " like it"), what_d_means("she", " put it")
    ('had', 'would', '')
    """
    words = next_words(following)
    if subject not in _D_SUBJECTS or not words:
        return ""
    telling = after_adverbs(words)
    if telling == "better":
        return "had" if words[0] == "better" else ""
    if telling in _BASES:
        return "would"
    if telling in _BOTH or telling in _NOT_PAST:
        return ""
    return "had" if telling in _PARTICIPLES or telling.endswith("ed") else ""


def next_words(following: str) -> list[str]:
    """Return up to four words that follow without a break, in lower case."""
    words: list[str] = []
    position = 0
    while len(words) < 4 and (match := _NEXT.match(following, position)):
        words.append((match[1] or match[2]).lower())
        position = match.end()
    return words


def after_adverbs(words: list[str]) -> str:
    """Return the first word that is not an adverb; empty when there is none."""
    for word in words:
        if word not in _ADVERBS and not (word.endswith("ly") and len(word) > 5):
            return word
    return ""


def _may_be_participle(word: str) -> bool:
    if word in _PARTICIPLES:
        return True
    if word.endswith("ed"):
        return word not in _NOT_PAST
    return word.endswith("en") and word not in _OTHERS_IN_EN
