"""Label Studio's files: tasks with predictions and their labelling interface out, annotations back.

The formats are those of Label Studio's documentation: "Import pre-annotated data", "Label Studio JSON format of
annotated tasks", and the export format JSON-MIN as its converter writes it.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, get_args
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pcs_annotator.base.errors import TableError
from pcs_annotator.core.events import BLIND, Queue, reviewer_name
from pcs_annotator.core.outcome import CONFIDENCE, DECISION, LABEL, Outcome, input_names
from pcs_annotator.core.passages import Passage, candidates_of, written
from pcs_annotator.tables.passage_files import ANY_TYPE, gold_passages

MOST_BYTES = 1_000_000_000
MOST = 1e18  # of seconds and other numbers
REMEDY = "export the project as JSON or JSON-MIN, and give that file as it is"
QUESTION, TEXT = "label", "text"  # the names of what people answer and of what they read
ID, QUEUE, PROPOSED = "pcs_id", "pcs_queue", "pcs_proposed"
"""Names of values that travel with a row, so that what comes back says what the person saw."""
TAKEN = (TEXT, QUESTION, ID, LABEL, CONFIDENCE, DECISION, QUEUE, PROPOSED, "data")
"""Names that the user's columns cannot have."""
HOTKEYS = "1234567890qwetasdfgzxcvbyiopjklnm"  # the keys that Label Studio itself gives to choices, in this order
MOST_STARS = 10
MARKS = "labels"  # what Label Studio calls passages and their types
STEP = "/"  # between the levels of a tree's label
_FORMS = {"tree": "taxonomy", "number": "number", "passages": MARKS}
_REFERENCE = re.compile(r"\$(?=[\w\[\].{}])")
"""What Label Studio replaces by a value of the task, in every attribute that it shows."""
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class Control(NamedTuple):
    """A question of a project: a label of a run, or a variable of a codebook."""

    name: str = QUESTION
    kind: str = "one"
    labels: Sequence[str] = ()
    meanings: Mapping[str, str] = MappingProxyType({})
    instruction: str = ""
    part: str = ""  # which part of a codebook; with any number of labels, `variable=label`: answers are yes and no

    @property
    def applies(self) -> str:
        """Of a variable with any number of labels, the one that is asked about."""
        return self.part.partition("=")[2]

    @property
    def form(self) -> str:
        """How it is answered; a scale is a rating if its labels are 1, 2, 3 and so on."""
        stars = [str(star) for star in range(1, min(len(self.labels), MOST_STARS) + 1)]
        rating = self.kind == "scale" and list(self.labels) == stars
        return "rating" if rating else _FORMS.get(self.kind, "choices")

    def result(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return an answer as Label Studio stores it."""
        value: Any = list(labels)
        if self.form in ("rating", "number"):
            value = float(labels[0]) if self.form == "number" else int(labels[0])
        elif self.form == "taxonomy":
            value = [label.split(STEP) for label in labels]
        return {"from_name": self.name, "to_name": TEXT, "type": self.form, "value": {self.form: value}}

    def marks(self, text: str, passages: Mapping[Passage, float | None]) -> list[dict[str, Any]]:
        """Return passages of a text as Label Studio stores them, given how sure each is."""
        about = {"from_name": self.name, "to_name": TEXT, "type": MARKS}
        regions: list[dict[str, Any]] = []
        for passage, sure in passages.items():
            start, end, type_, _ = passage
            value = {"start": start, "end": end, "text": text[start:end], MARKS: [type_]}
            regions.append({"id": passage.name, **about, "value": value, "score": sure})
        return regions

    def add_to(self, view: Element) -> None:
        """Add the control to a labelling interface."""
        form = self.form
        ends = {"min": self.labels[0], "max": self.labels[-1]} if form == "number" else {}
        forms = {"rating": {"maxRating": str(len(self.labels))}, "taxonomy": {"leafsOnly": "true"}, "number": ends}
        details = forms.get(form, {"choice": "multiple" if self.kind == "many" else "single"})
        required = {} if form in ("number", MARKS) or self.kind == "many" else {"required": "true"}
        control = SubElement(view, form.capitalize(), {"name": self.name, "toName": TEXT, **details, **required})
        if form == "taxonomy":
            _add_branches(control, [label.split(STEP) for label in self.labels])
        for number, label in enumerate(self.labels if form in ("choices", MARKS) else ()):
            if _NOT_XML.search(label):
                raise TableError(f"label {label!r} has a character that XML cannot hold: rename the label without it")
            meaning = _shown(self.meanings.get(label, ""))
            alias = label if _REFERENCE.search(label) else ""  # shown differently, but stored as it is
            attributes = {
                "value": _shown(label),
                "hotkey": HOTKEYS[number : number + 1],
                "hint": meaning,
                "alias": alias,
            }
            kind = "Label" if form == MARKS else "Choice"
            SubElement(control, kind, {name: value for name, value in attributes.items() if value})

    def chosen(self, value: object) -> list[Any]:
        """Return the labels in an answer; JSON-MIN has it without its type."""
        answer = value.get(self.form) if isinstance(value, dict) else value
        if self.form in ("rating", "number"):
            number = _number(answer, least=-MOST)
            return [] if number is None else [f"{number:.12g}"]
        listed: list[Any] = answer if isinstance(answer, list) else [] if answer is None else [answer]
        if self.form == "taxonomy":
            return [STEP.join(map(str, path)) for path in listed]
        # Interfaces with nested choices list the way to each choice.
        return [choice[-1] if isinstance(choice, list) and choice else choice for choice in listed]

    def answered(self, values: Sequence[Any], text: str, where: str) -> str | None:
        """Return the label that was chosen, None without one; or the passages that were marked, as gold has them."""
        if self.form != MARKS:
            return self.only_label([label for value in values for label in self.chosen(value)], where)
        regions = [region for value in values for region in (value if isinstance(value, list) else [value])]
        return written(gold_passages(regions, text, ANY_TYPE, where) or (), ANY_TYPE)

    def only_label(self, labels: Sequence[Any], where: str) -> str | None:
        """Return the label that was chosen, None without one; several are an error."""
        if self.kind == "many":
            return "yes" if self.applies in labels else "no"
        label = _text(labels[0]) if labels else None
        if labels and (len(labels) > 1 or label is None):
            raise TableError(f"{where} has the labels {labels!r}: a row has one label; let people choose only one")
        return label


def labelling_interface(controls: Sequence[Control]) -> str:
    """Return the XML that a project needs to show tasks: the text, the questions and their labels."""
    view = Element("View")
    for control in controls:
        for line in filter(str.strip, control.instruction.splitlines()):
            SubElement(view, "Header", value=_shown(line))
        if control is controls[0]:
            SubElement(view, "Text", name=TEXT, value=f"${TEXT}")
        control.add_to(view)
    indent(view)
    return tostring(view, encoding="unicode") + "\n"


def _add_branches(parent: Element, paths: Sequence[Sequence[str]]) -> None:
    for first in dict.fromkeys(path[0] for path in paths if path):
        choice = SubElement(parent, "Choice", value=_shown(first.strip()))
        _add_branches(choice, [path[1:] for path in paths if path and path[0] == first])


def _shown(text: str) -> str:
    """Return a text as Label Studio shows it: a word joiner, without width, keeps `$5` from being a task's value."""
    return _REFERENCE.sub("$\u2060", _NOT_XML.sub(" ", text))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowToAnswer:
    """A row for people to answer in Label Studio."""

    text: str
    outcome: Outcome  # what the run says about it
    columns: Mapping[str, object] = field(default_factory=dict)  # the user's columns that go with it
    queue: Queue = "chosen"  # how it was chosen
    answers: Sequence[tuple[Control, Sequence[str]]] = ()  # the labels that are proposed for each question
    proposed: Mapping[str, str] = field(default_factory=dict)  # of a codebook, the label of each part
    # the passages that are proposed for each question, and how sure each is
    passages: Sequence[tuple[Control, Mapping[Passage, float | None]]] = ()

    def task(self, version: str) -> dict[str, Any]:
        """Return the row as a task; one that people judge blind has no prediction.

        The user's columns are renamed if the name is taken.
        """
        outcome = self.outcome
        data: dict[str, object] = {TEXT: self.text, ID: outcome.id, DECISION: outcome.decision, QUEUE: self.queue}
        if self.proposed and self.queue not in BLIND:
            data[PROPOSED] = self.proposed
        elif self.queue not in BLIND:
            data |= {LABEL: outcome.label, CONFIDENCE: outcome.label and outcome.confidence}
        proposals = () if self.queue in BLIND else self._proposals()
        predictions = [{"model_version": version, **proposal} for proposal in proposals]
        names = input_names(self.columns, set(TAKEN))
        data |= {names[name]: _plain(value) for name, value in self.columns.items()}
        return {"data": {name: value for name, value in data.items() if value is not None}, "predictions": predictions}

    def _proposals(self) -> Iterator[dict[str, Any]]:
        """Yield what models propose, if anything, with the confidence or, in a run without any, the label's score.

        The score of passages is that of the least sure one.
        """
        if self.passages:
            sure = [score for _, passages in self.passages for score in passages.values() if score is not None]
            result = [mark for control, passages in self.passages for mark in control.marks(self.text, passages)]
            result += [control.result(labels) for control, labels in self.answers if labels]
            yield {"score": min(sure, default=None), "result": result}
        elif (label := self.outcome.label) is not None:
            score = self.outcome.scores[label] if self.outcome.confidence is None else self.outcome.confidence
            answers = [control.result(labels) for control, labels in self.answers if labels]
            yield {"score": score, "result": answers if self.answers else [Control().result([label])]}


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def tasks_page(rows: Iterable[RowToAnswer], version: str) -> str:
    """Return tasks with predictions, in ASCII: Label Studio reads files in the encoding of its machine."""
    return json.dumps([row.task(version) for row in rows], indent=1, allow_nan=False) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudioAnswer:
    """What a person answered in Label Studio."""

    where: str  # file and task, for messages
    id: str
    text: str  # what they read
    label: str | None  # None if they skipped the row
    reviewer: str
    at: str | None = None  # in UTC, ISO 8601; None if the file does not say
    seconds: float | None = None  # how long it took
    proposed: str | None = None  # the label that they were shown
    confidence: float | None = None  # its confidence
    queue: Queue = "chosen"  # how the row was chosen


def read_answers(path: Path, control: Control = Control()) -> list[StudioAnswer]:  # noqa: B008  # a frozen value
    """Return the answers in a project's export, JSON or JSON-MIN; of one person on one task, the oldest first."""
    answers: list[StudioAnswer] = []
    for number, task in enumerate(_read_list(path), 1):
        where = f"{path.name}, number {number} in the list"
        try:
            where = f"{path.name}, task {task.get('id', number)}"
            answers += sorted(_of_task(task, where, control), key=lambda answer: answer.at or "")
        except (AttributeError, KeyError, TypeError) as error:  # a value of another kind than the format has there
            raise TableError(f"{where} is not what Label Studio writes ({error}): {REMEDY}") from error
    return answers


def _of_task(task: Mapping[str, Any], where: str, control: Control) -> Iterator[StudioAnswer]:
    data = task.get("data", task)
    if not isinstance(data.get(ID), str) or not isinstance(data.get(TEXT), str):
        missing = f"has no {ID} and {TEXT}, so `pcs exchange export` did not write it"
        raise TableError(f"{where} {missing}: export the project into which you imported the tasks of this run")
    if data is task:  # JSON-MIN has each annotation as a task of its own, without skipped ones
        if control.name in task:
            label = control.answered([task[control.name]], data[TEXT], where)
            yield _answer(task, task, where, label, task.get("annotator"), control)
        return
    for number, annotation in enumerate(_list(task.get("annotations")), 1):
        here = f"{where}, annotation {annotation.get('id', number)}"
        results = _list(annotation.get("result"))
        label = None if annotation.get("was_cancelled") is True else _label(results, here, control, data[TEXT])
        yield _answer(data, annotation, here, label, annotation.get("completed_by"), control)


def _label(results: Sequence[dict[str, Any]], where: str, control: Control, text: str) -> str | None:
    """Return the label that an annotation gives; None if it gives none."""
    alike = [result for result in results if result.get("type") == control.form]
    ours = [result for result in alike if result.get("from_name") == control.name] or ([] if control.part else alike)
    names = sorted({repr(result.get("from_name")) for result in ours})
    if len(names) > 1:
        raise TableError(f"{where} answers several questions ({', '.join(names)}): name the one to import {QUESTION!r}")
    return control.answered([dict(result["value"]) for result in ours], text, where)


def _answer(
    data: Mapping[str, Any],
    annotation: Mapping[str, Any],
    where: str,
    label: str | None,
    annotator: object,
    control: Control,
) -> StudioAnswer:
    # the email of a person if the export has it, else their number in Label Studio
    person = annotator if isinstance(annotator, dict) else {"email" if isinstance(annotator, str) else "id": annotator}
    email = reviewer_name(_text(person.get("email")) or "")
    return StudioAnswer(
        where=where,
        id=data[ID],
        text=data[TEXT],
        label=label,
        reviewer=email or f"label-studio:{person.get('id') or 'unknown'}",
        at=_moment(annotation.get("updated_at")) or _moment(annotation.get("created_at")),
        seconds=_number(annotation.get("lead_time")),
        proposed=_text((data.get(PROPOSED) or {}).get(control.part) if control.part else data.get(LABEL)),
        confidence=_number(data.get(CONFIDENCE)),
        queue=next((queue for queue in get_args(Queue) if queue == data.get(QUEUE)), "chosen"),
    )


def marked_rows(tasks: Sequence[Any], name: str) -> list[dict[str, Any]]:
    """Return the texts of a project in which people mark passages, as rows of a table; nothing for any other list.

    A row has the id of the task, its text, its other data, and for every `Labels` control a column of that name, with
    the passages that more than half of the people marked; an empty cell where nobody answered, or half of them mark a
    passage that the others do not.
    """
    try:
        marked = [task for task in tasks if task["data"].keys()]
        results = [part for task in marked for answer in _answers(task) for part in _list(answer["result"])]
        names = dict.fromkeys(part["from_name"] for part in results if part["type"] == MARKS)
    except (AttributeError, KeyError, TypeError):  # it is another list
        return []
    return [_marked_row(task, list(names), f"{name}, task {task.get('id')}") for task in tasks if names]


def _answers(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [answer for answer in _list(task["annotations"]) if answer.get("was_cancelled") is not True]


def _marked_row(task: Mapping[str, Any], names: Sequence[str], where: str) -> dict[str, Any]:
    data = task["data"]
    texts = [TEXT] if TEXT in data else [key for key, value in data.items() if isinstance(value, str)]
    if len(texts) != 1 or not isinstance(text := data[texts[0]], str):
        raise TableError(f"{where} has no text: call the data that people read {TEXT!r}")
    row = {"id": data.get(ID) or data.get("id") or task.get("id"), TEXT: text}
    row |= {key: value for key, value in data.items() if key not in (*TAKEN, *texts, "id")}
    for name in names:
        parts = [[part for part in answer["result"] if part.get("from_name") == name] for answer in _answers(task)]
        regions = [[part["value"] for part in answer] for answer in parts]
        row[name] = _majority([gold_passages(answer, text, ANY_TYPE, where) or () for answer in regions])
    return row


def _majority(marked: Sequence[Sequence[Passage]]) -> str | None:
    """Return the passages that more than half of people marked; None for a tie, and without people."""
    meant = candidates_of(Counter(passage for passages in marked for passage in passages), ANY_TYPE)
    counts = Counter(passage for passages in marked for passage in {meant[each] for each in passages})
    if not marked or any(2 * count == len(marked) for count in counts.values()):
        return None
    return written([passage for passage, count in counts.items() if 2 * count > len(marked)], ANY_TYPE)


def _read_list(path: Path) -> list[Any]:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise TableError(f"{path} has {size / 1e9:.1f} GB, at most {MOST_BYTES / 1e9:.0f} GB are read: split it")
        tasks = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror}): check its name and permissions") from error
    except (ValueError, RecursionError) as error:
        raise TableError(f"{path} is not valid JSON ({error}): {REMEDY}") from error
    if not isinstance(tasks, list):
        raise TableError(f"{path} has no list of tasks or records: {REMEDY}")
    return tasks


def _list(value: object) -> list[Any]:
    """Return a list of a file, where null is an empty one."""
    if not isinstance(value, list | None):
        raise TypeError(f"a {type(value).__name__} instead of a list")
    return value or []


def _text(value: object) -> str | None:
    """Return a text without what cannot be written as UTF-8; None for anything else."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _number(value: object, least: float = 0.0) -> float | None:
    """Return a number that is not too small or large, such as seconds; None for anything else."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and least <= value < MOST
    return float(value) if usable else None  # type: ignore[arg-type]  # it is a number


def _moment(value: object) -> str | None:
    """Return a time in UTC, ISO 8601; None for anything else."""
    try:
        moment = datetime.fromisoformat(value)  # type: ignore[arg-type]  # anything else is a TypeError
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (TypeError, ValueError, OverflowError):
        return None
