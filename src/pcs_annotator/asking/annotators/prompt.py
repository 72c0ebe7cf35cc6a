"""Messages that ask a model for one label.

The first part has the instructions and is the same for every text of a task, so that providers can cache it. The text
comes last, between two lines with a marker that its author cannot know.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, NamedTuple

from pcs_annotator.core.chat import Message, QuestionParts, sendable
from pcs_annotator.core.passages import VALUE
from pcs_annotator.core.task import Example, Part, Task
from pcs_annotator.relations.phrases import Phrases, all_phrases, phrases_around

PromptStyle = Literal["chat", "plain"]
AnswerFormat = Literal["tag", "bare"]

# The same key for all users, so that the same question has the same key in every ledger. It need not be secret: the
# marker depends on the text, and a text that contains its own marker gets another one.
MARKER_KEY = b"pcs-annotator/1"
MARKER = re.compile(r"\[text [0-9a-f]{12}\]", re.IGNORECASE)
_LONGEST_MENU = 10
_LABEL_TAG = re.compile(r"<\s*+/?\s*+label\s*+>", re.IGNORECASE)

_FULL_STOPS = ".。।"
NOTHING = "none"


class OtherAnswer(NamedTuple):
    """A form of answer that is not just a label."""

    wanted: str  # what to answer, for the part that is the same for every text
    last: str  # what to answer, in a few words, after the text
    role: str = ""  # what the model does, and that the text is data, where it does not label the text
    data: str = ""


class _FixedPart(NamedTuple):
    """The part of a prompt that is the same for every text of a task, what it says of the task, and what follows it."""

    content: str
    instruction: str
    menu: str
    fenced: str  # names the marker of the lines around the text
    last_word: str  # what to answer, after the text


def frame_sentences() -> Iterator[str]:
    """Yield the sentences that are in every prompt, in all languages: a reply that has one of them repeats it."""
    for phrases in all_phrases().values():
        yield from (phrases.role, phrases.data, phrases.fenced, phrases.tag, phrases.bare)


def build_messages(
    task: Task, text: str, *, style: PromptStyle = "chat", answer: AnswerFormat | OtherAnswer = "tag"
) -> tuple[Message, ...]:
    """Return the messages that ask for the label of a text; the same question always gives the same messages.

    The sentences around the instruction are in its language where they are written in it, else in English.

    Args:
        task: What to decide.
        text: The text to label; characters that cannot be sent (lone surrogates, NUL) are replaced by U+FFFD.
        style: `chat` puts the fixed part into a system message, `plain` puts everything into one user message.
        answer: `tag` asks for `<label>…</label>`; `bare` for the label alone, for models restricted to the labels; or
            another form of answer.
    """
    fixed, _, _, fenced, last_word = _fixed_part(task, answer)
    shown = _examples(tuple(task.examples), fenced, last_word, answer) if task.examples else ()
    start = f"{fenced} "
    if style == "plain":
        start = "\n\n".join([fixed, *(message.content for message in shown), start])
    asked = start + _between_markers(text, " ".join(filter(None, (_suggestion(task), last_word))))
    shared = 0 if task.among else len(start) if not task.nearest else len(fixed) if style == "plain" else 0
    last = Message("user", asked, shared=shared)
    return (last,) if style == "plain" else (Message("system", fixed), *shown, last)


@lru_cache(maxsize=256)
def _examples(
    examples: tuple[Example, ...], fenced: str, last_word: str, answer: AnswerFormat | OtherAnswer
) -> tuple[Message, ...]:
    """Return examples as questions and answers; models restricted to the labels give no reasons."""
    turns = []
    for example in examples:
        turns.append(Message("user", f"{fenced} {_between_markers(example.text, last_word)}"))
        label = f"<label>{example.label}</label>" if answer == "tag" else example.label
        turns.append(Message("assistant", f"{label} {sendable(example.why)}".strip() if answer == "tag" else label))
    return tuple(turns)


def question_parts(task: Task, text: str, answer: AnswerFormat) -> QuestionParts:
    """Return what the messages that ask for the label of a text are made from."""
    fixed = _fixed_part(task, answer)
    instruction = " ".join(filter(None, (fixed.instruction, _suggestion(task))))
    return QuestionParts(instruction, fixed.menu, sendable(text))


def _suggestion(task: Task) -> str:
    """Return the sentence that somebody else gave a label; it has nothing of the text, and comes after its marker."""
    if not task.suggested:
        return ""
    return sendable(phrases_around(task.instruction, task.labels).suggested.replace("{label}", task.suggested))


def task_prompt(task: Task, answer: AnswerFormat | OtherAnswer = "tag") -> str:
    """Return the part of the prompt before the text: the same for every text, unless examples are chosen for it."""
    fixed = _fixed_part(task, answer)
    shown = _examples(tuple(task.examples), fixed.fenced, fixed.last_word, answer) if task.examples else ()
    return "\n\n".join([fixed.content, *(message.content for message in shown)])


def _fixed_part(task: Task, answer: AnswerFormat | OtherAnswer) -> _FixedPart:
    if task.together is not None:
        return _joint_part(task.together.parts)
    return _make_fixed_part(task.instruction, tuple(task.labels), tuple(task.meanings.items()), task.number, answer)


@lru_cache(maxsize=64)
def _joint_part(parts: tuple[Part, ...]) -> _FixedPart:
    """Return the part of a prompt with several questions, each with its labels, and a line of the answer for each."""
    phrases = phrases_around(parts[0].instruction, parts[0].labels)
    listed = []
    for part in parts:
        asked = f"{part.instruction.strip()} {phrases.every}" if part.many else part.instruction.strip()
        listed.append(f"<{part.name}>: {asked}\n{_menu(part.labels, dict(part.meanings))}")
    questions = sendable("\n\n".join(listed))
    lines = [f"<{part.name}>{'…; …' if part.many else '…'}</{part.name}>" for part in parts]
    wanted = "\n".join([phrases.lines, *lines])
    content = "\n\n".join((phrases.role, questions, wanted, phrases.data))
    return _FixedPart(content, questions, "", phrases.fenced, f"{phrases.answer} {' '.join(lines)}")


@lru_cache(maxsize=256)
def _make_fixed_part(
    instruction: str,
    labels: tuple[str, ...],
    meanings: tuple[tuple[str, str], ...],
    number: bool,
    answer: AnswerFormat | OtherAnswer,
) -> _FixedPart:
    listed = (f"a number from {labels[0]} to {labels[-1]}",) if number else labels
    phrases, around = phrases_around(instruction, listed), phrases_around(instruction, labels)
    menu = sendable(_menu(listed, dict(meanings)))
    if answer == "tag":
        wanted = f"{phrases.tag.rstrip(_FULL_STOPS)}: {_alternatives(listed, phrases)}."
    else:
        # an instruction that shows tags would contradict an answer without them
        instruction = _LABEL_TAG.sub("", instruction)
        wanted = answer.wanted if isinstance(answer, OtherAnswer) else _last_word(phrases, answer)
    instruction = sendable(instruction.strip())
    listed_labels = "" if labels == (VALUE,) else f"{phrases.labels}\n{menu}"  # a value is not chosen from a list
    role, data = (answer.role, answer.data) if isinstance(answer, OtherAnswer) else ("", "")
    asked = filter(None, (role or phrases.role, instruction, listed_labels, sendable(wanted), data or phrases.data))
    return _FixedPart("\n\n".join(asked), instruction, menu, around.fenced, _last_word(around, answer))


def _menu(labels: Sequence[str], meant: Mapping[str, str]) -> str:
    return "\n".join(f"- {label}: {meant[label]}" if label in meant else f"- {label}" for label in labels)


def _last_word(phrases: Phrases, answer: AnswerFormat | OtherAnswer) -> str:
    if isinstance(answer, OtherAnswer):
        return answer.last
    return phrases.tag if answer == "tag" else phrases.bare


def _alternatives(labels: tuple[str, ...], phrases: Phrases) -> str:
    # Joined by commas and the language's "or", so that `read_label` can distinguish a repeated prompt from a decision.
    if len(labels) == 1 or len(labels) > _LONGEST_MENU:  # a number is not listed
        return phrases.inside
    tags = [f"<label>{label}</label>" for label in labels]
    return f"{', '.join(tags[:-1])}{phrases.joint}{tags[-1]}"


def _between_markers(text: str, last_word: str) -> str:
    """Return a text between two lines with its marker, which is named before, and what to answer after it."""
    text = sendable(text)
    content, attempt, marker = text.encode(), 0, ""
    while not marker or marker in text:
        marker = blake2b(content, digest_size=6, key=MARKER_KEY, person=b"%d" % attempt).hexdigest()
        attempt += 1
    marker = f"[text {marker}]"
    return f"{marker}\n{marker}\n{text}\n{marker}\n\n{last_word}"
