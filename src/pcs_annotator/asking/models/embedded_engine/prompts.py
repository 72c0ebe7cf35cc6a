"""What the embedded model gets to read: the same question, worded for a very small model.

The messages that annotators send are made for large models: markers, warnings and reminders help those and confuse this
one. So the instruction, the labels and the text are taken out of them and put into a short frame. Wordings were chosen
by measuring on one half of the development tweets and of some invented news; `benchmarks/embedded.py` reports the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pcs_annotator.asking.models.embedded_engine.vocabulary import TokenVocabulary
from pcs_annotator.core.chat import Message

# The model was trained on 8,192; attention in numpy gets slow, and its answers poor, long before.
Style = Literal["chat", "plain"]

# Texts without content. What the model says to them is its prejudice; one alone ("N/A") is a bad witness.
EMPTY_TEXTS = ("N/A", "", "[MASK]", "...")
DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
# As annotators mark texts; models know nothing of annotators, and a test holds the two together.
_BETWEEN = re.compile(r"(?:^|\n)[^\n]*(\[text [0-9a-f]{12}\])\n\1\n(?P<text>.*)\n\1", re.DOTALL)
_LABELS = "Labels:\n"


class ParsedQuestion(NamedTuple):
    """A question, taken out of its messages.

    Attributes:
        instruction: What to decide.
        menu: The labels as they were listed, with their meanings; "" if they were not.
        text: The text to label.
    """

    instruction: str
    menu: str
    text: str


class Prompt(NamedTuple):
    """Tokens to read.

    Attributes:
        head: The same for every text of a task.
        tail: The text and what follows it.
    """

    head: tuple[int, ...]
    tail: tuple[int, ...]


def take_apart(messages: Sequence[Message]) -> ParsedQuestion:
    """Return what is asked, from the messages of our annotators or from any others.

    Others are read as an instruction in all but the last message, and a text in the last.
    """
    *before, last = [message.content for message in messages]
    fixed = "\n\n".join(before)
    marked = _BETWEEN.search(last)
    if marked is None:
        return ParsedQuestion(fixed.strip(), "", last)
    fixed = f"{fixed}\n\n{last[: marked.start()]}".strip()
    paragraphs = fixed.split("\n\n")
    listed = [number for number, paragraph in enumerate(paragraphs) if paragraph.startswith(_LABELS)]
    if not listed:
        return ParsedQuestion(fixed, "", marked["text"])
    # The last list: an instruction may hold one of its own. The first paragraph says that texts are labelled.
    instruction = "\n\n".join(paragraphs[1 : listed[-1]])
    return ParsedQuestion(instruction.strip(), paragraphs[listed[-1]].removeprefix(_LABELS), marked["text"])


def label_prompt(vocabulary: TokenVocabulary, style: Style, asked: ParsedQuestion, labels: Sequence[str]) -> Prompt:
    """Return the prompt whose next words are a label."""
    head = vocabulary.encode(f"{asked.instruction}\n{_menu(asked.menu, labels)}\n\nText:")
    text = " ".join(asked.text.split())
    if style == "plain":
        return Prompt(tuple(head), tuple(vocabulary.encode(f" {text}\nLabel:")))
    start, end = vocabulary.turn_start, vocabulary.turn_end
    tail = [*vocabulary.encode(f" {text}"), end, *vocabulary.encode("\n")]
    # All in one turn of the user: a system message of its own made the answers worse.
    return Prompt((start, *vocabulary.encode("user\n"), *head), (*tail, start, *vocabulary.encode("assistant\nLabel:")))


def label_sequences(vocabulary: TokenVocabulary, style: Style, labels: Sequence[str]) -> list[list[int]]:
    """Return each label's tokens after the prompt, with one that ends the answer."""
    end = vocabulary.encode("\n") if style == "plain" else [vocabulary.turn_end]
    return [vocabulary.encode(f" {label}") + end for label in labels]


def chat_prompt(vocabulary: TokenVocabulary, messages: Sequence[Message]) -> Prompt:
    """Return a conversation in the model's own template, ready for its turn."""
    head: list[int] = []
    if messages[0].role != "system":
        head += _turn(vocabulary, "system", DEFAULT_SYSTEM)
    for message in messages[:-1]:
        head += _turn(vocabulary, message.role, message.content)
    tail = _turn(vocabulary, messages[-1].role, messages[-1].content)
    return Prompt(tuple(head), (*tail, vocabulary.turn_start, *vocabulary.encode("assistant\n")))


def _turn(vocabulary: TokenVocabulary, role: str, content: str) -> list[int]:
    opened = [vocabulary.turn_start, *vocabulary.encode(f"{role}\n{content}")]
    return [*opened, vocabulary.turn_end, *vocabulary.encode("\n")]


def _menu(listed: str, labels: Sequence[str]) -> str:
    bare = "\n".join(f"- {label}" for label in labels)
    if listed and listed != bare:  # the labels have meanings
        return f"Labels:\n{listed}"
    return f"Labels: {', '.join(labels)}"
