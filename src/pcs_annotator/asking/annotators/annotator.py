"""One model with one prompt: from a text to a question, from a reply to a vote."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache

from pcs_annotator.asking.annotators.elicitation import Elicitation, Messages, Stated, elicitation_of
from pcs_annotator.asking.annotators.extraction import EXTRACTION_TOKENS, answer_form, read_quotations
from pcs_annotator.asking.annotators.grading import IN_PROSE, Graded, grade
from pcs_annotator.asking.annotators.length import estimate_tokens, fit_text
from pcs_annotator.asking.annotators.prompt import (
    AnswerFormat,
    OtherAnswer,
    PromptStyle,
    build_messages,
    question_parts,
    task_prompt,
)
from pcs_annotator.asking.annotators.reply import TOKENS_PER_PART, read_label, read_number, read_part
from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import warn_user
from pcs_annotator.core.chat import (
    Answers,
    ChatModel,
    Constraint,
    Reply,
    Request,
    gets_no_examples,
    identity_of,
    sendable,
)
from pcs_annotator.core.elicitations import base_annotator, elicited_name
from pcs_annotator.core.task import BETWEEN, Task, is_empty
from pcs_annotator.core.votes import Vote
from pcs_annotator.models.logprobs import part_of

# Room for a tag and a sentence around it; guesses and their probabilities take lines.
USUAL_TOKENS, ELICITED_TOKENS = 64, 256
_ANSWER_TOKENS = 256  # reserved for an answer without a limit
_FRAME_TOKENS = 96  # reserved for markers, roles and the server's chat template
_SHORTEST_ANSWER = 16
_FEWEST_ALTERNATIVES, _OTHER_SPELLINGS = 5, 2  # tokens to ask for: at least, and beyond the labels
_SIGNS_OF_NUMBERS = "0123456789.,"
_prompt_tokens = lru_cache(maxsize=256)(estimate_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The request for one text, the text as sent, how many of its characters did not fit, and the task as asked."""

    request: Request
    text: str
    cut: int
    task: Task


