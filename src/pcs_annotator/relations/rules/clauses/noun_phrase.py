"""A noun phrase that can be moved: its text, number, case and capital."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pcs_annotator.relations.rules.words import word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

AS_OBJECT = {"i": "me", "he": "him", "she": "her", "we": "us", "they": "them", "who": "whom"}
AS_SUBJECT = {"me": "I", "him": "he", "her": "she", "us": "we", "them": "they", "whom": "who"}

QUOTES = frozenset("\"“”''``‘’„«»")
_NAME_TAGS = ("NNP", "NNPS")
# Common nouns that the tagger mistakes for names at the start of a sentence.
_COMMON_OPENERS = word_set(
    """
    activists agents aides airlines analysts authorities authors bombers boys businesses buyers bystanders
    campaigners candidates carmakers children citizens commuters companies consumers critics customers delegates
    developers doctors drivers economists editors employees employers engineers experts families fans farmers fire
    firefighters firms fishermen flames flooding floods girls guards gunfire gunmen hackers heat historians
    hospitals insurgents investigators investors journalists judges jurors lawmakers lawyers leaders legislators
    lightning men militants ministers negotiators neighbors observers officers officials opponents organizers
    owners parents passengers pilots pirates players police politicians prosecutors protesters providers
    publishers rain rebels regulators reporters rescuers researchers residents retailers scientists shareholders
    singers smoke snow soldiers spokesmen storms students supporters teachers thieves tourists traders troops
    unions users viewers voters water winds witnesses women workers
    """
)
# Words for peoples and faiths always have a capital; common words with the same endings do not.
_PEOPLES = re.compile(
    r"\w+(?:ese|iard|ans?)|(?:Brit|Engl|Ir|Scott|Span|Turk|Pol|Dan|Swed|Finn|Jew|Kurd|Flem)(?:ish)?s?|Iraqi?s?|Israelis?"
    r"|Pakistanis?|Saudis?|Afghani?s?|Kuwaitis?|Somalis?|Bangladeshis?|Yemenis?|French|Dutch|Swiss|Welsh|Greeks?|Arabs?"
    r"|Czechs?|Thais?|Democrats?|Democratic|Muslims?|Islamic|Islamists?|Catholics?|Protestants?|Sunnis?|Hindus?"
    r"|Congressional|Internet|Olympic|Arctic|Nazis?|Marxists?|Zionists?|God"
)
_NO_PEOPLES = word_set(
    """
    human humans woman man ban bans clan clans plan plans scan scans fan fans loan loans clean mean median urban
    suburban organ slogan slogans veteran veterans guardian guardians civilian civilians pedestrian historian
    historians pedestrians musician musicians politician politicians technician technicians physician physicians
    electrician electricians magician librarian librarians comedian comedians partisan partisans bipartisan orphans
    vegan vegans titan titans van vans pan pans bean beans ocean oceans than swan swans caravan caravans obese
    """
)
_NAME_BEGINNINGS = word_set(
    "south north east west southern northern eastern western new central great latin federal royal"
)
_INDEFINITE = word_set(
    """
    someone somebody something anyone anybody anything everyone everybody everything nobody nothing none
    """
)
_PLURAL_NOUNS = frozenset({"police", "people", "cattle", "troops", "many", "few", "several", "both", "these", "those"})
_PARTS = word_set(
    """
    majority lot lots number percent % half most some none all rest handful couple dozen dozens plenty third
    """
)
_SINGULAR_WORDS = word_set(
    """
    this that it he she him her each one everything something nothing everyone everybody someone somebody another much
    """
)
_PLURAL_WORDS = word_set("these those they we both many few several others us them all some")


@dataclass(frozen=True, slots=True)
class Phrase:
    """The words around a noun.

    Attributes:
        head: The noun.
        first: Index of its first word.
        last: Index of its last word, without punctuation after it.
        closed: Whether it ends in an aside, set off by a comma, that must be followed by another comma.
    """

    head: Token
    first: int
    last: int
    closed: bool = False

    @property
    def tokens(self) -> Span:
        """Its words."""
        return self.head.doc[self.first : self.last + 1]

    @property
    def text(self) -> str:
        """Its text."""
        return self.tokens.text

    @property
    def start_char(self) -> int:
        """Where it begins."""
        return self.head.doc[self.first].idx

    @property
    def end_char(self) -> int:
        """Where it ends."""
        last = self.head.doc[self.last]
        return last.idx + len(last)

    @property
    def pronoun(self) -> bool:
        """Whether it is just a personal pronoun."""
        return self.first == self.last and self.head.tag_ == "PRP"

    def upto(self, last: int) -> Self:
        """Return the same phrase with an earlier end."""
        return type(self)(self.head, self.first, last)


def phrase_of(head: Token, opening: int) -> Phrase | None:
    """Return the phrase around a noun, starting no earlier than the sentence's opening; None if it is discontinuous."""
    first, last = max(head.left_edge.i, opening), head.right_edge.i
    doc = head.doc
    while last > head.i and doc[last].text in (",", ".", "-", "--", ":", ";", "–", "—"):
        last -= 1
    if first > head.i or doc[first].text in (",", "-", "--", ":", "."):
        return None
    aside = _aside_at_end(head, last)
    if aside is not None and aside.dep_ not in ("appos", "relcl"):
        return None
    return Phrase(head, first, last, closed=aside is not None)


