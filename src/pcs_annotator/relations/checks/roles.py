"""Who did what to whom: is it still the same? Judged by the order of words, because small parsers are often wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from pcs_annotator.relations.checks.names import bare, capitals, entities
from pcs_annotator.relations.checks.reading import Rewrite, plain, words
from pcs_annotator.relations.facts import word_set

_PRONOUNS = {
    "I": "i me my mine myself i'm i've i'll i'd im ive",
    "we": "we us our ours we're we've we'll",
    "you": "you your yours yourself u ur ya you're you've you'll y'all youre",
    "he": "he him his himself he's",
    "she": "she her hers herself she's",
    "they": "they them their",
}
_PERSON = {word: person for person, row in _PRONOUNS.items() for word in row.split()}
# Each pair must not be exchanged.
_APART = (({"I", "we"}, {"you"}), ({"he"}, {"she"}))
_BE = word_set("is are was were be been being am gets got get")
# These change with voice or style without changing who did what.
_STYLE = word_set("a an the 's that")
_SAME_FRAME = 0.7


def roles(rewrite: Rewrite) -> str:
    """Complain when two names have swapped roles, or two words have changed sides."""
    source, text = _bare_words(rewrite.source), _bare_words(rewrite.text)
    return _other_person(source, text) or _swapped_names(rewrite, source, text) or _turned_round(source, text)


@lru_cache(maxsize=256)
def _bare_words(text: str) -> tuple[str, ...]:
    found = words(text)
    return tuple(map(bare, found)) if "'" in plain(text) else found


def _other_person(source: Sequence[str], text: Sequence[str]) -> str:
    before, after = ({_PERSON[word] for word in row if word in _PERSON} for row in (source, text))
    for pair in _APART:
        for one, other in (pair, pair[::-1]):
            if before & one and after & other and not (before & other or after & one):
                return f"{min(after & other)} takes the place of {min(before & one)}; keep who speaks, and of whom"
    return ""


def _swapped_names(rewrite: Rewrite, source: Sequence[str], text: Sequence[str]) -> str:
    """Complain about names in a different order, unless the grammar around them changed as well."""
    if capitals(rewrite.source) == capitals(rewrite.text):
        return ""
    names = {word: number for number, name in enumerate(entities(rewrite.source)) for word in name.words}
    before, after = (list(dict.fromkeys(names[word] for word in row if word in names)) for row in (source, text))
    if [name for name in before if name in after] == after:
        return ""
    one, other = ({word for word in row if word not in names and word not in _STYLE} for row in (source, text))
    same = source.count("by") == text.count("by") and len(one & other) >= _SAME_FRAME * max(len(one), len(other))
    return "names have changed places; keep who does what" if same or not rewrite.expects.reorders else ""


def _turned_round(source: Sequence[str], text: Sequence[str]) -> str:
    """Complain when a passive came in but no word moved, or when words changed sides without a passive."""
    rows = [[_PERSON.get(word, word) for word in row if word not in _STYLE] for row in (source, text)]
    kept = {word for word, _ in Counter(rows[0]).items() & Counter(rows[1]).items()}
    before, after = ([word for word in row if word in kept] for row in rows)
    around, now = ({(*one, other[1]) for one, other in pairwise(pairwise(row))} for row in (before, after))
    by = text.count("by") - source.count("by")
    if by > 0 and _BE & {*text} - {*source}:
        verbs = {verb for verb, word in pairwise(text) if word == "by"}
        in_place = before == after or any(middle in verbs for _, middle, _ in around & now)
        return "the passive turns it round; keep who does what" if in_place else ""
    turned = any(triple[::-1] in around for triple in now - around)
    return "two words have changed sides; keep who does what" if turned and not by else ""