@dataclass(frozen=True)
class Annotator:
    """One model with one prompt.

    Attributes:
        model: Anything that `resolve_model` accepts: `provider:model`, a URL, a chat model object, a function.
        elicitation: How to ask for probabilities, such as `1s-top-2`, `2s-top-2` or `ling-1s`; None for a
            label alone.
        name: The annotator's name in votes; by default the model's name. The elicitation is appended to it.
        version: Which version of the model this is: answers of other versions in the ledger are not used. For a
            function or an object it stands for everything in it that could change, and with a `name` of your own for
            the function's name as well; by default, changes are noticed as far as they can be seen.
        style: `plain` for models without a system role.
        max_tokens: Maximum length of an answer, None for no limit; by default more if probabilities are asked for. A
            model that reasons in its answer needs more, such as 4096.
        constrain: Whether to restrict answers to the labels, for models that support it.
        answers: Whether to ask for log-probabilities, which make a graded vote; None for what the run says.

    Examples:
        >>> Annotator("groq:llama-3.1-8b-instant").name
        'groq:llama-3.1-8b-instant'
        >>> Annotator("groq:llama-3.1-8b-instant", elicitation="ling-1s").name
        'groq:llama-3.1-8b-instant/ling-1s'
    """

    model: object
    _: KW_ONLY
    elicitation: str | None = None
    name: str = ""
    style: PromptStyle = "chat"
    max_tokens: int | None = USUAL_TOKENS
    constrain: bool = True
    answers: Answers | None = None
    version: str = ""

    def __repr__(self) -> str:
        changed = brief(self, but=type(self)(self.model)).removeprefix("Annotator(").removesuffix(")")
        return f"Annotator({', '.join([repr(self.model), *([changed] if changed else [])])})"

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", _name_of(self.model))
        if self.elicitation is None:
            return
        object.__setattr__(self, "name", elicited_name(base_annotator(self.name), self.elicitation))
        if self.max_tokens == USUAL_TOKENS:
            object.__setattr__(self, "max_tokens", ELICITED_TOKENS)

    def identity(self, model: ChatModel) -> str:
        """Return what ledger keys call the model that `self.model` resolves to."""
        if not self.version:
            return identity_of(model)
        described = base_annotator(self.name)
        if isinstance(self.model, str) or described == _name_of(self.model):
            return f"{model.name}@{self.version}"
        return f"{model.name.partition(':')[0]}:{described}@{self.version}"

    def question(self, task: Task, text: str, model: ChatModel) -> Question | Vote:
        """Return what to ask the model of this annotator about a text, or a vote if there is nothing to ask."""
        text = sendable(text)
        if is_empty(text):
            return Vote(label=None, reason="empty text", asked=False)
        if task.pair:
            if any(map(is_empty, (text + BETWEEN).split(BETWEEN)[:2])):
                return Vote(label=None, reason="not a pair of texts", asked=False)
            shown = [
                part._replace(text=task.shown_pair(part.text), label=task.meant(part.label)) for part in task.examples
            ]
            task = replace(task, examples=shown)
        plain = self.elicitation is None
        if task.together is not None:
            joint = self._answers_several(model)
            task = replace(task, examples=(), nearest=0) if joint else replace(task, together=None)
        free = task.together or task.number or task.extraction
        constrained = plain and self.constrain and model.can_constrain and not free
        answer: AnswerFormat | OtherAnswer = "bare" if constrained else "tag"
        answer, cut = answer_form(task.extraction) if task.extraction else answer, 0
        if task.examples and gets_no_examples(model):
            task = replace(task, examples=(), nearest=0)
        if model.context_tokens is not None:
            if task.examples:
                task = self._with_room(task, text, answer, model.context_tokens)
            room = model.context_tokens - self._reserved(task, self._fixed_part(task, answer))
            parts = text.split(BETWEEN, 1) if task.pair else [text]
            fitted = [fit_text(part, room // len(parts)) for part in parts]
            text, cut = BETWEEN.join(part.text for part in fitted), sum(part.cut for part in fitted)
            if not text.strip():
                return Vote(label=None, reason="no room for the text in the model's context", asked=False, cut=cut)
        if task.pair:
            text = task.shown_pair(text)
        request = Request(
            messages=self._messages(task, text, answer),
            max_tokens=self._tokens_for(task),
            constraint=Constraint(choices=tuple(task.labels)) if constrained else None,
            logprobs=self.alternatives(task, model),
            parts=question_parts(task, text, answer)
            if plain and not task.together and not isinstance(answer, OtherAnswer)
            else None,
        )
        return Question(request=request, text=text, cut=cut, task=task)

    def parse_reply(self, question: Question, replies: Sequence[Reply], model: ChatModel) -> Question | Vote:
        """Return the vote in the replies to all questions about a text so far, or the next question."""
        last, cut, task = replies[-1], question.cut, question.task
        if last.too_long:
            return Vote(label=None, reason="reply too long to read", cut=cut)
        constrained = question.request.constraint is not None
        if self.elicitation is None:
            return _vote(last, question)
        if last.finish == "filter":
            return Vote(label=None, reason="filtered by the provider", cut=cut)
        talk = _conversation(self.elicitation, self.style)
        parsed = talk.next(task, question.text, [_complete_text(reply) for reply in replies])
        if isinstance(parsed, Stated):
            return Vote(label=parsed.guess, cut=cut, stated=parsed.over(task.labels))
        if isinstance(parsed, str):
            return Vote(label=None, reason="answer cut off" if last.finish == "length" else parsed, cut=cut)
        request = Request(
            messages=parsed,
            max_tokens=self._tokens_after(parsed, model),
            constraint=Constraint(choices=("A", "B")) if constrained else None,
        )
        return replace(question, request=request)

    def alternatives(self, task: Task, model: ChatModel) -> int:
        """Return how many tokens to ask for: one for each label, and room for other spellings of them; 0 for none."""
        listed = [task.labels]
        if task.together is not None and self._answers_several(model):
            # lists of labels have no grades, and models in this process grade only choices
            in_process = getattr(model, "in_process", False)
            listed = [part.labels for part in task.together.parts if not (part.many or in_process)]
        graded = self.elicitation is None and self.answers != "hard" and model.can_grade
        if not (graded and listed) or task.among or task.number or task.extraction:
            return 0
        return max(_FEWEST_ALTERNATIVES, *(len(labels) + _OTHER_SPELLINGS for labels in listed))

    def _answers_several(self, model: ChatModel) -> bool:
        return self.elicitation is None and not gets_no_examples(model)

    def _messages(self, task: Task, text: str, answer: AnswerFormat | OtherAnswer) -> Messages:
        if self.elicitation is None:
            return build_messages(task, text, style=self.style, answer=answer)
        return _conversation(self.elicitation, self.style).first(task, text)

    def _fixed_part(self, task: Task, answer: AnswerFormat | OtherAnswer) -> str:
        if self.elicitation is None:
            return task_prompt(task, answer)
        return "\n".join(message.content for message in self._messages(task, "", answer))

    def _with_room(self, task: Task, text: str, answer: AnswerFormat | OtherAnswer, context: int) -> Task:
        """Return the task with as many examples as leave room for the text, or for a part of a long one."""
        wanted, all_of_them = min(estimate_tokens(text), context // 2), len(task.examples)
        while task.examples and context - self._reserved(task, self._fixed_part(task, answer)) < wanted:
            task = replace(task, examples=task.examples[:-1])
        if len(task.examples) < all_of_them:
            _warn_of_fewer_examples(self.name)
        return task

    def _tokens_for(self, task: Task) -> int | None:
        if self.max_tokens is None:
            return None
        if task.extraction and self.max_tokens == USUAL_TOKENS:
            return EXTRACTION_TOKENS
        return self.max_tokens + TOKENS_PER_PART * (len(task.together.parts) - 1 if task.together else 0)

    def _tokens_after(self, messages: Messages, model: ChatModel) -> int | None:
        """Return the limit for the answer to a follow-up question, which must be shorter in a small context."""
        most = self.max_tokens
        if most is None or model.context_tokens is None:
            return most
        room = model.context_tokens - _FRAME_TOKENS - sum(estimate_tokens(message.content) for message in messages)
        return min(most, max(room, _SHORTEST_ANSWER))

    def _reserved(self, task: Task, prompt: str) -> int:
        tokens = self._tokens_for(task) if task.extraction else self.max_tokens
        answer = _ANSWER_TOKENS if tokens is None else tokens
        return _prompt_tokens(prompt) + answer + _FRAME_TOKENS


@lru_cache(maxsize=64)
def _warn_of_fewer_examples(model: str) -> None:
    """Warn, once for each model, that not all examples fit."""
    remedy = "give fewer or shorter ones"
    warn_user(f"{model} has too little room for all examples, so it gets fewer with long texts: {remedy}")


def _vote(reply: Reply, question: Question) -> Vote:
    """Return the vote in a reply: a label, with grades if they were requested, or a silence with its reason."""
    cut, task = question.cut, question.task
    if reply.finish == "filter":
        return Vote(label=None, reason="filtered by the provider", cut=cut)
    seen = question.text, question.request.messages
    labels = task.among or task.labels  # a label that is not a candidate is an answer too
    if task.extraction:
        quoted = read_quotations(reply.text, task.extraction)
        return Vote(label=None, reason=quoted, cut=cut) if isinstance(quoted, str) else Vote(label=labels[0], cut=cut)
    if task.number:
        parsed = read_number(reply.text, labels)
    else:
        parsed = read_part(reply.text, task.together, *seen) if task.together else read_label(reply.text, labels, *seen)
    if parsed.label is None:
        return Vote(label=None, reason="answer cut off" if reply.finish == "length" else parsed.reason, cut=cut)
    if not question.request.logprobs or (task.together and task.together.own.many):
        return Vote(label=parsed.label, cut=cut)
    graded = Graded(None, IN_PROSE)
    if parsed.how in ("bare", "tag", "json"):
        positions = part_of(reply.logprobs, task.together.name) if task.together else reply.logprobs
        graded = grade(positions, tuple(task.labels), parsed.label)
    return Vote(label=parsed.label, cut=cut, grades=graded.grades, remark=graded.remark)


def _complete_text(reply: Reply) -> str:
    # "P1: 0." may be the start of "P1: 0.9"
    return reply.text.rstrip(_SIGNS_OF_NUMBERS) if reply.finish == "length" else reply.text


@lru_cache(maxsize=64)
def _conversation(kind: str, style: PromptStyle) -> Elicitation:
    return replace(elicitation_of(kind), style=style)


def _name_of(model: object) -> str:
    if isinstance(model, str):
        return model
    names = (getattr(model, attribute, None) for attribute in ("name", "__name__"))
    return next((name for name in names if isinstance(name, str) and name), type(model).__name__)
