"""Label Studio's files: tasks with predictions and their labelling interface out, annotations back.

The formats are those of Label Studio's documentation: "Import pre-annotated data", "Label Studio JSON format of
annotated tasks", and the export format JSON-MIN as its converter writes it.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, get_args
from xml.sax.saxutils import quoteattr

from pcs_annotator.base.errors import TableError
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.result_names import CONFIDENCE, DECISION, LABEL, input_names
from pcs_annotator.core.review import BLIND, Queue, reviewer_name
from pcs_annotator.tables.files import atomic_path

T = TypeVar("T")
MOST_BYTES = 1_000_000_000
REMEDY = "export the project as JSON or JSON-MIN, and give that file as it is"
QUESTION, TEXT = "label", "text"  # the names of what people answer and of what they read
ID, QUEUE, PROPOSED = "pcs_id", "pcs_queue", "pcs_proposed"
"""Names of values that travel with a row, so that what comes back says what the person saw."""
TAKEN = (TEXT, QUESTION, ID, LABEL, CONFIDENCE, DECISION, QUEUE, PROPOSED, "data")
"""Names that the user's columns cannot have."""
HOTKEYS = "1234567890qwetasdfgzxcvbyiopjklnm"  # the keys that Label Studio itself gives to choices, in this order
_REFERENCE = re.compile(r"\$(?=[\w\[\].{}])")
"""What Label Studio replaces by a value of the task, in every attribute that it shows."""
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


MOST_STARS = 10
STEP = "/"  # between the levels of a tree's label


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
        return "rating" if rating else {"tree": "taxonomy", "number": "number"}.get(self.kind, "choices")

    def result(self, labels: Sequence[str], to_name: str = TEXT) -> dict[str, Any]:
        """Return an answer as Label Studio stores it."""
        value: Any = list(labels)
        if self.form in ("rating", "number"):
            value = float(labels[0]) if self.form == "number" else int(labels[0])
        elif self.form == "taxonomy":
            value = [label.split(STEP) for label in labels]
        return {"from_name": self.name, "to_name": to_name, "type": self.form, "value": {self.form: value}}

    def lines(self) -> list[str]:
        """Return the control in XML."""
        how = 'choice="multiple"' if self.kind == "many" else 'choice="single" required="true"'
        if self.form != "choices":
            how = {"rating": f'maxRating="{len(self.labels)}"', "taxonomy": 'leafsOnly="true"'}.get(self.form, "")
            how += f' min="{self.labels[0]}" max="{self.labels[-1]}"' if self.form == "number" else ' required="true"'
        start = f'  <{self.form.capitalize()} name={quoteattr(self.name)} toName="{TEXT}" {how.strip()}'
        if self.form in ("rating", "number"):
            return [f"{start}/>"]
        known = zip(self.labels, [*HOTKEYS, *[""] * len(self.labels)], strict=False)
        inside = [_choice(label, key, self.meanings.get(label, "")) for label, key in known]
        if self.form == "taxonomy":
            inside = list(_branches([label.split(STEP) for label in self.labels]))
        return [f"{start}>", *inside, f"  </{self.form.capitalize()}>"]

    def chosen(self, value: object, where: str) -> list[Any]:
        """Return the labels in an answer; JSON-MIN has it without its type."""
        found = value.get(self.form) if isinstance(value, dict) else value
        if self.form in ("rating", "number"):
            given = _number(found, least=-MOST)
            return [] if given is None else [f"{given:.12g}"]
        listed = found if isinstance(found, list) else [] if found is None else [found]
        if self.form == "taxonomy":
            return [STEP.join(map(str, _checked(path, list, f"{where}, taxonomy"))) for path in listed]
        # Interfaces with nested choices list the way to each choice.
        return [one[-1] if isinstance(one, list) and one else one for one in listed]


