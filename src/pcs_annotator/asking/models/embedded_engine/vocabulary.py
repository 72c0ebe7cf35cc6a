"""From text to tokens and back, with the vocabulary that lies in the model's own file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcs_annotator.asking.models.embedded_engine.gguf import GgufFile
from pcs_annotator.errors import ConfigError, MissingPackage

INSTALL = "pip install 'pcs-annotator[local]'"


class TokenVocabulary:
    """The model's tokens.

    Text is never read as a control token: a text that holds `<|im_end|>` cannot end its own turn.

    Attributes:
        turn_start: The control token in front of a message.
        turn_end: The control token after a message.
    """

    def __init__(self, file: GgufFile) -> None:
        settings = file.settings
        if (settings["tokenizer.ggml.model"], settings["tokenizer.ggml.pre"]) != ("gpt2", "smollm"):
            raise ConfigError(f"{file.path} has a tokenizer that the embedded model does not know")
        tokens: list[str] = settings["tokenizer.ggml.tokens"]
        self._texts = _tokenizer(tokens, settings["tokenizer.ggml.merges"])
        self.turn_start = tokens.index("<|im_start|>")
        self.turn_end = tokens.index("<|im_end|>")
        self.control = frozenset(
            number for number, kind in enumerate(settings["tokenizer.ggml.token_type"]) if kind == 3
        )

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; lone surrogates, which no token has, become question marks."""
        sendable = text.encode("utf-8", "replace").decode("utf-8")
        ids: list[int] = self._texts.encode(sendable, add_special_tokens=False).ids
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without the control tokens among them."""
        text: str = self._texts.decode([token for token in tokens if token not in self.control])
        return text


def _tokenizer(tokens: Sequence[str], merges: Sequence[str]) -> Any:
    try:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    except ImportError:
        raise MissingPackage(f"the embedded model needs tokenizers: {INSTALL}") from None
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
