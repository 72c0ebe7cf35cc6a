"""Grades: the probability with which a model would have answered each label, from the log-probabilities of tokens.

The walk follows the answer's tokens from the first. At each, every alternative extends the text so far, and what that
text can become decides where its probability goes: to the one label that it starts or is, to no label, or to several
labels, which leaves it undecided. It ends where the tokens that were sampled leave one label. So labels may share their
first tokens, one may be the start of another, and several tokens (` positive`, `Positive`, `pos`) count for one label.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from math import exp
from typing import NamedTuple

from pcs_annotator.asking.annotators.vocabulary import vocabulary
from pcs_annotator.core.chat import TokenPosition
from pcs_annotator.models.logprobs import NEVER

NOT_GIVEN = "no log-probabilities in the reply"
IN_PROSE = "an answer in prose"
NO_ALTERNATIVES = "no alternatives to the tokens of the reply"
NO_OWN = "no log-probability for the token that was chosen"
IMPOSSIBLE = "impossible log-probabilities: above 0, or not a number"
AFTER_SAMPLING = "log-probabilities of the choice made, not of the model"
OTHER_ANSWER = "tokens that do not lead to the label of the reply"
UNDECIDED = "tokens that leave the label open"
UNLISTED = "labels that may be likelier than the answer and are in none of the tokens listed"
"""Why a vote stays hard although log-probabilities were requested."""
BOUNDED = "a label was not among the tokens listed"

MOST_UNDECIDED = 0.1
BOUND_THAT_MATTERS = 0.01
# Servers round; more than this above a probability of 1 is an error.
TOLERANCE = 1e-3
# A sentence may begin with these, so that they are not the start of a longer word: "The" is not half of "theft".
_OPENERS = frozenset(
    ["A", "An", "As", "Based", "For", "Given", "Here", "I", "In", "It", "Let", "On", "So", "That", "The", "This", "We"]
)
_KEPT_TEXTS = 10_000


class Graded(NamedTuple):
    """The grades in a reply."""

    grades: tuple[float, ...] | None  # the probability of each label, in order; None for a hard vote
    remark: str = ""  # why there are none, or `BOUNDED` if a label that was not listed may have more than 1 %


def grade(positions: tuple[TokenPosition, ...] | str | None, labels: tuple[str, ...], chosen: str) -> Graded:
    """Return the probability of each label, or the reason why the log-probabilities do not tell.

    The positions are those of `Reply.logprobs`; if they lead to another label than that of the reply, they do not tell.
    """
    if positions is None or isinstance(positions, str):
        return Graded(None, positions or NOT_GIVEN)
    every = (1 << len(labels)) - 1
    walk = _Walk(_continuations(labels), every, every, [0.0] * len(labels))
    for position in positions:
        problem = walk.step(position)
        if problem:
            return Graded(None, problem)
        if not walk.possible & (walk.possible - 1):
            break
    if not walk.informed and not walk.possible & (walk.possible - 1):
        alone = all(len(position.alternatives) < 2 for position in positions)
        return Graded(None, NO_ALTERNATIVES if alone else AFTER_SAMPLING)
    return walk.result(1 << labels.index(chosen))


@dataclass(slots=True)
class _Walk:
    """The tokens so far: what they can become, and where the probability of the others went."""

    _continuations: "_Continuations"
    _every: int
    possible: int
    _found: list[float]
    _open: list[tuple[int, float]] = field(default_factory=list)
    _mass: float = 1.0
    _text: str = ""
    _bound: float = 0.0
    _guess: float = 0.0
    informed: bool = False

    def step(self, position: TokenPosition) -> str:
        """Take one token; return what is wrong with it, or an empty text."""
        token, alternatives = position
        text, mass, leads_to = self._text, self._mass, self._continuations
        own_share, total, lowest, seen = -1.0, 0.0, 2.0, 0
        for other, log in alternatives:
            if not log <= TOLERANCE:
                return IMPOSSIBLE
            if log < NEVER:
                continue
            share = exp(log)
            total += share
            if own_share < 0 and other == token:
                own_share = share
                continue
            if share < lowest:  # noqa: PLR1730  # this runs for every token of every answer
                lowest = share
            mask = leads_to[text + other] if other else leads_to.ended(text)
            if mask & (mask - 1):
                self._open.append((mask, mass * share))
            elif mask:
                self.informed = True
                self._found[mask.bit_length() - 1] += mass * share
            seen |= mask
        if own_share < 0:
            return NO_OWN if alternatives else NO_ALTERNATIVES
        if total > 1 + TOLERANCE:
            return IMPOSSIBLE
        self._go_on(token, own_share, seen, left=1 - total, lowest=lowest)
        return ""

    def _go_on(self, token: str, share: float, seen: int, *, left: float, lowest: float) -> None:
        before = self.possible
        self.possible = self._continuations[self._text + token] if token else self._continuations.ended(self._text)
        self._text += token
        self.informed = self.informed or (lowest <= 1 and self.possible != before)
        unseen = before & self._every & ~(seen | self.possible)
        if unseen and left > 0:
            self._bound_unseen(unseen, left, lowest if lowest <= 1 else share)
        self._mass *= share

    def _bound_unseen(self, unseen: int, left: float, lowest: float) -> None:
        """Give labels that are in no listed token the most they can have: no more than the least likely listed one."""
        self._bound = max(self._bound, self._mass * min(lowest, left))
        share = self._mass * min(lowest, left / unseen.bit_count())
        self._guess = max(self._guess, share)
        for label in _bits(unseen):
            self._found[label] += share

    def result(self, chosen: int) -> Graded:
        """Return the grades, if the tokens end at the chosen label and little is left open."""
        if not self.possible & chosen:
            return Graded(None, OTHER_ANSWER)
        if self.possible & (self.possible - 1):
            self._open.append((self.possible, self._mass))
        else:
            self._found[chosen.bit_length() - 1] += self._mass
            if self._guess >= self._found[chosen.bit_length() - 1]:
                return Graded(None, UNLISTED)
        grades = self._found
        if self._open:
            left_open = sum(mass for _, mass in self._open)
            if left_open > MOST_UNDECIDED * (sum(grades) + left_open):
                return Graded(None, UNDECIDED)
            grades = self._with_open()
        total = sum(grades)
        if total > 1:  # by rounding
            grades = [value / total for value in grades]
        return Graded(tuple(grades), BOUNDED if self._bound > BOUND_THAT_MATTERS else "")

    def _with_open(self) -> list[float]:
        """Return the grades with what was left open, split like what was decided; not what may well be no label."""
        grades = self._found.copy()
        for mask, mass in self._open:
            among = _bits(mask) if mask <= self._every else []
            total = sum(self._found[label] for label in among)
            for label in among:
                grades[label] += mass * (self._found[label] / total if total else 1 / len(among))
        return grades


class _Continuations(dict[str, int]):
    """What a text can become: a bit for each label that it starts, or is; one more bit if it may well be no label."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        super().__init__()
        self._words = vocabulary(labels)
        self._bit = {label: 1 << code for code, label in enumerate(labels)}
        self._no_label = 1 << len(labels)

    def __missing__(self, text: str) -> int:
        if len(self) >= _KEPT_TEXTS:
            self.clear()
        labels = self[text] = self._labels_of(text)
        return labels

    def ended(self, text: str) -> int:
        """Return the label that a text is if nothing follows it; 0 if it is none."""
        return self._bit.get(self._words.match(text) or "", 0)

    def _labels_of(self, tokens: str) -> int:
        decoded, cut = _decoded(tokens.encode("utf-8", "surrogateescape"))
        line, line_break, _ = decoded.lstrip().partition("\n")
        if line_break:
            return self.ended(line)
        mask = sum(self._bit[label] for label in self._words.starting_with(line, cut))
        opened = self._words.undressed(line)
        if mask and opened in _OPENERS and not self._words.has_word(opened):
            mask |= self._no_label
        return mask


_continuations = lru_cache(maxsize=64)(_Continuations)


def _decoded(raw: bytes) -> tuple[str, bytes]:
    """Return the whole characters, and the bytes of a character that is cut off at the end."""
    for cut in range(min(3, len(raw)) + 1):
        try:
            text = raw[: len(raw) - cut].decode()
        except UnicodeDecodeError:
            continue
        # a server that cannot show half a character sends a replacement for it
        return text.partition("\ufffd")[0], raw[len(raw) - cut :]
    return "", b""


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
