"""What annotators are asked to decide: items, the task, and closed sets of labels.

Labels are matched regardless of case, and exactly otherwise. Gold values that are probably no labels are refused.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from pcs_annotator.base.errors import ConfigError, LabelError
from pcs_annotator.base.text import did_you_mean
from pcs_annotator.core.passages import Extraction

MISSING = frozenset(["nan", "none", "null", "nil", "na", "n/a", "n.a.", "#n/a", "#na", "<na>", "nat"])
LARGEST_CODE = 10  # whole numbers up to here are codes, such as those of a scale, even if hardly any occurs twice
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
_BETWEEN_LABELS, _MAYBE_BETWEEN_LABELS = re.compile(r"[;|]"), re.compile(r"[,/+&]")
_LIST = re.compile(r"\[.*[,'\"].*\]", re.DOTALL)


def doubt_about(value: str, labels: Collection[str] = ()) -> str:
    """Return why a value is probably not a label, and what to do; empty if it may be one.

    `known` are values that are labels: a comma or slash between two of them joins labels, but is otherwise part of one.
    """
    if value.casefold() in MISSING:
        return "may mean that there is no label: empty such cells"
    parts, maybe = ([part.strip() for part in by.split(value)] for by in (_BETWEEN_LABELS, _MAYBE_BETWEEN_LABELS))
    names = {name.casefold() for name in labels}
    joined = len(list(filter(None, parts))) > 1 or (len(maybe) > 1 and all(part.casefold() in names for part in maybe))
    if joined or _LIST.fullmatch(value):
        return "looks like several labels in one cell, and a text gets one: keep one of them, or use kind = 'many'"
    return ""


def refuse_doubtful(gold: Sequence[str | None], rows: Sequence[str], naming: str) -> None:
    """Raise for the first gold value that is probably not a label.

    `rows` are what messages call the rows; `naming` is how the user can name the labels, so that nothing is guessed.
    """
    counts = Counter(value for value in gold if value is not None)
    measured = _measurement(counts)
    for value in counts:
        why = doubt_about(value, counts)
        if not why and value == measured:
            why = "looks like a measurement: turn numbers into classes"
        if why:
            where = rows[gold.index(value)]
            raise LabelError(f"{where}: {value!r} {why}, or {naming}, {value!r} among them if it is one")


def _measurement(counts: Mapping[str, int]) -> str | None:
    """Return a number that is not a code: a fraction, or a large one among whole numbers that hardly repeat."""
    numbers = {value: float(value.replace(",", ".")) for value in counts if _NUMBER.fullmatch(value)}
    repeated = sum(counts[value] for value in numbers) >= 2 * len(numbers)
    codes = [value_ for value_ in numbers.values() if value_.is_integer() and (repeated or 0 <= value_ <= LARGEST_CODE)]
    return next((value for value, number in numbers.items() if number not in codes), None)


MAX_LABELS = 5_000
MANY_LABELS = 50  # with more labels, a text is asked about a few, and nothing is learned about single labels
USUAL_CANDIDATES = 30
MOST_SEEN = 127  # a column with more values than this is not one of labels, unless they are named
_LINE_BREAK = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

BETWEEN = "\n\n⸺ ⸺ ⸺\n\n"  # between the two texts of a pair
PAIR_LABELS = ("a", "b", "tie")
_NOTHING_VISIBLE = " \t\r\n\f\v\x00\xa0\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufffd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One text to label. It carries no gold label, so that gold cannot leak into a prompt."""

    id: str
    text: str


class Example(NamedTuple):
    """A text with its label, shown to models before the text that they are asked about."""

    text: str
    label: str
    why: str = ""  # the reason for the label, in a few words

    @classmethod
    def of(cls, number: int, values: Mapping[str, str]) -> "Example":
        """Return the example in a table of settings; errors call it by its number."""
        unknown = [name for name in values if name not in cls._fields]
        if unknown or not {"text", "label"} <= values.keys():
            what = f"has {unknown[0]!r}" if unknown else "lacks a text or a label"
            raise ConfigError(f"example {number} {what}: it has a text, a label and, if you like, why")
        return cls(**values)


