"""The embedded model's prompts and answers: labels for many questions at once, and free text for one.

The messages of annotators are made for large models: their markers, warnings and reminders confuse this one. So the
instruction, the labels and the text are put into a short template instead. Wordings were chosen by measuring on one
half of the development tweets and of some invented news; `benchmarks/embedded.py` reports the rest.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from pcs_annotator.core.chat import Message, QuestionParts, Reply, Request, Usage, sendable
from pcs_annotator.core.task import enumerated
from pcs_annotator.models.local.label_tree import Floats, Kept, LabelQuestion, LabelTree, Prompt, normalised
from pcs_annotator.models.local.llama import GgufFile, KVCache, Network, Piece, read_gguf
from pcs_annotator.models.local.runner import Encoded, Style, TextQuestion, WaitingQuestion

# Texts without content. The model's answers to them show its bias; a single such text ("N/A") measures it badly.
EMPTY_TEXTS = ("N/A", "", "[MASK]", "...")
DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


class TokenVocabulary:
    """Converts text to tokens and back, with the vocabulary in the model file.

    Text is never read as a control token: a text that contains `<|im_end|>` cannot end its own turn.
    """

    def __init__(self, file: GgufFile) -> None:
        settings = file.settings
        tokens: list[str] = settings["tokenizer.ggml.tokens"]
        self._texts = _tokenizer(tokens, settings["tokenizer.ggml.merges"])
        self.turn_start, self.turn_end = tokens.index("<|im_start|>"), tokens.index("<|im_end|>")  # around a message
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


def encoded(vocabulary: TokenVocabulary, request: Request, style: Style) -> Encoded:
    """Return a request as tokens."""
    if request.constraint is None or not request.constraint.choices:
        return Encoded(chat_prompt(vocabulary, request.messages))
    labels, asked = request.constraint.choices, parts_of(request)
    texts = (asked.text, *EMPTY_TEXTS)
    prompt, *empty = (label_prompt(vocabulary, style, asked._replace(text=text), labels) for text in texts)
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
    if messages[0].role != "system":
        messages = [Message("system", DEFAULT_SYSTEM), *messages]
    start, end = vocabulary.turn_start, (vocabulary.turn_end, *vocabulary.encode("\n"))
    turns = [(start, *vocabulary.encode(f"{turn.role}\n{turn.content}"), *end) for turn in messages]
    head = (token for turn in turns[:-1] for token in turn)
    return Prompt(tuple(head), (*turns[-1], start, *vocabulary.encode("assistant\n")))


def _menu(listed: str, labels: Sequence[str]) -> str:
    has_meanings = listed and listed != "\n".join(f"- {label}" for label in labels)
    return f"Labels:\n{listed}" if has_meanings else f"Labels: {enumerated(labels)}"


# The attention mask grows with the square of the tokens read at once, so longer prompts are read in parts.
LONGEST_READ = 512
KEPT_HEADS = 16
KEPT_PRIORS = 256
MOST_THREADS = 8


class NumpyEngine:
    """A loaded model; may be used from several threads."""

    most_texts = 1

    def __init__(self, path: Path) -> None:
        file = read_gguf(path)
        self.vocabulary = TokenVocabulary(file)
        self.network = Network(file)
        self._heads: Kept[KVCache] = Kept(KEPT_HEADS)
        self._priors: Kept[Floats] = Kept(KEPT_PRIORS)
        # One BLAS thread per batch: BLAS threads wait for each other by spinning, which costs more than they gain on
        # matrices this small, and much more when other programs use the processor too.
        self._limits = threadpool_limits(limits=1, user_api="blas")

    def close(self) -> None:
        """Let BLAS use all its threads again."""
        self._limits.restore_original_limits()

    def encode(self, asked: Sequence[WaitingQuestion]) -> Iterable[Encoded]:
        """Return requests as tokens, in the words that suit this model."""
        return [encoded(self.vocabulary, job.request, job.style) for job in asked]

    def label_logprobs(self, questions: Sequence[LabelQuestion]) -> Iterable[tuple[int, Floats]]:
        """Return the log-probabilities of the labels of each question."""
        priors = [self._prior(question) for question in questions]
        logs = self._read([(question.prompt, question.tree) for question in questions])
        return enumerate(normalised(raw - prior) for raw, prior in zip(logs, priors, strict=True))

    def generate(self, questions: Sequence[TextQuestion]) -> list[Reply]:
        """Return continuations of prompts."""
        return [self._continued(*question) for question in questions]

    def _continued(self, prompt: Prompt, limit: int) -> Reply:
        cache, tokens = self._cached_head(prompt)
        written: list[int] = []
        ended = False
        while len(written) < limit and not ended:
            (answer,) = self.network.read_pieces([Piece.after(cache, tokens)], tile=1)
            token = int(self.network.logits(answer.states)[0].argmax())
            ended = token in self.vocabulary.control
            cache, tokens = answer.cache, [token]
            written += [] if ended else [token]
        return Reply(
            text=self.vocabulary.decode(written).strip(),
            finish="stop" if ended else "length",
            usage=Usage(input_tokens=prompt.length, output_tokens=len(written)),
        )

    def _read(self, asked: Sequence[tuple[Prompt, LabelTree]]) -> list[Floats]:
        answers = self.network.read_pieces([Piece.after(*self._cached_head(prompt), tree) for prompt, tree in asked])
        return [
            label_log_probabilities(tree, self.network, answer.states)
            for (_, tree), answer in zip(asked, answers, strict=True)
        ]

    def _prior(self, question: LabelQuestion) -> Floats:
        """Return the model's bias: the log-probabilities of the labels of texts without content."""

        def ask() -> Floats:
            logs = self._read([(prompt, question.tree) for prompt in question.empty])
            return np.log(np.exp(np.stack(logs)).mean(axis=0))

        return self._priors.get((question.empty, question.tree), ask)

    def _cached_head(self, prompt: Prompt) -> tuple[KVCache, Sequence[int]]:
        """Return the KV cache after the prompt's head, and the tokens still to be read."""
        cache = self._heads.get(prompt.head, lambda: self._read_head(prompt.head))
        return self._read_start(cache, prompt.tail)

    def _read_head(self, head: tuple[int, ...]) -> KVCache:
        cache, rest = self._read_start(self.network.empty_cache(), head)
        return self.network.read_pieces([Piece.after(cache, rest)])[0].cache if rest else cache

    def _read_start(self, cache: KVCache, tokens: tuple[int, ...]) -> tuple[KVCache, tuple[int, ...]]:
        """Read tokens in parts until the rest is short enough to be read at once; return the cache and that rest."""
        while len(tokens) > LONGEST_READ:
            cache = self.network.read_pieces([Piece.after(cache, tokens[:LONGEST_READ])])[0].cache
            tokens = tokens[LONGEST_READ:]
        return cache, tokens


def label_log_probabilities(tree: LabelTree, network: Network, states: Floats) -> Floats:
    """Return the log-probability of each label from the states of the piece's rows."""
    logs = np.zeros(tree.size, np.float32)
    for fork in tree.forks:
        logits = normalised(network.logits(states[fork.row : fork.row + 1], fork.tokens)[0])
        for value, labels in zip(logits, fork.labels, strict=True):
            logs[list(labels)] += value
    return logs


def processors() -> int:
    """Return how many processors this process may use, at most eight."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, MOST_THREADS))
