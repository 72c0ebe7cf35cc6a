"""A noun phrase that can be moved: its text, number, case and capital."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pcs_annotator.relations.rules.words import NAMES_TOO, lemma, readings, word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

AS_OBJECT = {"i": "me", "he": "him", "she": "her", "we": "us", "they": "them", "who": "whom"}
AS_SUBJECT = {"me": "I", "him": "he", "her": "she", "us": "we", "them": "they", "whom": "who"}

QUOTES = frozenset("\"“”''``‘’„«»")
_NAME_TAGS = ("NNP", "NNPS")
# Common nouns that the tagger mistakes for names at the start of a sentence.
_COMMON_OPENERS = word_set(
    """
    court government group judge jury man mayor panel poll president report scientist student study team woman
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
# Words of the dictionary that are also peoples, faiths and parties.
_PEOPLES = word_set(
    """
    polish welsh democrat democrats democratic republican republicans catholic arctic marxist god internet trump
    congress senate parliament
    """
)
_NAME_BEGINNINGS = word_set("south north east west southern northern eastern western new central great latin royal")
# Words before a name that do not belong to it.
_BEFORE_NAMES = word_set("former acting late rival fellow veteran ousted jailed disgraced embattled")
_SMALL_TAGS = word_set("DT PDT PRP PRP$ CD IN RB RBR RBS JJR JJS EX")
_PLURAL_NOUNS = frozenset({"police", "people", "cattle", "troops", "many", "few", "several", "both", "these", "those"})
_UNIONS = frozenset({"US", "U.S.", "UN", "U.N.", "EU", "UK", "U.K."})
_PARTS = word_set(
    "majority lot lots number percent % half most some none all rest handful couple dozen dozens plenty third thirds"
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

    @property
    def relative(self) -> bool:
        """Whether it is just a relative pronoun."""
        return self.first == self.last and self.head.tag_ in ("WDT", "WP")

    def upto(self, last: int) -> Self:
        """Return the same phrase with an earlier end."""
        return type(self)(self.head, self.first, last)


def phrase_of(head: Token, opening: int) -> Phrase | None:
    """Return the phrase around a noun, starting no earlier than the sentence's opening; None if it is discontinuous."""
    first, last = max(head.left_edge.i, opening), head.right_edge.i
    doc = head.doc
    while last > head.i and (doc[last].is_space or doc[last].text in (",", ".", "-", "--", ":", ";", "–", "—")):
        last -= 1
    if first > head.i or doc[first].text in (",", "-", "--", ":", "."):
        return None
    aside = _aside_at_end(head, last)
    # "Sues Acme, Zeta over patents" is a list.
    if aside is not None and (aside.dep_ not in ("appos", "relcl") or (aside.tag_ == "NNP" and aside.n_lefts == 0)):
        return None
    return Phrase(head, first, last, closed=aside is not None)


def is_plural(head: Token) -> bool | None:
    """Return whether a noun phrase is plural; None when that is not clear."""
    joined = [child for child in head.children if child.dep_ == "conj"]
    if not joined and any(token.lower_ in ("and", "&") and token.dep_ == "cc" for token in _before(head)):
        return None
    if joined:
        words = {child.lower_ for token in (head, *joined) for child in token.children if child.dep_ == "cc"}
        # "Cap and trade" is one thing.
        bare = all(token.tag_ == "NN" and not any(token.lefts) for token in (head, *joined))
        # "Discovery of a statue and two coins" may be one discovery.
        bare = bare or any(child.dep_ == "prep" and child.i < joined[0].i for child in head.rights)
        return True if words & {"and", "&"} and not words & {"or", "nor"} and not bare else None
    word = head.lower_
    if word in _PARTS:
        return _part_is_plural(head)
    if word in _SINGULAR_WORDS or head.text in _UNIONS:
        return False
    if word in _PLURAL_WORDS or word in _PLURAL_NOUNS:
        # "A police warning" is no plural, and "police" not its noun.
        return None if any(child.lower_ in ("a", "an") for child in head.lefts) else True
    return _tag_is_plural(head)


def opens(token: Token, opening: int) -> bool:
    """Return whether a word begins a sentence or a quotation, and so has a capital."""
    if token.i <= opening:
        return True
    before = token.nbor(-1)
    # A mark with a space after it closes a quotation.
    quoted = before.text in QUOTES and not before.whitespace_ and token.text[:1].isupper()
    return quoted or before.text in (":", "--")


def lowered(phrase: Phrase) -> str | None:
    """Return a phrase's text without the capital of its sentence; None if the capital may be a name's."""
    keeps = _keeps_capital(phrase.tokens[0])
    text = phrase.text
    return None if keeps is None else text if keeps else text[:1].lower() + text[1:]


def capitalised(text: str) -> str:
    """Return a text with a capital, after a quotation mark if there is one; a name such as `iPhone` stays."""
    word = next(iter(text.split()), "")
    if word[1:] != word[1:].lower():
        return text
    place = 1 if word[:1] in QUOTES else 0
    return text[:place] + text[place : place + 1].upper() + text[place + 1 :]


def _keeps_capital(token: Token) -> bool | None:
    word, low = token.text, token.lower_
    # "We miss the Cubs. Cubs tickets cost more": a name elsewhere in the text.
    named = any(other.text == word and other != token and not other.is_sent_start for other in token.doc)
    if named or word[1:] != word[1:].lower() or word == "I" or low in _PEOPLES:
        return True
    following = token.doc[token.i + 1 : token.i + 2]
    # "Amendment 1" may be a name; "New Gabonese" is none, but "New York" is.
    unclear = bool(following) and (following[0].like_num or (low == "new" and following[0].tag_ == "JJ"))
    if token.tag_ in _SMALL_TAGS or unclear:
        return None if unclear else False
    before_name = token.i + 1 < len(token.doc) and (
        token.nbor(1).text[:1].isupper() or (low in _NAME_BEGINNINGS and token.nbor(1).lower_ == "and")
    )
    if low in _COMMON_OPENERS:
        return before_name
    doubt = None
    if token.tag_ in _NAME_TAGS:
        # "Giants" may be a team or just giants.
        return doubt if not before_name and low not in NAMES_TOO and readings(low) else True
    if not readings(low) or (before_name and low in _NAME_BEGINNINGS):
        return True if before_name or token.tag_ == "JJ" else doubt
    # "Hope" and "Arroyo" may be names or the words.
    bare = token.tag_ == "NN" and token.dep_ in ("nsubj", "nsubjpass") and token.right_edge == token
    unsure = bare or (low in NAMES_TOO and token.tag_ == "NN") or (before_name and low not in _BEFORE_NAMES)
    return doubt if unsure else False


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


def _before(head: Token) -> list[Token]:
    """Return the words before a noun that belong to it: in `tea and cake shop`, two nouns may be meant."""
    return [token for child in head.lefts for token in child.subtree]


def _tag_is_plural(head: Token) -> bool | None:
    tag, word = head.tag_, head.lower_
    people = word in _PEOPLES or word.endswith(("ans", "ims", "ics"))
    if tag == "NNS":
        # "Broccoli" has no singular, and is one; "Leeds" is a town or a team.
        single = any(child.lower_ in ("this", "that", "a", "an", "each", "every") for child in head.lefts)
        named = head.text[0].isupper() and not people and not readings(word)
        return None if single or named or lemma(head) == word else True
    if tag == "NNPS":
        return True if people or (head.text.istitle() and head.left_edge.lower_ == "the") else None
    if tag == "NNP":
        doubtful = word.endswith("s") and (not word.endswith(("ss", "us", "is")) or head.left_edge.lower_ == "the")
        return None if doubtful else False
    if tag == "CD":
        return not (word == "one" or any(child.tag_ == "$" for child in head.children))
    counted = any(child.tag_ == "CD" or child.lower_ in _PLURAL_WORDS for child in head.lefts)
    return False if tag in ("NN", "VBG") and not counted else None