class Part(NamedTuple):
    """One of several questions that are asked about a text in one call."""

    name: str  # of the variable; the answer stands in a tag of that name
    instruction: str
    labels: tuple[str, ...]
    meanings: tuple[tuple[str, str], ...] = ()  # label and what it means, where a name is not enough
    many: bool = False  # whether all labels that apply are to be named


class AskedTogether(NamedTuple):
    """All questions of a call, and which of them is this task."""

    parts: tuple[Part, ...]
    name: str  # the variable of this task
    label: str = ""  # of a variable with several labels, the one that applies or not

    @property
    def own(self) -> Part:
        """The question of this task."""
        return next(part for part in self.parts if part.name == self.name)


@dataclass(frozen=True)
class Task:
    """An instruction, a closed set of labels and, optionally, what each label means, and examples.

    Attributes:
        instruction: What to decide, in a sentence or more.
        labels: The labels to choose from.
        meanings: What labels mean, where a name is not enough.
        wordings: Other instructions that ask for the same decision, for the relations `wording`, `wording:2`, ….
        examples: Texts with their labels, in every prompt.
        nearest: How many examples a prompt shows: those most like its text, never the text itself; 0 for all of them.
        together: What else is asked about a text in the same call, for models that can answer several questions.
        candidates: How many labels each text is asked about, those most like it; 0 for all of up to 50 labels, and 30
            of more.
        known: Texts with their labels by which candidates are found, beside the examples.
        among: All labels, if `labels` are the candidates for a text.
        pair: If every text is a pair, joined by `pair_text`: the order in which the two are shown, (0, 1) or (1, 0).
            The first shown is called like the first label, the other like the second one.
        number: Whether labels are the steps of a range, so that models answer with a number instead of choosing one.
        definitions: A sentence per label, which only the relation `definitions` shows.
        suggested: The label that somebody else is said to have given, after the text; empty for none.
        extraction: If models are to quote passages or a value: what is looked for; labels are the types of passages.

    Examples:
        >>> Task("How does the writer feel?", labels=["positive", "neutral", "negative"]).labels
        ('positive', 'neutral', 'negative')
    """

    instruction: str
    labels: Sequence[str]
    meanings: Mapping[str, str] = field(default_factory=dict)
    wordings: Sequence[str] = ()
    examples: Sequence[Example] = ()
    nearest: int = 0
    together: AskedTogether | None = None
    candidates: int = 0
    known: Sequence[Example] = ()
    among: Sequence[str] = ()
    pair: tuple[int, ...] = ()
    number: bool = False
    definitions: Mapping[str, str] = field(default_factory=dict, repr=False)
    suggested: str = field(default="", repr=False)
    extraction: Extraction | None = None

    def __post_init__(self) -> None:
        labels = check_labels(self.labels)
        if len(labels) < 2 and self.extraction is None:
            raise LabelError(f"a task needs at least two labels to choose from, got only {labels[0]!r}")
        if self.pair and len(labels) > len(PAIR_LABELS):
            raise LabelError(
                f"a pair has a label for each text and perhaps one more, as in a,b,tie; got {list(labels)}"
            )
        codes = label_lookup(labels)
        object.__setattr__(self, "labels", labels)
        for name in ("meanings", "definitions"):
            sentences: Mapping[str, str] = getattr(self, name)
            stray = [label for label in sentences if label.casefold() not in codes]
            if stray:
                raise LabelError(f"{name} are given for {stray}, which are not among the labels {list(labels)}")
            spelled = {labels[codes[label.casefold()]]: sentence for label, sentence in sentences.items()}
            object.__setattr__(self, name, spelled)
        object.__setattr__(self, "wordings", _check_wordings(self.wordings))
        if self.nearest < 0:
            raise ConfigError(f"nearest is {self.nearest}, must be 0, for all examples, or the number to show")
        for name in ("examples", "known"):
            numbered = enumerate(getattr(self, name), 1)
            among = None if self.extraction else self.among or labels
            checked = [_check_example(number, example, among) for number, example in numbered]
            object.__setattr__(self, name, tuple(checked))
        if self.extraction is None:
            candidate_count(self.candidates, len(labels))  # raises for fewer than two

    @property
    def asked(self) -> int:
        """How many labels each text is asked about; 0 for all of them."""
        return 0 if self.among or self.number or self.extraction else candidate_count(self.candidates, len(self.labels))

    def meant(self, label: str) -> str:
        """Return the label of a pair that an answer stands for: if the texts are swapped, the other one."""
        code = self.labels.index(label)
        return self.labels[self.pair[code]] if code < len(self.pair) else label

    def shown_pair(self, text: str) -> str:
        """Return the two texts of a pair as a model reads them."""
        texts = text.split(BETWEEN, 1)
        return "\n\n".join(f"{label}:\n{texts[at]}" for label, at in zip(self.labels, self.pair, strict=False))


