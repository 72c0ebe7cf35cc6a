"""Facts about English words and texts that rules and checks share: names, titles, sentence ends, inflections."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pcs_annotator.base.errors import MissingPackage

if TYPE_CHECKING:
    from spacy.tokens import Token


def word_set(words: str) -> frozenset[str]:
    """Return the words of a string as a set.

    >>> sorted(word_set("is are was"))
    ['are', 'is', 'was']
    """
    return frozenset(words.split())


SMALL = word_set(
    "a an the and or but nor so yet if of in on at to for from by with about as into over after before under between "
    "against during without through while when where why how who whom whose what which that this these those there "
    "here it its he she his her him they them their we us our you your i me my mine is are was were be been being am "
    "do does did has have had will would can could may might must shall should not no yes all any some each every both "
    "more most many much few such only own same than too very just also now then once again up down out off oh ok okay "
    "hey hi hello wow yeah yay lol lmao omg wtf haha ha hahaha xoxo ugh aww gosh thanks thank please sorry because "
    "since until whilst amid unlike upon within among toward towards across besides whereas although though however "
    "despite yesterday today tomorrow tonight mr mrs ms dr sir sen rep gov pres gen col lt sgt st jr sr said says new "
    "old let's it's i'm i'll i've i'd that's what's he's she's don't can't im ive ill dont"
)
"""Words that say little by themselves and are never names."""
LOUD = word_set(
    "mom mum dad mommy daddy mother father grandma grandpa god lord internet love hate baby girl boy ever never always "
    "so much really best worst good great bad happy sad birthday bday day night week weekend year work home fun free "
    "life people guy guys man woman thing things time way lot big little go going gone get got want need know think "
    "see saw look make made take back come came like miss one two win won app update version star stars phone wish "
    "hope feel still soon first last next breaking exclusive watch video photos photo pics pic live read must report "
    "opinion review fake news real true fact check spoiler warning sooo soooo waaay please everything everyone "
    "anything something nothing nobody everybody awesome amazing cool hot cold sick tired dead killing bring stop "
    "start wait wanna gonna gotta cant wont dont aint isnt lots huge super total totally absolutely full stupid crazy "
    "damn hell shit fuck crap ass sucks suck hard easy fast slow ugly cute sweet nice funny family friend friends "
    "school class morning afternoon evening summer winter spring fall autumn web wifi tv pm am"
)
"""Words that people capitalise although they are not names."""
NAMES_TOO = word_set(
    "trump bush apple amazon google mars rose drake prince grant hope grace mark bill pitt west swift gates cook rock "
    "cruise stone fox ford king jay chris will pink cash smith carter turner baker cooper taylor miller hunter mason "
    "parker tyler walker fisher hill young wood woods brook brooks reed read banks rice price jack frank drew guy tom "
    "bob rob nick pat sue harry faith joy lily daisy amber ruby jade crystal dawn carol ivy iris olive violet robin "
    "gene chase dean earl duke hank lance pierce ray rod wade warren victor jimmy miles twitter target shell gap visa "
    "nike house china turkey jordan chad georgia victoria sandy florence"
)
"""Names that are also words."""
SURE_NAMES = word_set(
    "trump bush apple amazon google china turkey jordan georgia chad twitter nike harry tom bob nick jimmy chris jack "
    "victoria florence warren carter taylor tyler parker pitt american"
)
"""Those that are hardly ever words where they have a capital."""

_UPOS = {"V": "VERB", "M": "AUX", "N": "NOUN", "J": "ADJ", "R": "ADV"}


def lemma(token: Token) -> str:
    """Return the dictionary form of a parsed word, in lower case."""
    return lemma_of(token.lower_, token.tag_)


@lru_cache(maxsize=50_000)
def lemma_of(word: str, tag: str) -> str:
    """Return the dictionary form of a word with a Penn tag; the word itself if it is not inflected.

    >>> lemma_of("took", "VBD"), lemma_of("mice", "NNS"), lemma_of("the", "DT")
    ('take', 'mouse', 'the')
    """
    upos = _UPOS.get(tag[:1])
    if upos is None or tag in ("NNP", "NNPS"):
        return word
    if word in ("'s", "'re", "'m", "’s", "’re", "’m") and upos == "VERB":
        return "be"
    found = _lemminflect().getLemma(word, upos=upos)
    return found[0] if found else word


@lru_cache(maxsize=50_000)
def inflect(base: str, tag: str) -> str | None:
    """Return a dictionary form inflected for a Penn tag; None if unknown.

    >>> inflect("take", "VBN"), inflect("mouse", "NNS")
    ('taken', 'mice')
    """
    found = _lemminflect().getInflection(base, tag=tag, inflect_oov=False)
    return found[0] if found else None


@lru_cache(maxsize=50_000)
def readings(word: str) -> frozenset[str]:
    """Return the parts of speech that a word may be, in any form; none if it is in no dictionary, as most names are.

    >>> sorted(readings("aims")), sorted(readings("obama"))
    (['NOUN', 'VERB'], [])
    """
    return frozenset(_lemminflect().getAllLemmas(word))


# Words that stay small in a title.
_SMALL_IN_TITLES = word_set(
    "a an the and or but nor of in on at to for from by with as via vs about over into after before under amid against "
    "between during without through than upon per"
)
_WORD = re.compile(r"(?:(?<!\w)[@#]\w*[^\W\d]\w*|[^\W_]+)(?:['’`][^\W_]+)*")
_LEAST_WORDS, _LEAST_CAPITALS = 2, 0.9


def is_title(sentence: str) -> bool:
    """Return whether nearly every word but the small ones has a capital, so that capitals do not mark names.

    >>> is_title("How the Mayor Saved Her Old School"), is_title("How Ann Lee saved her old school")
    (True, False)
    """
    words = [word for word in _WORD.findall(sentence)[1:] if word[0].isalpha() and word not in _SMALL_IN_TITLES]
    return len(words) >= _LEAST_WORDS and sum(not word.islower() for word in words) >= _LEAST_CAPITALS * len(words)


# Words that begin a sentence and are never part of a name.
_NEVER_NAMES = word_set(
    "the a an this that these those he she it we you they his her its our their my your there some many most all both "
    "each every few several no more one two three four five six seven eight nine ten another nobody nothing someone "
    "somebody everyone everybody everything something none people police officials scientists researchers experts "
    "critics voters residents students workers teachers doctors investigators authorities lawmakers prosecutors "
    "protesters supporters companies former"
)
# Words of the dictionary that are more often names, parties, faiths, teams or places.
_OFTEN_NAMES = NAMES_TOO | word_set(
    """
    march may august thanksgiving welsh polish argentine catholic catholics evangelical evangelicals orthodox
    republican republicans democrat democrats democratic tory tories labour marxist marxists internet congress western
    communist communists brown delta oracle sun page pope bank wells pence cotton ball yahoo dell palm sanders wall
    east north south moody lions giants eagles tigers bears bulls saints jets rangers rockets heat magic pistons twins
    angels cubs god lord senate parliament earth mercury providence buffalo mobile arsenal independence liberty concord
    proposition amendment bird medicare medicaid lifetime general major sergeant captain judge justice president
    senator minister
    """
)


def within_sentence(first: Token) -> str | None:
    """Return the first word of a sentence as it is written elsewhere; None if its capital may be a name's or not."""
    word, low, tag = first.text, first.lower_, first.tag_
    if low in _NEVER_NAMES or word == "I":
        return low if word != "I" else word
    following = first.nbor().text[:1] if first.i + 1 < len(first.doc) else ""
    # "New Virginia rules", "New York"
    if low == "new":
        return None
    if tag in ("NNP", "NNPS") and (following.isupper() or not readings(low)):
        return word
    if not readings(low):
        # "American", "Danish"; other unknown words may be misspelt.
        return word if tag == "JJ" and low.endswith(("an", "ish", "ese", "i", "ic", "ch")) else None
    if following.isupper() or following.isdigit() or low in _OFTEN_NAMES or word[1:] != word[1:].lower():
        return None
    return low if tag in ("NNS", "JJ", "JJR", "CD", "VBG") else None


def _lemminflect() -> Any:  # the package has no types
    try:
        import lemminflect
    except ModuleNotFoundError as error:
        raise MissingPackage("this relation inflects English: pip install 'perceived-confidence[rules]'") from error
    return lemminflect
