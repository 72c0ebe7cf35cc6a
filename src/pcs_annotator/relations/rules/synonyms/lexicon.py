"""The audited synonyms: what may replace what, and where."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple, cast, get_args

from pcs_annotator.relations.rules.words import inflect, word_set

Kind = Literal["verb", "noun", "word"]
"""What is inflected: the first word of a verb phrase, the last of a noun phrase, nothing."""

LEXICON = "synonyms.toml"
TAGS: Mapping[Kind, tuple[str, ...]] = {
    "verb": ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"),
    "noun": ("NN", "NNS"),
    "word": (),
}
_LISTS = word_set("tags frame next not_next prev not_prev subject object not_object head not_head without")


@dataclass(frozen=True, slots=True, kw_only=True)
class LexiconEntry:
    """One substitution and the places in which it keeps the meaning; the lexicon's first lines explain the fields."""

    kind: Kind
    words: tuple[str, ...]
    to: str
    rank: int = 2
    tags: frozenset[str] = frozenset()
    frame: frozenset[str] = frozenset()
    next: frozenset[str] = frozenset()
    not_next: frozenset[str] = frozenset()
    prev: frozenset[str] = frozenset()
    not_prev: frozenset[str] = frozenset()
    subject: frozenset[str] = frozenset()
    object: frozenset[str] = frozenset()
    not_object: frozenset[str] = frozenset()
    head: frozenset[str] = frozenset()
    not_head: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()

    def forms(self) -> Iterator[Form]:
        """Yield every inflected form of the entry; ValueError if one cannot be inflected."""
        if self.kind == "word":
            yield Form(self, self.words, "", self.to)
            return
        for tag in TAGS[self.kind]:
            if self.tags and tag not in self.tags:
                continue
            yield Form(self, (_inflected(self.words[0], tag), *self.words[1:]), tag, self._substitute(tag))

    def _substitute(self, tag: str) -> str:
        if self.kind == "verb":
            first, *rest = self.to.split()
            return " ".join([_inflected(first, tag), *rest])
        *rest, last = self.to.split()
        return " ".join([*rest, _inflected(last, tag)])


class Form(NamedTuple):
    """One inflected form of an entry.

    Attributes:
        words: The words to look for, inflected, in lower case.
        tag: The Penn tag of the first word; empty for any.
        to: The replacement in the same form.
    """

    entry: LexiconEntry
    words: tuple[str, ...]
    tag: str
    to: str


@cache
def load() -> tuple[LexiconEntry, ...]:
    """Return all entries of the packaged lexicon."""
    sections = _sections()
    lines = ((cast(Kind, kind), line) for kind in get_args(Kind) for line in sections[f"{kind}s"])
    return tuple(entry for kind, line in lines for entry in _entries(kind, line))


@cache
def fixed_phrases() -> Mapping[str, tuple[tuple[str, ...], ...]]:
    """Return the phrases in which no word may be replaced, by their first word, all in dictionary form."""
    found: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for phrase in " | ".join(_sections()["fixed"]).split(" | "):
        words = tuple(phrase.split())
        found[words[0]].append(words)
    return {word: tuple(phrases) for word, phrases in found.items()}


@cache
def forms_by_first_word() -> Mapping[str, tuple[Form, ...]]:
    """Return every form of every entry, by its first word."""
    found: defaultdict[str, list[Form]] = defaultdict(list)
    for entry in load():
        for form in entry.forms():
            found[form.words[0]].append(form)
    return {word: tuple(forms) for word, forms in found.items()}


@cache
def _sections() -> Mapping[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath(LEXICON).read_text("utf-8"))


def _entries(kind: Kind, line: Mapping[str, Any]) -> Iterator[LexiconEntry]:
    """Yield an entry for each of the alternatives of a line, and for the other direction where it holds as well."""
    lists = {name: frozenset(line.get(name, "").split()) for name in _LISTS}
    unknown = set(line) - {"from", "to", "rank", "both", *_LISTS}
    if unknown:
        raise ValueError(f"{LEXICON}: {line['from']!r} has unknown fields {sorted(unknown)}")
    pairs = [(old, line["to"]) for old in line["from"].split(" | ")]
    pairs += [(new, old) for old, new in pairs] if line.get("both") else []
    for old, new in pairs:
        yield LexiconEntry(kind=kind, words=tuple(old.split()), to=new, rank=line.get("rank", 2), **lists)


def _inflected(base: str, tag: str) -> str:
    # New nouns, such as website, are missing in the inflector and regular.
    form = inflect(base, tag) or {"NN": base, "NNS": f"{base}s"}.get(tag)
    if form is None:
        raise ValueError(f"{LEXICON}: {base!r} has no form for {tag}")
    return form
