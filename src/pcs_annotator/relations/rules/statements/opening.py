"""How a sentence begins and whether it is a plain statement, for rules that put words in front of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.rule import NotApplicable
from pcs_annotator.relations.rules.words import inflect, lemma_of, word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token


SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass", "expl"})
FINITE = frozenset({"VBD", "VBP", "VBZ", "MD"})

# "WASHINGTON (Reuters) - ", "Reuters - ", "NEW YORK, July 3 (AP) -- ", "news.example.com -- "
_PLACE = r"[A-Z][A-Z.']+(?:[ /-][A-Z][A-Z.']+){0,3}"
_PLACE_TAIL = r"(?:, [A-Z][A-Za-z.]+(?: \d{1,2})?)?(?:,? [A-Z][a-z]+\.? \d{1,2}(?:, \d{4})?)?(?: ?\([^()]{2,40}\))?"
_SOURCE = r"[A-Z]\w+(?:[ .][A-Z]\w+)?(?:, [A-Z][\w.]+)?(?: \([A-Z][\w ]+\))?|\w+\.(?:com|org|net)"
_DATELINE = re.compile(
    rf"(?:{_PLACE}{_PLACE_TAIL}|{_SOURCE})\s*(?:--\s*|(?:-|–|—)\s+)|{_PLACE}{_PLACE_TAIL}\s*:\s+|"
    r"[A-Z][A-Za-z]+ \([A-Z][A-Za-z]+\) (?=[A-Z])"
)
# Links to the text before; stays in front of any words added before the statement.
_LINK = re.compile(
    r"(?:(?:And|But|Yet|So) (?!far\b|many\b|much\b|do\b|does\b|did\b|is\b|are\b|too\b|as\b|called\b|long\b)"
    r"|(?:However|Meanwhile|Moreover|Furthermore|Instead|Still|Also|Nevertheless|Nonetheless|Therefore|Thus|Besides|"
    r"In fact|In addition|As a result|For example|For instance|Of course|In contrast|By contrast|In other words|"
    r"In a word|All in all|In my opinion|To be honest|In general|In conclusion|Unfortunately|Fortunately|Sadly|Luckily|"
    r"Honestly|Yes|Basically|Obviously|Clearly|"
    r"On the other hand|At the same time|In short|Additionally|Similarly|Likewise|Accordingly|Consequently|Overall|"
    r"According to [^,;:.\"“”]{3,60}), )"
)
# A tag or mention is read as a name with an X; before another name it is no part of the sentence.
_JUNK = re.compile(
    r"^quot;|^X[a-z]\w* [A-Z]|\bRT\b|\w!\w|"
    r"https?:|www\.|[\n\r\t@#{}<>|=*_\\^~]|\.\.\.|…|[a-z]{3}\.[A-Z][a-z]|&\w+;|   |[^\x00-ɏ‐-‧€₤£™]"
)
# What is left of "&#39;" and "$" in some files of news.
_HARMLESS = re.compile(r"#39;|\\(?=\$)")
_ENDS = frozenset(".!?")
_CLOSING = "\"'”’)]"

_KEEP_CASE = word_set(
    """
    i i'm i've i'd i'll monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december christmas easter ramadan thanksgiving american british english
    scottish irish welsh french german italian spanish portuguese dutch belgian swiss austrian polish czech hungarian
    romanian bulgarian greek turkish russian ukrainian swedish norwegian danish finnish icelandic canadian mexican
    brazilian argentine argentinian chilean colombian venezuelan peruvian cuban haitian chinese japanese korean
    vietnamese thai indonesian malaysian filipino indian pakistani bangladeshi afghan iranian iraqi israeli palestinian
    syrian lebanese jordanian egyptian saudi libyan tunisian moroccan algerian sudanese somali kenyan nigerian ethiopian
    ghanaian rwandan ugandan zimbabwean african asian european australian latino hispanic arab kurdish kurds serbian
    serbs croatian bosnian albanian georgian chechen nepalese singaporean taiwanese californian texan christian muslim
    jewish jews catholic protestant islamic islamist buddhist hindu evangelical mormon orthodox republican democrat
    democratic tory tories labour nazi marxist olympic internet congress congressional parisian londoners victorian
    western soviet communist
    """
)
# Names that are also common words, or that the tagger often mistakes for one.
_NAMES = word_set(
    """
    trump bush brown rice cook gates apple amazon google microsoft intel target delta ford shell oracle sun visa stone
    page powell pope king bank chase wells fox pence barr cotton cruz ball yahoo dell palm nokia boeing sanders warren
    turkey china jordan chad georgia wall west east north south twitter facebook moody lions giants eagles tigers bears
    bulls saints jets rangers rockets heat magic celtics pistons twins angels cubs god lord satan jesus senate
    parliament earth mars venus mercury newsweek providence phoenix buffalo mobile arsenal independence liberty concord
    chelsea proposition tonga woods bird medicare medicaid lifetime obama
    """
)
_KEPT = _KEEP_CASE | _NAMES
# A title before a name is tagged as part of it and keeps its capital; these words do not.
_LOWER_EVEN_AS_NAME = word_set(
    """
    the a an this that these those he she it we you they his her its our their my your in on at by for from with to of
    as after before during since while when if because although though under over between among within without despite
    there here some many most all both each every few several no police scientists researchers officials investigators
    authorities lawmakers oil stocks shares former two three four five six seven eight nine ten today yesterday tomorrow
    last next early late then now one and but or according longtime everyone everybody everything someone somebody
    something anyone nobody nothing none more less fewer higher lower tens dozens hundreds thousands millions billions
    legendary beleaguered embattled troubled ailing struggling billionaire unbeaten certain manufacturing millionaire
    veteran actor actress singer striker midfielder defender researcher eleven twelve senior rapper comedian
    """
)
_IN_NAMES = frozenset({"new", "old", "great", "grand", "big", "red", "white", "black", "green", "blue", "native"})
_PREFIXES = frozenset({"non", "anti", "pro", "ex", "pre", "post", "mid", "self", "half"})


def why_no_statement(sentence: Span) -> str:
    """Return why a sentence is not one plain statement in prose; empty when it may be one."""
    text = sentence.text.strip()
    if not 4 <= len(sentence) <= 80:
        return "too short" if len(sentence) < 4 else "too long"
    # A text that was cut off at its end can still have words in front.
    whole = text.rstrip(".…")
    if _JUNK.search(_HARMLESS.sub("", whole)) or (len(text) > len(whole) + 1 and ".." in whole):
        return "not plain prose"
    if text.upper() == text:
        return "all in capitals"
    return _why_no_bounds(sentence, text)


def _why_no_bounds(sentence: Span, text: str) -> str:
    end = text.rstrip(_CLOSING)[-1:]
    if "?" in text:
        return "a question"
    if end not in (".", "!") and sentence.end != len(sentence.doc):
        return "no clear end of the sentence"
    if not _begins_cleanly(sentence):
        return "no clear start of the sentence"
    return "" if _balanced(text) else "unbalanced quotes or brackets"


def ends_openly(sentence: Span) -> bool:
    """Return whether a sentence lacks a full stop, as in headlines, where a participle looks like a past tense."""
    text = sentence.text.strip().rstrip(_CLOSING)
    return not text.endswith((".", "!")) or text.endswith("...")


def statement_start(sentence: Span) -> int | NotApplicable:
    """Return the document index of the word where the statement begins, after datelines and links."""
    text, at = sentence.text, 0
    for pattern in (_DATELINE, _LINK):
        found = pattern.match(text, at)
        if found:
            at = found.end()
    for token in sentence:
        if token.idx - sentence.start_char >= at:
            # The dateline may end inside a token, if the tokeniser split the text differently.
            return token.i if token.idx - sentence.start_char == at else NotApplicable("no clear start of the sentence")
    return NotApplicable("too short")


def in_mid_sentence(token: Token) -> str | None:
    """Return the first word of a sentence with the capital or small letter it has elsewhere; None when unclear."""
    word, plain = token.text, token.lower_.replace("’", "'")
    if word[0].isdigit() or word[0].islower():
        return word
    if plain in _LOWER_EVEN_AS_NAME or plain in _PREFIXES:
        return word.lower()
    if not word.isalpha():
        return _hyphened(word)
    # A plural, or "Chinas" for "China's".
    if not _KEPT.isdisjoint({plain, plain.removesuffix("s")}) or any(char.isupper() for char in word[1:]):
        return word
    is_name = _is_name(token, plain)
    if is_name is None:
        return None
    return word if is_name else word[0].lower() + word[1:]


def _is_name(token: Token, plain: str) -> bool | None:
    """Return whether a word is a name, judged by its tag; None when tag and dictionary disagree."""
    if token.tag_ in ("NNP", "NNPS"):
        return None if _stands_alone(token) and _is_common(plain) else True
    if token.tag_ in ("VB", "VBD", "VBP", "VBZ", "MD", "FW"):
        return True if token.dep_ in (*SUBJECTS, "compound", "poss") else None
    if token.tag_ == "NNS" and not _is_common(plain):
        return None
    return token.tag_[:2] in ("NN", "JJ") and (not _is_common(plain) or _begins_name(token))


def _stands_alone(name: Token) -> bool:
    following = name.doc[name.i + 1] if name.i + 1 < len(name.doc) else name
    return following.tag_ not in ("NNP", "NNPS", "POS") and following.text not in (",", ".", "&", "(")


def _begins_name(word: Token) -> bool:
    following = word.doc[word.i + 1] if word.i + 1 < len(word.doc) else word
    if following.text[0].isdigit():
        return True
    # "Formula One", "Striker Jon Abara"
    return following.text[0].isupper() and (word.tag_ == "NN" or word.lower_ in _IN_NAMES)


def _is_common(word: str) -> bool:
    return inflect(lemma_of(word, "NNS"), "NN") is not None or inflect(word, "JJ") is not None


def _hyphened(word: str) -> str:
    first, hyphen, rest = word.partition("-")
    if first.lower() in _PREFIXES:
        return f"{first.lower()}-{rest}"
    keep = not hyphen or first.lower() in _KEEP_CASE or not rest.islower() or not _is_common(first.lower())
    return word if keep else f"{first.lower()}-{rest}"


def finite_of(verb: Token) -> Token | None:
    """Return the word that carries the tense of a clause: its first auxiliary, or the verb itself."""
    for child in verb.lefts:
        if child.dep_ in ("aux", "auxpass") and child.tag_ in FINITE:
            return child
    return verb if verb.tag_ in FINITE else None


def subject_of(verb: Token) -> Token | None:
    """Return the subject of a clause if it comes before the verb."""
    # The parser sometimes attaches the subject to the auxiliary.
    for head in (verb, *(child for child in verb.lefts if child.dep_ in ("aux", "auxpass"))):
        for child in head.lefts:
            if child.dep_ in SUBJECTS:
                return child
    return None


def part_of(verb: Token, token: Token) -> Token:
    """Return the direct dependent of a verb that contains a word; the root if the word is not below the verb."""
    while token.head not in (verb, token):
        token = token.head
    return token


def _begins_cleanly(sentence: Span) -> bool:
    first = sentence[0]
    if first.i == 0 and first.text[0].islower():
        return True
    if not (first.text[0].isupper() or first.text[0].isdigit() or _DATELINE.match(sentence.text)):
        return False
    if first.i == 0:
        return True
    before = sentence.doc[max(0, first.i - 6) : first.i].text.rstrip()
    # The parser splits '"Why me?" the mayor asked.' after the question mark.
    if re.search(r"[?!,][\"'”’]+$", before):
        return False
    before = before.rstrip(_CLOSING)
    return before[-1:] in _ENDS or bool(re.search(r"(?:--?|–|—|:)$", before))


def _balanced(text: str) -> bool:
    return (
        text.count('"') % 2 == 0
        and all(text.count(opening) == text.count(closing) for opening, closing in ("“”", "()", "[]"))
        # An apostrophe looks like a closing quote: only an opening one shows a quotation.
        and text.count("‘") <= text.count("’")
        and len(re.findall(r"(?:^|[\s(])'\w", text)) <= len(re.findall(r"[^\s]'(?!\w)", text))
    )