def _branches(paths: Sequence[Sequence[str]], depth: int = 2) -> Iterator[str]:
    """Yield the choices of a taxonomy, one line for each."""
    for first in dict.fromkeys(path[0] for path in paths):
        below = [path[1:] for path in paths if path[0] == first and len(path) > 1]
        start = f"{'  ' * depth}<Choice value={_shown(first.strip())}"
        yield f"{start}>" if below else f"{start}/>"
        if below:
            yield from _branches(below, depth + 1)
            yield f"{'  ' * depth}</Choice>"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowToAnswer:
    """A row for people to answer in Label Studio."""

    text: str
    outcome: Outcome  # what the run says about it
    columns: Mapping[str, object] = field(default_factory=dict)  # the user's columns that go with it
    queue: Queue = "chosen"  # how it was chosen
    answers: Sequence[tuple[Control, Sequence[str]]] = ()  # the labels that are proposed for each question
    proposed: Mapping[str, str] = field(default_factory=dict)  # of a codebook, the label of each part

    def values(self) -> dict[str, object]:
        """Return what travels with the row: our values, then the user's columns, renamed if the name is taken."""
        found: dict[str, object] = {ID: self.outcome.id, DECISION: self.outcome.decision, QUEUE: self.queue}
        if self.proposed and self.queue not in BLIND:
            found[PROPOSED] = self.proposed
        elif self.outcome.label is not None and self.queue not in BLIND:
            found |= {LABEL: self.outcome.label, CONFIDENCE: self.outcome.confidence}
        names = input_names(self.columns, set(TAKEN))
        found |= {names[name]: _plain(value) for name, value in self.columns.items()}
        return {name: value for name, value in found.items() if value is not None}


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


def prediction(outcome: Outcome, version: str) -> dict[str, Any] | None:
    """Return an outcome as Label Studio shows it; None if it has no label.

    Its score is the confidence or, in a run without confidences, the score of the label.
    """
    if outcome.label is None:
        return None
    chosen = Control(QUESTION).result([outcome.label], TEXT)
    score = outcome.scores[outcome.label] if outcome.confidence is None else outcome.confidence
    return {"model_version": version, "score": score, "result": [chosen]}


def write_tasks(path: Path, rows: Iterable[RowToAnswer], version: str) -> None:
    """Write tasks with predictions, in ASCII: Label Studio reads files in the encoding of its machine."""
    values = [task_of(row, version) for row in rows]
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(values, indent=1, allow_nan=False) + "\n", encoding="ascii")


def task_of(row: RowToAnswer, version: str) -> dict[str, Any]:
    """Return a row as a task; one that people judge blind has no prediction."""
    predicted = None if row.queue in BLIND else prediction(row.outcome, version)
    if predicted and row.answers:
        predicted["result"] = [control.result(labels) for control, labels in row.answers if labels]
    return {"data": {TEXT: row.text, **row.values()}, "predictions": [predicted] if predicted else []}


def _plain(value: object) -> object:
    """Return a cell as JSON can hold it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def labelling_interface(controls: Sequence[Control]) -> str:
    """Return the XML that a project needs to show tasks: the text, the questions and their labels."""
    lines, text = ["<View>"], f'  <Text name="{TEXT}" value="${TEXT}"/>'
    for place, one in enumerate(controls):
        lines += [f"  <Header value={_shown(line)}/>" for line in one.instruction.splitlines() if line.strip()]
        lines += [*([text] if place == 0 else []), *one.lines()]
    return "\n".join([*lines, "</View>", ""])


def _choice(label: str, key: str, meaning: str) -> str:
    if _NOT_XML.search(label):
        raise TableError(f"label {label!r} has a character that XML cannot hold: rename the label without it")
    attributes = {"value": _shown(label), "hotkey": key and quoteattr(key), "hint": meaning and _shown(meaning)}
    if _REFERENCE.search(label):  # shown differently, but stored as it is
        attributes["alias"] = _attribute(label)
    return f"    <Choice {' '.join(f'{name}={value}' for name, value in attributes.items() if value)}/>"


def _shown(text: str) -> str:
    """Return a text as the value of an attribute that Label Studio shows.

    A word joiner, which has no width, keeps it from taking `$5` for a value of the task.
    """
    return _attribute(_REFERENCE.sub("$\u2060", _NOT_XML.sub(" ", text)))


def _attribute(text: str) -> str:
    return quoteattr(text, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def read_answers(path: Path, control: Control = Control()) -> list[StudioAnswer]:  # noqa: B008  # a frozen value
    """Return the answers in a project's export, JSON or JSON-MIN; of one person on one task, the oldest first."""
    found: list[StudioAnswer] = []
    for number, one in enumerate(_read_list(path), 1):
        task = _checked(one, dict, f"{path.name}, number {number} in the list")
        where = f"{path.name}, task {task.get('id', number)}"
        data = _checked(task.get("data", task), dict, f"{where}, data")
        if not isinstance(data.get(ID), str) or not isinstance(data.get(TEXT), str):
            missing = f"has no {ID} and {TEXT}, so `pcs exchange export` did not write it"
            raise TableError(f"{where} {missing}: export the project into which you imported the tasks of this run")
        answers = _of_short_task(task, where, control) if data is task else _of_task(task, data, where, control)
        found += sorted(answers, key=lambda answer: answer.at or "")
    return found