def is_plural(head: Token) -> bool | None:
    """Return whether a noun phrase is plural; None when that is not clear."""
    joined = [child for child in head.children if child.dep_ == "conj"]
    if joined:
        words = {child.lower_ for token in (head, *joined) for child in token.children if child.dep_ == "cc"}
        return True if words & {"and", "&"} and not words & {"or", "nor"} else None
    word = head.lower_
    if word in _PARTS:
        return _part_is_plural(head)
    if word in _SINGULAR_WORDS:
        return False
    if word in _PLURAL_WORDS or word in _PLURAL_NOUNS:
        return True
    return _tag_is_plural(head)


def opens(token: Token, opening: int) -> bool:
    """Return whether a word begins a sentence or a quotation, and so has a capital."""
    if token.i <= opening:
        return True
    before = token.nbor(-1)
    # A mark with a space after it closes a quotation.
    quoted = before.text in QUOTES and not before.whitespace_ and token.text[:1].isupper()
    return quoted or before.text in (":", "--")


def lowered(phrase: Phrase) -> str:
    """Return a phrase's text without the capital that it had only because it opened a sentence."""
    token, text = phrase.tokens[0], phrase.text
    return text if _keeps_capital(token) else text[:1].lower() + text[1:]


def capitalised(text: str) -> str:
    """Return a text with a capital, after a quotation mark if there is one; a name such as `iPhone` stays."""
    word = next(iter(text.split()), "")
    if word[1:] != word[1:].lower():
        return text
    place = 1 if word[:1] in QUOTES else 0
    return text[:place] + text[place : place + 1].upper() + text[place + 1 :]


def _keeps_capital(token: Token) -> bool:
    word = token.text
    if word[1:] != word[1:].lower() or word == "I":
        return True
    if word.lower() in _COMMON_OPENERS:
        return len(token.doc) > token.i + 1 and token.nbor(1).tag_ in _NAME_TAGS and token.dep_ == "compound"
    if token.tag_ in _NAME_TAGS or _may_be_name(token) or _begins_name(token):
        return True
    if token.tag_[:1] in "NJV" or token.tag_[:2] == "RB":
        return _is_people(word)
    return len(word) == 1 and token.tag_ not in ("DT", "PRP")


def _is_people(word: str) -> bool:
    return word.lower() not in _NO_PEOPLES and _PEOPLES.fullmatch(word) is not None


def _begins_name(token: Token) -> bool:
    """Return whether a word such as `South` comes before another capitalised word."""
    after = token.nbor(1).text if token.i + 1 < len(token.doc) else ""
    if not after[:1].isupper():
        return False
    # In "Black Lives Matter" the second word has a capital but is neither a name nor a people.
    common = token.nbor(1).tag_ not in _NAME_TAGS and not _is_people(after)
    return token.lower_ in _NAME_BEGINNINGS or (common and token.tag_ not in ("DT", "PRP$", "CD", "IN"))


def _may_be_name(token: Token) -> bool:
    """Return whether a bare singular noun opens the sentence: too many names are also words."""
    return (
        token.tag_ == "NN"
        and token.dep_ in ("nsubj", "nsubjpass")
        and token.left_edge == token
        and token.lower_ not in _INDEFINITE
    )


def _aside_at_end(head: Token, last: int) -> Token | None:
    """Return what ends a phrase after a comma: an apposition or a relative clause, if the parse is right."""
    for child in head.rights:
        if child.right_edge.i >= last and child.dep_ in ("appos", "relcl", "acl", "amod", "prep"):
            set_off = child.left_edge.i > head.i + 1 and child.left_edge.nbor(-1).text == ","
            return child if set_off else None
    return None


def _part_is_plural(head: Token) -> bool | None:
    if head.lower_ in ("number", "majority") and any(child.lower_ == "the" for child in head.lefts):
        return False
    whole = [pobj for of in head.children if of.lower_ == "of" for pobj in of.children if pobj.dep_ == "pobj"]
    if whole:
        return is_plural(whole[0])
    return True if head.lower_ in ("all", "some", "dozens", "lots") else None


def _tag_is_plural(head: Token) -> bool | None:
    tag, word = head.tag_, head.lower_
    if tag == "NNS":
        return True
    if tag == "NNPS":
        return None if word in ("states", "nations", "times", "airlines", "industries", "motors", "systems") else True
    if tag == "NNP":
        return None if word.endswith("s") and not word.endswith(("ss", "us", "is")) else False
    if tag == "CD":
        return not (word == "one" or any(child.tag_ == "$" for child in head.children))
    return False if tag in ("NN", "VBG") else None
