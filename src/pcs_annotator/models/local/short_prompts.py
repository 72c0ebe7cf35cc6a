"""The embedded model's prompts as tokens: the same question, worded for a very small model.

The messages of annotators are made for large models: their markers, warnings and reminders confuse this one. So the
instruction, the labels and the text are put into a short template instead. Wordings were chosen by
measuring on one half of the development tweets and of some invented news; `benchmarks/embedded.py` reports the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import Message, QuestionParts, Request, sendable
from pcs_annotator.core.task import enumerated
from pcs_annotator.models.local.batching import Manner, Style
from pcs_annotator.models.local.gguf import GgufFile
from pcs_annotator.models.local.label_tree import Prompt
from pcs_annotator.models.local.runner import Encoded

# Texts without content. The model's answers to them show its bias; a single such text ("N/A") measures it badly.
EMPTY_TEXTS = ("N/A", "", "[MASK]", "...")
DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


class TokenVocabulary:
    """Converts text to tokens and back, with the vocabulary in the model file.

    Text is never read as a control token: a text that contains `<|im_end|>` cannot end its own turn.

    Attributes:
        turn_start: The control token before a message.
        turn_end: The control token after a message.
        control: All control tokens.
    """

    def __init__(self, file: GgufFile) -> None:
        settings = file.settings
        if (settings["tokenizer.ggml.model"], settings["tokenizer.ggml.pre"]) != ("gpt2", "smollm"):
            raise ConfigError(f"{file.path} has a tokenizer that the embedded model does not support")
        tokens: list[str] = settings["tokenizer.ggml.tokens"]
        self._texts = _tokenizer(tokens, settings["tokenizer.ggml.merges"])
        self.turn_start = tokens.index("<|im_start|>")
        self.turn_end = tokens.index("<|im_end|>")
        self.control = frozenset(
            number for number, kind in enumerate(settings["tokenizer.ggml.token_type"]) if kind == 3
        )

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; lone surrogates, which have no token, become U+FFFD."""
        ids: list[int] = self._texts.encode(sendable(text), add_special_tokens=False).ids
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without control tokens."""
        text: str = self._texts.decode([token for token in tokens if token not in self.control])
        return text


def _tokenizer(tokens: Sequence[str], merges: Sequence[str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def encoded(vocabulary: TokenVocabulary, request: Request, manner: Manner) -> Encoded:
    """Return a request as tokens."""
    if request.constraint is None or not request.constraint.choices:
        return Encoded(chat_prompt(vocabulary, request.messages))
    style, prior = manner
    labels, asked = request.constraint.choices, parts_of(request)
    prompt, *empty = (
        label_prompt(vocabulary, style, asked._replace(text=text), labels)
        for text in (asked.text, *(EMPTY_TEXTS if prior else ()))
    )
    return Encoded(prompt, label_sequences(vocabulary, style, labels), tuple(empty))


def parts_of(request: Request) -> QuestionParts:
    """Return the parts of a question; messages that come without them are an instruction, then a text."""
    if request.parts is not None:
        return request.parts
    *before, last = [message.content for message in request.messages]
    return QuestionParts("\n\n".join(before).strip(), "", last)


def label_prompt(vocabulary: TokenVocabulary, style: Style, asked: QuestionParts, labels: Sequence[str]) -> Prompt:
    """Return the prompt that a label completes."""
    text = f' "{" ".join(asked.text.split())}"'
    if style == "plain":
        head = f"{asked.instruction}\n{_menu(asked.menu, labels)}\n\nText:"
        return Prompt(tuple(vocabulary.encode(head)), tuple(vocabulary.encode(f"{text}\nLabel:")))
    head = f"{_menu(asked.menu, labels)}\n{asked.instruction}\n\nText:"
    start, end = vocabulary.turn_start, vocabulary.turn_end
    tail = [*vocabulary.encode(text), end, *vocabulary.encode("\n")]
    # All in one user turn: a separate system message made the answers worse.
    opened = (start, *vocabulary.encode(f"user\n{head}"))
    return Prompt(opened, (*tail, start, *vocabulary.encode("assistant\nLabel:")))


def label_sequences(vocabulary: TokenVocabulary, style: Style, labels: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Return the tokens of each label after the prompt, with the token that ends the answer."""
    end = vocabulary.encode("\n") if style == "plain" else [vocabulary.turn_end]
    return tuple((*vocabulary.encode(f" {label}"), *end) for label in labels)


def chat_prompt(vocabulary: TokenVocabulary, messages: Sequence[Message]) -> Prompt:
    """Return a conversation in the model's own template, up to the start of its answer."""
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
    return f"Labels: {enumerated(labels)}"
