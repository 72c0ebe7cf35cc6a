"""P(True) of Kadavath et al. 2022: the model proposes a label, then judges whether it is right."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pcs_annotator.asking.annotators.elicitations.base import Elicitation, Messages, Stated, elicitation, followed_up
from pcs_annotator.asking.annotators.prompt import AnswerFormat, build_messages
from pcs_annotator.asking.annotators.quotation import own_words
from pcs_annotator.asking.annotators.reply import read_label, without_reasoning
from pcs_annotator.asking.annotators.vocabulary import vocabulary
from pcs_annotator.core.elicitations import P_TRUE
from pcs_annotator.core.task import Task

_LETTER = re.compile(r"(?<!\w)\(?([AB])\)|\A\W*+([ABab])\W*+\Z")
_TRUE, _FALSE = ("True", "yes", "correct", "right"), ("False", "no", "incorrect", "wrong")


@elicitation("p-true")
@dataclass(frozen=True, slots=True, kw_only=True)
class PTrue(Elicitation):
    """A label, then whether it is right: 1 for true, 0 for false; `judging` averages draws.

    The label has the same form as for the plain annotator, so that the first call is paid for once.
    """

    name: ClassVar[str] = P_TRUE
    answer: AnswerFormat = "tag"

    def first(self, task: Task, text: str) -> Messages:
        """Return the question for a plain label."""
        return build_messages(task, text, style=self.style, answer=self.answer)

    def read(self, task: Task, text: str, question: Messages, replies: Sequence[str]) -> Messages | Stated | str:
        """Return the question of whether the label is right, then the probability in the replies."""
        said = read_label(replies[0], task.labels, text, question)
        label = said.label
        if label is None:
            return said.reason
        if len(replies) > 1:
            verdict = read_verdict(own_words(replies[1], text, question))
            return verdict if isinstance(verdict, str) else Stated({label: float(verdict)})
        proposed = f"<label>{label}</label>" if self.answer == "tag" else label
        verdict = "Is it right?\n(A) True\n(B) False\nAnswer with A or B and nothing else."
        return followed_up(question, proposed, f"The proposed label is: {label}\n{verdict}")


def read_verdict(reply: str) -> bool | str:
    """Return whether a reply is A (true) or B (false), or the reason why it is neither.

    >>> read_verdict("(A) True"), read_verdict("The label is false."), read_verdict("(A) or (B)?")
    (True, False, 'says both true and false')
    """
    said = without_reasoning(reply)
    verdicts = {(found[1] or found[2]) in "Aa" for found in _LETTER.finditer(said)}
    word = read_label(said, ("True", "False")).label or vocabulary(_TRUE + _FALSE).match(said)
    if word is not None:
        verdicts.add(word in _TRUE)
    if len(verdicts) != 1:
        return "says both true and false" if verdicts else "neither true nor false in reply"
    return verdicts.pop()
