"""One model with one prompt and fixed sampling: from a text to a question, from a reply to a vote."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import lru_cache

from pcs_annotator.asking.annotators.length import CutPolicy, estimate_tokens, fit_text
from pcs_annotator.asking.annotators.prompt import AnswerFormat, PromptStyle, build_messages, sendable, task_prompt
from pcs_annotator.asking.annotators.reply import read_label
from pcs_annotator.asking.models.base import ChatModel, Constraint, Reply, Request, Sampling
from pcs_annotator.core.task import Task
from pcs_annotator.core.vote import Vote

# Temperature 0, so that a run can be repeated; 64 tokens leave room for a tag and a sentence around it. A model that
# thinks aloud needs more: `Sampling(max_tokens=4096)`.
DEFAULT_SAMPLING = Sampling(temperature=0.0, max_tokens=64)
# For an answer whose length is left to the server.
_ANSWER_TOKENS = 256
# Markers, roles and the server's chat template.
_FRAME_TOKENS = 96
_NOTHING_VISIBLE = " \t\r\n\f\v\x00\xa0\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to send for one text.

    Attributes:
        request: Goes to the model.
        text: The text as it is sent, after cutting.
        cut: Characters of the text that did not fit and were left out.
    """

    request: Request
    text: str
    cut: int


@dataclass(frozen=True)
class Annotator:
    """One model with one prompt and fixed sampling.

    Attributes:
        model: Anything a model can be made of: `provider:model`, a URL, a chat model object, a callable.
        name: Names the annotator among votes; by default what the model is called.
        style: `plain` for models that know no system role.
        sampling: How answers are drawn. Several draws of one question differ in the ledger, not in the prompt.
        cut: Which part of a text stays when it is too long for the model.
        constrain: Whether a model that can be held to the labels is.

    Examples:
        >>> Annotator("groq:llama-3.1-8b-instant").name
        'groq:llama-3.1-8b-instant'
    """

    model: object
    _: KW_ONLY
    name: str = ""
    style: PromptStyle = "chat"
    sampling: Sampling = DEFAULT_SAMPLING
    cut: CutPolicy = "head+tail"
    constrain: bool = True

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", _name_of(self.model))

    def question(self, task: Task, text: str, model: ChatModel) -> Question | Vote:
        """Return what to ask the model about a text, or a silent vote when there is nothing to ask.

        Args:
            task: What to decide.
            text: The text to label.
            model: The model that `self.model` stands for.
        """
        text = sendable(text)
        if not text.strip().strip(_NOTHING_VISIBLE + "\ufffd"):
            return Vote(label=None, reason="empty text", asked=False)
        constrained = self.constrain and model.can_constrain
        answer: AnswerFormat = "bare" if constrained else "tag"
        cut = 0
        if model.context_tokens is not None:
            room = model.context_tokens - self._reserved(task_prompt(task, answer))
            text, cut = fit_text(text, room, self.cut)
            if not text.strip():
                return Vote(label=None, reason="no room for the text in the model's context", asked=False, cut=cut)
        request = Request(
            messages=build_messages(task, text, style=self.style, answer=answer),
            sampling=self.sampling,
            constraint=Constraint(choices=task.labels) if constrained else None,
        )
        return Question(request=request, text=text, cut=cut)

    def _reserved(self, prompt: str) -> int:
        answer = _ANSWER_TOKENS if self.sampling.max_tokens is None else self.sampling.max_tokens
        return _prompt_tokens(prompt) + answer + _FRAME_TOKENS

    @staticmethod
    def vote(reply: Reply, task: Task, text: str, cut: int = 0) -> Vote:
        """Return what a reply says: a label, or a silence with its reason.

        Args:
            reply: The model's reply.
            task: What was to decide.
            text: The text that was asked about, so that quoting it is not taken for an answer.
            cut: Characters of the text that were left out.
        """
        if reply.finish == "filter":
            return Vote(label=None, reason="filtered by the provider", cut=cut)
        reading = read_label(reply.text, task.labels, text)
        if reading.label is None and reply.finish == "length":
            return Vote(label=None, reason="answer cut off", cut=cut)
        return Vote(label=reading.label, reason=reading.reason, cut=cut)


@lru_cache(maxsize=256)
def _prompt_tokens(prompt: str) -> int:
    return estimate_tokens(prompt)


def _name_of(model: object) -> str:
    if isinstance(model, str):
        return model
    for attribute in ("name", "__name__"):
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(model).__name__
