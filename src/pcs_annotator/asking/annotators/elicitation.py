"""Elicitations: ways to ask for a label together with its probability, and what is read from the replies.

Those of Tian et al. 2023 are built in: 1S and 2S top-k, with k guesses, and Ling 1S, with a phrase for one. Guesses and
probabilities are read from a reply by the first rule that finds any:

1. Keys such as `G1:`, `P1:`, `Guess:`, `Probability:`, in any order; a number after the guess is enough.
2. Labels with a number after or before them: `Fake: 0.8`, `| Fake | 80 % |`, `{"Fake": 0.8}`; `80 % Fake`.

The first number of a label counts. Reasoning such as `<think>…</think>` and list numbers are ignored.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pcs_annotator.asking.annotators.prompt import OtherAnswer, PromptStyle, build_messages
from pcs_annotator.asking.annotators.quotation import own_words
from pcs_annotator.asking.annotators.reply import read_label, without_reasoning
from pcs_annotator.asking.annotators.vocabulary import Mention, vocabulary
from pcs_annotator.core.chat import Message
from pcs_annotator.core.elicitations import LING_1S, PHRASES, elicitations, guesses_of, top_k_kind
from pcs_annotator.core.task import Task

Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Stated:
    """Probabilities that a model stated in its reply."""

    # label → probability, for the labels it named, in the order of its guesses; each is between 0 and 1, and so is
    # their sum
    probabilities: Mapping[str, float]

    def __post_init__(self) -> None:
        total = sum(self.probabilities.values())
        if total > 1:
            shares = {label: value / total for label, value in self.probabilities.items()}
            object.__setattr__(self, "probabilities", shares)

    @property
    def guess(self) -> str:
        """The likeliest label; the first of equally likely ones."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    def over(self, labels: Sequence[str]) -> tuple[float, ...]:
        """Return a row of `Votes.stated`: the probability of every label, nan for labels that were not named."""
        return tuple(self.probabilities.get(label, float("nan")) for label in labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicitation(ABC):
    """A conversation of one or two questions that ends with probabilities or a silence.

    `style` is `plain` without a system role. Users' own may be any class with `name`, `first` and `next`.
    """

    style: PromptStyle = "chat"

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the kind, as in `core.elicitations`."""

    @abstractmethod
    def first(self, task: Task, text: str) -> Messages:
        """Return the first question about a text."""

    @abstractmethod
    def read(self, task: Task, text: str, question: Messages, replies: Sequence[str]) -> Messages | Stated | str:
        """Return what `next` does after at least one reply; what replies only repeat does not count."""

    def next(self, task: Task, text: str, replies: Sequence[str]) -> Messages | Stated | str:
        """Return the next question after some replies, the stated probabilities, or why there are none."""
        question = self.first(task, text)
        return self.read(task, text, question, replies) if replies else question


elicitation = elicitations.register  # decorator: register an elicitation class under a name


def elicitation_of(kind: str) -> Elicitation:
    """Return the elicitation of a kind such as `1s-top-4`, or of a registered name.

    >>> elicitation_of("1s-top-4").name
    '1s-top-4'
    """
    k = guesses_of(kind)
    if kind in (top_k_kind(1, k), top_k_kind(2, k)):
        return TopK(steps=int(kind[0]), k=k)
    made: Elicitation = elicitations.create(kind)
    return made


def opening(task: Task, text: str, *, wanted: str, last: str, style: PromptStyle) -> Messages:
    """Return a question like the one for a plain label, but with another form of answer, as in `OtherAnswer`."""
    return build_messages(task, text, style=style, answer=OtherAnswer(wanted, last))


_ONLY = "Write only these lines:"
# Possessive quantifiers, because a reply can be hostile: no pattern may try a second way to match the same characters.
NUMBER = re.compile(
    r"(?<![\w.])([-−]?+)(\d{1,9}+(?:[.,]\d{1,12}+)?+|\.\d{1,12}+)(?:e(-\d{1,2}+))?+"
    r"(?:\s*+(?:(%|percent\b)|(?:/|out\s++of)\s*+(\d{1,6}+)))?+(?!\w)",
    re.IGNORECASE,
)
_PERCENT = 100.0
# Numbers that add up to about this are percentages, even if one of them is below 1.
_ABOUT_A_HUNDRED = (90.0, 110.0)
# A bare "8" probably means 8 of 10 rather than 8 %, but that is not certain.
_UNCLEAR_UP_TO = 10.0


@elicitation("1s-top-k")
@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(Elicitation):
    """k guesses (or as many as there are labels), with their probabilities in the same reply or in a second one."""

    steps: int = 1
    k: int = 2

    @property
    def name(self) -> str:
        """Return the kind."""
        return top_k_kind(self.steps, self.k)

    def first(self, task: Task, text: str) -> Messages:
        """Return the first question."""
        size = min(self.k, len(task.labels))
        likeliest = "Name the likeliest label" if size == 1 else f"Name the {size} likeliest labels in order"
        also, line = ", each with the probability from 0 to 1 that it is right", "G{n}: <label>\nP{n}: <probability>"
        if self.steps > 1:
            also, line = "", "G{n}: <label>"
        wanted = f"{likeliest}{also}. {_ONLY}\n{_numbered(line, size)}"
        return opening(task, text, wanted=wanted, last="Answer with these lines and nothing else.", style=self.style)

    def read(self, task: Task, text: str, question: Messages, replies: Sequence[str]) -> Messages | Stated | str:
        """Return the probabilities in the replies, or the question for them."""
        answers = [own_words(reply, text, question) for reply in replies]
        if self.steps == 1:
            return read_probabilities(answers[0], task.labels)
        guesses = read_guesses(answers[0], task.labels)[: self.k]
        if not guesses:
            return "no label in reply"
        if len(answers) > 1:
            return read_probabilities_of(answers[1], guesses, task.labels)
        made = "\n".join(f"G{n}: {label}" for n, label in enumerate(guesses, start=1))
        lines = _numbered("P{n}: <probability>", len(guesses))
        asked = f"What is the probability, from 0 to 1, that each of your guesses is right? {_ONLY}\n{lines}"
        return (*question, Message("assistant", made), Message("user", asked))


@elicitation("2s-top-k")
def two_steps() -> TopK:
    """Return the elicitation that asks for guesses first, and then for their probabilities."""
    return TopK(steps=2)


def _numbered(line: str, size: int) -> str:
    return "\n".join(line.format(n=n) for n in range(1, size + 1))


class Number(NamedTuple):
    """A number, and whether it is marked as a share, as in `80 %` or `8/10`."""

    value: float
    is_share: bool


def number_of(match: re.Match[str]) -> Number:
    """Return the number that `NUMBER` matched."""
    sign, digits, exponent, percent, whole = match.groups()
    value = float(digits.replace(",", ".")) * 10.0 ** int(exponent or 0) * (-1 if sign else 1)
    of = _PERCENT if percent else int(whole or 0)
    return Number(value / of, True) if of else Number(value, False)


def stated(named: Mapping[str, Number]) -> Stated | str:
    """Return the probabilities of the named labels, or the reason why there are none.

    Bare numbers are read on one scale: as probabilities if none is above 1, else as percentages.
    """
    if not named:
        return "no probability in reply"
    bare = [number.value for number in named.values() if not number.is_share]
    scale = 1.0
    if any(value > 1 for value in bare):
        around = _ABOUT_A_HUNDRED[0] <= sum(bare) <= _ABOUT_A_HUNDRED[1]
        if not around and (max(bare) <= _UNCLEAR_UP_TO or any(0 < value < 1 for value in bare)):
            return "probabilities on an unclear scale"
        scale = _PERCENT
    values = {label: number.value / (1 if number.is_share else scale) for label, number in named.items()}
    if not all(0 <= value <= 1 for value in values.values()):
        return "probability out of range"
    return Stated(values)


_KEY = re.compile(
    r"(?<!\w)(g(?:uess)?+|p(?:rob(?:ability)?+)?+|confidence)[\s#]*+(\d{0,3}+)[\"'*_`\s]*+[:=]", re.IGNORECASE
)
_SIGNS = r"[\s\"'“”‘’*_`:=|(),;\[\]{}~≈<>≤≥–—→]|-(?![\d.])"
_WORDS = (
    r"(?:a|an|about|approximately|am|around|at|being|chance|confidence|confident|for|has|i|is|it|label|likelihood|my|of"
    r"|p\d?|prob|probability|roughly|score|sure|text|that|the|with)(?!\w)"
)
_LINK = re.compile(rf"(?:{_SIGNS}|{_WORDS})*+", re.IGNORECASE)
_LONGEST_LINK = 60
_LIST_NUMBER = re.compile(r"^[ \t*_-]{0,8}+\d{1,2}+[.)](?=\s)|(?<=[\s,;])[1-9]\)(?=\s)", re.MULTILINE)
_NEGATED = re.compile(r"(?<!\w)(?:not|no|non|never|neither|nor|\w{1,8}n['’]t)[\s\"'*_`-]*+\Z", re.IGNORECASE)
_LONGEST_NEGATION = 16


def read_probabilities(reply: str, labels: Sequence[str]) -> Stated | str:
    r"""Return the guesses in a reply with their probabilities, or the reason why there are none.

    >>> read_probabilities("G1: fake\nP1: 80%\nG2: real\nP2: 0.2", ["Fake", "Real"])
    Stated(probabilities={'Fake': 0.8, 'Real': 0.2})
    """
    text = _answer(reply)
    named = _keyed(text, labels) or _linked(text, labels)
    if not named and not read_guesses(reply, labels):
        return "no label in reply" if text.strip() else "empty reply"
    return stated(named)


def read_guesses(reply: str, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels that a reply guesses, the likeliest first; empty if there are none."""
    text = _answer(reply)
    keyed = [read_label(value, labels).label for kind, _, value in _keys(text) if kind == "g"]
    guesses = [label for label in keyed if label is not None] or [mention.label for mention in _mentions(text, labels)]
    return tuple(dict.fromkeys(guesses))


def read_probabilities_of(reply: str, guesses: Sequence[str], labels: Sequence[str]) -> Stated | str:
    """Return the probabilities that a reply gives for earlier guesses.

    They are matched by `P1:` and so on, by the labels, or in order, if there are as many numbers as guesses.
    """
    text = _answer(reply)
    by_key = _numbers_in(_keys(text))
    named = {label: by_key[number] for number, label in enumerate(guesses, start=1) if number in by_key}
    named = named or _linked(text, labels)
    if not named:
        numbers = [number_of(match) for match in NUMBER.finditer(text)]
        named = dict(zip(guesses, numbers, strict=True)) if len(numbers) == len(guesses) else {}
    return stated(named)


def _answer(reply: str) -> str:
    return _LIST_NUMBER.sub("", without_reasoning(reply))


def _keys(text: str) -> list[tuple[str, int, str]]:
    """Return (`g` or `p`, number, rest of the line) for every key; keys without a number are counted."""
    matches = list(_KEY.finditer(text))
    ends = [*(key.start() for key in matches[1:]), len(text)][: len(matches)]
    counts = {"g": 0, "p": 0}
    keys = []
    for key, end in zip(matches, ends, strict=True):
        kind = "g" if key[1][0] in "gG" else "p"
        counts[kind] += 1
        value = text[key.end() : end].strip().partition("\n")[0]
        keys.append((kind, int(key[2] or counts[kind]), value))
    return keys


def _numbers_in(keys: Sequence[tuple[str, int, str]]) -> dict[int, Number]:
    matches = ((index, NUMBER.search(value)) for kind, index, value in keys if kind == "p")
    return {index: number_of(number) for index, number in matches if number}


def _keyed(text: str, labels: Sequence[str]) -> dict[str, Number]:
    keys = _keys(text)
    probabilities = _numbers_in(keys)
    named: dict[str, Number] = {}
    for kind, index, value in keys:
        if kind == "p":
            continue
        label = read_label(value, labels).label
        number = probabilities.get(index) or (_linked(value, labels).get(label) if label else None)
        if label is not None and number is not None:
            named.setdefault(label, number)
    return named


def _linked(text: str, labels: Sequence[str]) -> dict[str, Number]:
    mentions = _mentions(text, labels)
    after: dict[str, Number] = {}
    for mention in mentions:
        link = _LINK.match(text, mention.end, mention.end + _LONGEST_LINK)
        match = NUMBER.match(text, link.end()) if link else None
        if match:
            after.setdefault(mention.label, number_of(match))
    before = _numbers_before(text, mentions)
    # in "80 % Fake, 20 % Real" only the first label has a number after it, and it is the wrong one
    return before if len(before) > len(after) else after


def _numbers_before(text: str, mentions: Sequence[Mention]) -> dict[str, Number]:
    before: dict[str, Number] = {}
    starts = {mention.start: mention.label for mention in mentions}
    for match in NUMBER.finditer(text) if starts else ():
        link = _LINK.match(text, match.end(), match.end() + _LONGEST_LINK)
        if link and link.end() in starts:
            before.setdefault(starts[link.end()], number_of(match))
    return before


def _mentions(text: str, labels: Sequence[str]) -> list[Mention]:
    """Return the labels in a text that are not negated."""
    return [
        mention
        for mention in vocabulary(tuple(labels)).mentions(text)
        if not _NEGATED.search(text, max(0, mention.start - _LONGEST_NEGATION), mention.start)
    ]


# With such a word before it, a phrase means something else, for which there is no survey.
_PHRASE = re.compile(
    r"(?<!\w)((?:not|very|extremely|quite|fairly|less|more|most|rather|somewhat|really|so|too)\s++)?("
    + "|".join(phrase.replace(" ", r"[\s_-]++") for phrase in sorted(PHRASES, key=len, reverse=True))
    + r")(?!\w)",
    re.IGNORECASE,
)
_BY_WORDS = {phrase.casefold(): value for phrase, value in PHRASES.items()}
_CONFIDENCE = re.compile(
    r"(?<!\w)(?:confidence|likelihood|certainty|probability)[\"'*_`\s]*+[:=]([^\n]*)", re.IGNORECASE
)
_GUESS = re.compile(r"(?<!\w)(?:guess|label|answer)[\"'*_`\s]*+[:=]", re.IGNORECASE)
_BREAK = re.compile(r"[\n,;()|–—]|\s-\s")


@elicitation("ling-1s")
@dataclass(frozen=True, slots=True, kw_only=True)
class Linguistic(Elicitation):
    """One guess, and one of the phrases of the survey."""

    name: ClassVar[str] = LING_1S

    def first(self, task: Task, text: str) -> Messages:
        """Return the question."""
        wanted = (
            "Name the likeliest label, and say with one of these phrases how likely it is to be right: "
            f"{', '.join(PHRASES)}. Write only these lines:\nGuess: <label>\nConfidence: <phrase>"
        )
        last = "Answer with these two lines and nothing else."
        return opening(task, text, wanted=wanted, last=last, style=self.style)

    def read(self, task: Task, text: str, question: Messages, replies: Sequence[str]) -> Messages | Stated | str:
        """Return the probability in the reply."""
        return read_phrase(own_words(replies[0], text, question), task.labels)


def read_phrase(reply: str, labels: Sequence[str]) -> Stated | str:
    r"""Return the guess with the probability of its phrase, or the reason why there is none.

    >>> read_phrase("Guess: fake\nConfidence: Highly likely", ["Fake", "Real"])
    Stated(probabilities={'Fake': 0.87})
    """
    answer = without_reasoning(reply)
    # The keys are looked for first, because a label may itself be a phrase (`Likely`).
    confidence = _CONFIDENCE.search(answer)
    if confidence:
        guess, phrase = answer[: confidence.start()] or answer[confidence.end() :], confidence[1]
    else:  # `Fake, almost certain` has exactly two parts; other replies are ambiguous
        parts = [part for part in _BREAK.split(answer) if re.search(r"\w", part)]
        guess, phrase = parts if len(parts) == 2 else (answer, "")
    phrases = {
        " ".join(re.split(r"[\s_-]+", match[2].casefold())) for match in _PHRASE.finditer(phrase) if not match[1]
    }
    if len(phrases) != 1:
        return "two phrases in reply" if phrases else "no phrase in reply"
    key = _GUESS.search(guess)
    said_label = read_label(guess[key.end() :].strip().partition("\n")[0] if key else guess, labels)
    return Stated({said_label.label: _BY_WORDS[phrases.pop()]}) if said_label.label is not None else said_label.reason
