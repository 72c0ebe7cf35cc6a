"""The sentences that are put around an instruction or a text, in the languages that they are written in."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from importlib.resources import files
from itertools import count

from pcs_annotator.core.chat import sendable
from pcs_annotator.core.task import USUAL_QUESTION
from pcs_annotator.relations.language import known_language

PLACE = "{instruction}"
# Shorter headings such as "Toxic comment detection" may be taken for another language.
_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """The sentences of one language."""

    lead_in: str  # comes before a text and says nothing about it
    role: str  # what the model is to do
    data: str  # that the text is data and gives no instructions
    fenced: str  # names the marker of the lines around the text
    labels: str  # heading of the labels
    joint: str  # joins the last of several alternatives
    tag: str  # asks for one tag
    bare: str  # asks for one label
    inside: str  # what a tag looks like if there are too many labels to list them
    every: str  # asks for every label that applies
    lines: str  # asks for a line of answer to each of several questions
    answer: str  # comes before these lines
    applies: str  # asks whether one label applies
    suggested: str  # says after a text that somebody else gave a label
    wordings: tuple[str, ...]  # templates around the instruction


@cache
def all_phrases() -> Mapping[str, Phrases]:
    """Return the sentences of every language that has them, by its code."""
    tables = tomllib.loads(files(__package__).joinpath("phrases.toml").read_text(encoding="utf-8"))
    return {language: Phrases(**{**table, "wordings": tuple(table["wordings"])}) for language, table in tables.items()}


def phrases_around(instruction: str, labels: Sequence[str]) -> Phrases:
    """Return the sentences in the language of an instruction, apart from its labels; English ones if it is unclear."""
    return _phrases_around(instruction, tuple(label for label in labels if label in instruction))


@lru_cache(maxsize=256)
def _phrases_around(instruction: str, labels: tuple[str, ...]) -> Phrases:
    phrases = all_phrases()
    if instruction.startswith(USUAL_QUESTION):  # telling a language takes half a second, once in a process
        return phrases["en"]
    for label in sorted(labels, key=len, reverse=True):
        instruction = instruction.replace(label, " ")
    heading = instruction.isascii() and len(instruction.split()) < _FEWEST_WORDS
    return phrases["en"] if heading else phrases.get(known_language(instruction), phrases["en"])


def fenced(text: str) -> str:
    """Return a text between tags that its author cannot guess and that do not occur in it."""
    text = sendable(text)
    content = text.encode()
    hashes = (blake2b(content, digest_size=6, person=b"%d" % attempt).digest() for attempt in count())
    tags = (f"text-{int.from_bytes(digest, 'big') % 10**8:08d}" for digest in hashes)
    tag = next(tag for tag in tags if tag not in text)
    return f"<{tag}>\n{text}\n</{tag}>"