def _of_task(task: Mapping[str, Any], data: Mapping[str, Any], where: str, control: Control) -> Iterator[StudioAnswer]:
    for number, one in enumerate(_checked(task.get("annotations"), list, f"{where}, annotations"), 1):
        given = _checked(one, dict, f"{where}, annotation {number}")
        here = f"{where}, annotation {given.get('id', number)}"
        results = _checked(given.get("result"), list, f"{here}, result")
        label = None if given.get("was_cancelled") is True else _label(results, here, control)
        yield _answer(data, given, here, label, given.get("completed_by"), control)


def _of_short_task(task: Mapping[str, Any], where: str, control: Control) -> Iterator[StudioAnswer]:
    """Yield the answer of a task in JSON-MIN, which has each annotation as a task of its own, without skipped ones."""
    if control.name in task:
        label = _only_choice(control.chosen(task[control.name], where), where, control)
        yield _answer(task, task, where, label, task.get("annotator"), control)


def _label(results: Sequence[Any], where: str, control: Control) -> str | None:
    """Return the label that an annotation gives; None if it gives none."""
    given = [_checked(one, dict, f"{where}, result") for one in results]
    choices = [one for one in given if one.get("type") == control.form]
    ours = [one for one in choices if one.get("from_name") == control.name] or ([] if control.part else choices)
    if len({str(one.get("from_name")) for one in ours}) > 1:
        names = ", ".join(sorted({repr(one.get("from_name")) for one in ours}))
        raise TableError(f"{where} answers several questions ({names}): name the one to import {QUESTION!r}")
    values = [_checked(one.get("value"), dict, f"{where}, value") for one in ours]
    for value in values if control.form == "choices" else ():
        _checked(value.get("choices"), list, f"{where}, choices")
    return _only_choice([one for value in values for one in control.chosen(value, where)], where, control)


def _only_choice(flat: Sequence[Any], where: str, control: Control) -> str | None:
    if control.kind == "many":
        return "yes" if control.applies in flat else "no"
    if not flat:
        return None
    label = _text(flat[0])
    if len(flat) > 1 or label is None:
        raise TableError(f"{where} has the labels {flat!r}: a row has one label; let people choose only one")
    return label


def _answer(
    data: Mapping[str, Any],
    given: Mapping[str, Any],
    where: str,
    label: str | None,
    annotator: object,
    control: Control,
) -> StudioAnswer:
    return StudioAnswer(
        where=where,
        id=data[ID],
        text=data[TEXT],
        label=label,
        reviewer=_reviewer(annotator),
        at=_moment(given.get("updated_at")) or _moment(given.get("created_at")),
        seconds=_number(given.get("lead_time")),
        proposed=_text((data.get(PROPOSED) or {}).get(control.part) if control.part else data.get(LABEL)),
        confidence=_number(data.get(CONFIDENCE)),
        queue=next((queue for queue in get_args(Queue) if queue == data.get(QUEUE)), "chosen"),
    )


def _reviewer(annotator: object) -> str:
    """Return who annotated: the email if the export has it, else the number that the person has in Label Studio."""
    known = annotator if isinstance(annotator, dict) else {"email" if isinstance(annotator, str) else "id": annotator}
    return reviewer_name(_text(known.get("email")) or "") or f"label-studio:{known.get('id') or 'unknown'}"


def _read_list(path: Path) -> list[Any]:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise TableError(f"{path} has {size / 1e9:.1f} GB, at most {MOST_BYTES / 1e9:.0f} GB are read: split it")
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror}): check its name and permissions") from error
    except (ValueError, RecursionError) as error:
        raise TableError(f"{path} is not valid JSON ({error}): {REMEDY}") from error
    if not isinstance(found, list):
        raise TableError(f"{path} has no list of tasks or records, but {kind_of(found)}: {REMEDY}")
    return found


def _checked(value: object, kind: type[T], where: str) -> T:
    """Return a value of a file; null instead of a list is an empty one."""
    if value is None and kind is list:
        return kind()
    if not isinstance(value, kind):
        raise TableError(f"{where} must be {_KINDS[kind]}, not {kind_of(value)}: {REMEDY}")
    return value


def kind_of(value: object) -> str:
    """Return what a JSON value is, for messages."""
    return _KINDS.get(type(value), "a number")


def _text(value: object) -> str | None:
    """Return a text without what cannot be written as UTF-8; None for anything else."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


MOST = 1e18


def _number(value: object, least: float = 0.0) -> float | None:
    """Return a number that is not too small or large, such as seconds; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < MOST:
        return None
    return float(value)


def _moment(value: object) -> str | None:
    """Return a time in UTC, ISO 8601; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None
