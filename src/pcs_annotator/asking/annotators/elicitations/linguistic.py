"""Ling 1S of Tian et al. 2023: one guess, and a phrase for how likely it is to be right."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pcs_annotator.asking.annotators.elicitations.base import Elicitation, Messages, Stated, elicitation, opening
from pcs_annotator.asking.annotators.quotation import own_words
from pcs_annotator.asking.annotators.reply import read_label, without_reasoning
from pcs_annotator.core.elicitations import LING_1S, PHRASES
from pcs_annotator.core.task import Task

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
    said = without_reasoning(reply)
    # The keys are looked for first, because a label may itself be a phrase (`Likely`).
    confidence = _CONFIDENCE.search(said)
    if confidence:
        guess, phrase = said[: confidence.start()] or said[confidence.end() :], confidence[1]
    else:  # `Fake, almost certain` has exactly two parts; other replies are ambiguous
        parts = [part for part in _BREAK.split(said) if re.search(r"\w", part)]
        guess, phrase = parts if len(parts) == 2 else (said, "")
    phrases = {
        " ".join(re.split(r"[\s_-]+", found[2].casefold())) for found in _PHRASE.finditer(phrase) if not found[1]
    }
    if len(phrases) != 1:
        return "two phrases in reply" if phrases else "no phrase in reply"
    key = _GUESS.search(guess)
    said_label = read_label(guess[key.end() :].strip().partition("\n")[0] if key else guess, labels)
    return Stated({said_label.label: _BY_WORDS[phrases.pop()]}) if said_label.label is not None else said_label.reason
