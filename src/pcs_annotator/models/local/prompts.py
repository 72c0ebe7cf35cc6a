"""Messages as tokens: in the model's own chat template, or as plain text for a model without one."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

from pcs_annotator.core.chat import Message, Role, sendable
from pcs_annotator.models.local.label_tree import Prompt
from pcs_annotator.models.openai import as_dicts

# Stands for a message's text while a template is rendered; templates trim, compare and cut texts, but not this one.
_HERE = "PCS9f0c41d7HERE"
# Llama's templates show today's date unless they are given one: the same question must be the same tokens tomorrow.
_SETTINGS: Mapping[str, object] = {"enable_thinking": False, "date_string": "26 Jul 2024"}
_ANSWER = "\n\nAnswer:"
_KEPT = 256


class PromptWriter:
    """Turns conversations into tokens, and labels into the tokens that would answer.

    A text cannot contain control tokens: in `<|im_end|>` a space is put after the first character.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.chat = bool(getattr(tokenizer, "chat_template", None))
        self._control = _control_words(tokenizer)
        self._frame = lru_cache(_KEPT)(self._make_frame)
        self._start = lru_cache(_KEPT)(self._encode)
        self.label_tokens = lru_cache(_KEPT)(self._label_tokens)
        self._takes_system = self.chat and self._keeps_system()

    def prompts(self, conversations: Sequence[Sequence[Message]]) -> list[Prompt]:
        """Return conversations as tokens, up to the start of the model's answer."""
        texts, starts = [], []
        for conversation in conversations:
            *earlier, last = self._cleaned(conversation)
            start, after = self._frame(tuple(earlier), last.role)
            texts.append(f"{start}{last.content}{after}")
            # if nothing of the last turn is shared, then examples were chosen for its text, or it follows an answer
            other = last if last.shared else next((message for message in earlier if message.role == "user"), last)
            before = start if other is last else start.partition(other.content)[0]
            starts.append(before + other.content[: other.shared])
        tokens = self._encode_all(texts)
        return [_split(whole, self._start(start)) for whole, start in zip(tokens, starts, strict=True)]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without control tokens."""
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text

    def _label_tokens(self, labels: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the tokens of each label after a prompt, with the token that ends the answer."""
        _, after = self._frame((), "user")
        before = self._encode(after)
        sequences = []
        for label in labels:
            answer = f"{'' if self.chat else ' '}{sendable(label)}"
            whole = self._encode(after + answer)
            # a label is tokenised where it will be: a tokenizer may put a space before the start of a text
            tokens = whole[len(before) :] if whole[: len(before)] == before else self._encode(answer)
            sequences.append((*tokens, self._end()))
        return tuple(sequences)

    def _end(self) -> int:
        """Return the token that ends an answer."""
        if not self.chat:
            return self._encode("x\n")[-1]
        turns = [Message("user", "Hello"), Message("assistant", _HERE)]
        following = self._encode(self._render(turns, answer=False).partition(_HERE)[2])
        end = self._tokenizer.eos_token_id
        return following[0] if following else end if end is not None else self._encode("\n")[-1]

    def _cleaned(self, messages: Sequence[Message]) -> list[Message]:
        cleaned = [
            Message(
                message.role,
                self._harmless(message.content),
                shared=len(self._harmless(message.content[: message.shared])),
            )
            for message in messages
        ]
        if self.chat and not self._takes_system and cleaned[0].role == "system" and len(cleaned) > 1:
            system, first, *rest = cleaned
            before = f"{system.content}\n\n"
            return [Message(first.role, before + first.content, shared=len(before) + first.shared), *rest]
        return cleaned

    def _harmless(self, text: str) -> str:
        text = sendable(text).strip()
        while self._control.search(text):
            text = self._control.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
        return text

    def _make_frame(self, earlier: tuple[Message, ...], role: Role) -> tuple[str, str]:
        """Return what the template puts before and after the text of the last message."""
        if self.chat:
            before, here, after = self._render([*earlier, Message(role, _HERE)]).partition(_HERE)
            if here:
                return before, after
        tokenizer = self._tokenizer
        starts = tokenizer.bos_token_id is not None and tokenizer("x")["input_ids"][:1] == [tokenizer.bos_token_id]
        turns = "".join(f"{message.content}\n\n" for message in earlier)
        return (tokenizer.bos_token if starts else "") + turns, _ANSWER

    def _keeps_system(self) -> bool:
        """Return whether the template has a place for a system message; some refuse it, some leave it out."""
        try:
            return _HERE in self._render([Message("system", _HERE), Message("user", "Hello")])
        except Exception:  # whatever a template raises
            return False

    def _render(self, messages: Sequence[Message], *, answer: bool = True) -> str:
        text: str = self._tokenizer.apply_chat_template(
            as_dicts(messages), tokenize=False, add_generation_prompt=answer, **_SETTINGS
        )
        return text

    def _encode(self, text: str) -> tuple[int, ...]:
        return self._encode_all([text])[0] if text else ()

    def _encode_all(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        encoded = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return [tuple(tokens) for tokens in encoded]


def _split(whole: tuple[int, ...], start: tuple[int, ...]) -> Prompt:
    """Return a prompt as the part that it shares with others, without that part's last token, and the rest."""
    # the last token could be another one if the next character were another
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(whole, start[:-1], strict=False)))
    # at least one token is left to be read
    shared = min(shared, len(whole) - 1)
    return Prompt(whole[:shared], whole[shared:])


def _control_words(tokenizer: Any) -> re.Pattern[str]:
    """Return a pattern for the tokens that a text must not contain: special ones, and others written like markup."""
    words = [
        word
        for token in tokenizer.added_tokens_decoder.values()
        if len(word := token.content.strip()) > 1 and (token.special or word[0] in "<[")
    ]
    return re.compile("|".join(sorted(map(re.escape, words), key=len, reverse=True)) or "(?!)")