def pair_text(first: str, second: str) -> str:
    """Return two texts as one, which is what is stored, compared and shown to people."""
    return BETWEEN.join(text.replace(BETWEEN, "\n\n").strip() for text in (first, second))


def candidate_count(wanted: int, labels: int) -> int:
    """Return how many labels each text is asked about; 0 for all."""
    if wanted < 0 or wanted == 1:
        raise ConfigError(f"candidates is {wanted}: at least two labels are needed to choose from, or 0 for the usual")
    count = wanted or (USUAL_CANDIDATES if labels > MANY_LABELS else 0)
    return count if count < labels else 0


def _check_example(number: int, example: Example, labels: Sequence[str] | None) -> Example:
    """Return an example with the label as the task spells it; where none are given, its label is a whole answer."""
    if not example.text.strip():
        raise ConfigError(f"example {number} has an empty text: write one, or leave it out")
    if labels is None:
        return example
    code = _positions(tuple(labels)).get(example.label.casefold())
    if code is None:
        raise LabelError(
            f"example {number} has the label {example.label!r}, which is not among {list(labels)}: correct one of them"
        )
    return example._replace(label=labels[code])


USUAL_QUESTION = "Which label fits the text best:"


def usual_instruction(labels: Sequence[str], kind: str = "one") -> str:
    """Return the instruction for a task whose user gives none; very many labels are not listed in it."""
    if kind == "passages":
        return f"Which passages of the text are one of these: {enumerated(labels)}?"
    if kind == "pair":
        return f"Which of the two texts is better: {enumerated(labels)}?"
    return (
        f"{USUAL_QUESTION} {enumerated(labels)}?" if len(labels) <= MANY_LABELS else "Which label fits the text best?"
    )


def enumerated(labels: Sequence[str]) -> str:
    """Return labels as they stand in a sentence: in quotes if one has a comma.

    >>> enumerated(["fake", "real"]), enumerated(["sports, games", "other"])
    ('fake, real', '"sports, games", "other"')
    """
    quote = '"' if any("," in label for label in labels) else ""
    return ", ".join(f"{quote}{label}{quote}" for label in labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrasing:
    """How a question about a text is put; relations of the question change it."""

    task: Task  # the task; its labels may be in another order, and its instruction worded differently
    one_message: bool = False  # whether instructions and text go into one user message, whatever the style
    examples: int = 1  # which set of examples is shown, from 1 on; 0 for none


def _check_wordings(wordings: Iterable[str]) -> tuple[str, ...]:
    if isinstance(wordings, str):
        raise ConfigError(f"wordings must be a list of instructions, not the single text {wordings!r}")
    checked = tuple(wordings)
    for number, wording in enumerate(checked, 1):
        if not isinstance(wording, str) or not wording.strip():
            raise ConfigError(
                f"wordings: number {number} is {wording!r}, must be an instruction: write one, or remove it"
            )
    return checked


def check_labels(labels: Iterable[str], *, seen: bool = False) -> tuple[str, ...]:
    """Return the labels as a tuple after checking that no two can be confused; fewer if they were seen, not named."""
    if isinstance(labels, str):
        raise LabelError(f"labels must be a list of names, not the single text {labels!r}")
    checked = tuple(labels)
    if not checked:
        raise LabelError("no labels given: name at least one")
    if seen and len(checked) > MOST_SEEN:
        raise LabelError(f"{len(checked)} labels seen, which is more than {MOST_SEEN}: name them if they are labels")
    if len(checked) > MAX_LABELS:
        raise LabelError(f"{len(checked)} labels given, at most {MAX_LABELS:,} are possible: merge some")
    spelled: dict[str, str] = {}
    for label in checked:
        if not isinstance(label, str) or not label.strip():
            raise LabelError(f"label {label!r} is not a name: labels are non-empty texts")
        twin = spelled.get(label.casefold())
        if twin == label:
            raise LabelError(f"label {label!r} is given twice: keep one of them")
        if twin is not None:
            raise LabelError(f"labels {twin!r} and {label!r} differ only in case: keep one of them")
        spelled[label.casefold()] = label
    return checked


def refuse_line_breaks(labels: Iterable[str]) -> None:
    """Raise if a label cannot be listed in a line of a prompt."""
    broken = [label for label in labels if _LINE_BREAK.search(label)]
    if broken:
        raise LabelError(f"label {broken[0]!r} has a line break or a control character: write it in one line")


def whole_number(label: str) -> str:
    """Return a label that is a whole number without the `.0` that pandas adds in a column with empty cells.

    >>> whole_number("6.0"), whole_number("6.5"), whole_number("version 6.0")
    ('6', '6.5', 'version 6.0')
    """
    return label[:-2] if label.endswith(".0") and label[:-2].removeprefix("-").isdecimal() else label


def label_lookup(labels: Sequence[str]) -> dict[str, int]:
    """Return case-folded label → position; a whole number is known with `.0` and without."""
    exact = {label.casefold(): position for position, label in enumerate(labels)}
    whole = {whole_number(label): position for label, position in exact.items()}
    numbers = {label: position for label, position in whole.items() if label.removeprefix("-").isdecimal()}
    return {**{f"{label}.0": position for label, position in numbers.items()}, **numbers, **exact}


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Return labels in alphabetical order, or in that of numbers if they all are numbers."""
    listed = tuple(labels)
    return tuple(sorted(listed, key=int)) if all(map(str.isdecimal, listed)) else tuple(sorted(listed))


def label_code(value: str, labels: Sequence[str], where: str) -> int:
    """Return the position of a label; one outside the set, found at `where`, is an error."""
    code = _positions(tuple(labels)).get(value.casefold())
    if code is None:
        raise unknown_label(value, labels, where)
    return code


_positions = lru_cache(maxsize=64)(label_lookup)


def unknown_label(value: str, labels: Sequence[str], where: str) -> LabelError:
    """Return the error for a label outside the set, with the place and the likely cause."""
    spaced = label_lookup(labels).get(value.strip().casefold())
    hint = f" (remove the spaces around {labels[spaced]!r})" if spaced is not None else ""
    shown = labels if len(labels) <= MANY_LABELS else (*labels[:2], "…", labels[-1])
    listed = ", ".join(repr(label) for label in shown)
    doubt = doubt_about(value, labels)
    remedy = f"; it {doubt}, or add it to the labels" if doubt else ""
    alike = "" if spaced is not None or doubt else did_you_mean(value, labels)
    asked = f"; {alike.strip()}" if alike else ""
    return LabelError(f"{where}: {value!r} is not one of the labels {listed}{hint}{remedy}{asked}")


def is_empty(text: str) -> bool:
    """Tell whether nothing in a text can be seen, so that there is nothing to ask about."""
    return not text.strip().strip(_NOTHING_VISIBLE)
