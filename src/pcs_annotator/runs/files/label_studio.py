"""Label Studio's files: tasks with predictions and their labelling interface out, annotations back.

The formats are those of Label Studio's documentation: "Import pre-annotated data", "Label Studio JSON format of
annotated tasks", and the export format JSON-MIN as its converter writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from pcs_annotator.base.errors import TableError
from pcs_annotator.core import result_names
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Task
from pcs_annotator.runs.files import annotation_tools as tools
from pcs_annotator.runs.files.annotation_tools import Answer, RowToAnswer

REMEDY = "export the project as JSON or JSON-MIN, and give that file as it is"
HOTKEYS = "1234567890qwetasdfgzxcvbyiopjklnm"
"""The keys that Label Studio itself gives to choices, in this order."""
_REFERENCE = re.compile(r"\$(?=[\w\[\].{}])")
"""What Label Studio replaces by a value of the task, in every attribute that it shows."""
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class Interface(NamedTuple):
    """The names of a labelling interface that answers need.

    Attributes:
        choices: The name of the choices.
        to_name: The name of the text that they are about.
        key: Where a task has that text.
    """

    choices: str = tools.QUESTION
    to_name: str = tools.TEXT
    key: str = tools.TEXT


def prediction(outcome: Outcome, version: str, interface: Interface | None = None) -> dict[str, Any] | None:
    """Return an outcome as Label Studio shows it; None if it has no label.

    Its score is the confidence or, in a run without confidences, the score of the label.
    """
    if outcome.label is None:
        return None
    names = interface or Interface()
    chosen = {
        "from_name": names.choices,
        "to_name": names.to_name,
        "type": "choices",
        "value": {"choices": [outcome.label]},
    }
    return {"model_version": version, "score": tools.score_of(outcome), "result": [chosen]}


def task_of(row: RowToAnswer, version: str) -> dict[str, Any]:
    """Return a row as a task."""
    predicted = prediction(row.outcome, version)
    return {
        "data": {tools.TEXT: row.text, **row.values(taken=["data"])},
        "predictions": [predicted] if predicted else [],
    }


def write_tasks(path: Path, rows: Iterable[RowToAnswer], version: str) -> None:
    """Write tasks with predictions."""
    tools.write_values(path, [task_of(row, version) for row in rows])


def labelling_interface(task: Task) -> str:
    """Return the XML that a project needs to show tasks: the question, the text and a choice per label."""
    lines = ["<View>"]
    lines += [f"  <Header value={_shown(line)}/>" for line in task.instruction.splitlines() if line.strip()]
    lines += [f'  <Text name="{tools.TEXT}" value="${tools.TEXT}"/>']
    lines += [f'  <Choices name="{tools.QUESTION}" toName="{tools.TEXT}" choice="single" required="true">']
    keys = [*HOTKEYS, *[""] * len(task.labels)]
    lines += [_choice(label, key, task.meanings.get(label, "")) for label, key in zip(task.labels, keys, strict=False)]
    return "\n".join([*lines, "  </Choices>", "</View>", ""])


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


def read_interface(config: str) -> Interface:
    """Return the names in a project's labelling interface, which must have one group of choices about one text."""
    remedy = "use the interface that `pcs exchange export` writes, or one with a Text and Choices for it"
    if "<!" in config.replace("<!--", ""):  # no DOCTYPE, hence no entities that expand
        raise TableError(f"the labelling interface has a declaration that is not read: {remedy}")
    try:
        tags = [tag for tag in ElementTree.fromstring(config).iter() if tag.get("name")]
    except ElementTree.ParseError as error:
        raise TableError(f"the labelling interface is not valid XML ({error}): {remedy}") from error
    texts = {tag.get("name"): tag for tag in tags if tag.tag in ("Text", "HyperText")}
    choices = [tag for tag in tags if tag.tag == "Choices" and tag.get("toName") in texts]
    if len(choices) != 1:
        raise TableError(
            f"the labelling interface has {len(choices)} groups of choices about a text, not one: {remedy}"
        )
    to_name = choices[0].get("toName", "")
    return Interface(choices[0].get("name", ""), to_name, texts[to_name].get("value", "").removeprefix("$"))


def read_answers(path: Path) -> list[Answer]:
    """Return the answers in a project's export, JSON or JSON-MIN; of one person on one task, the oldest first."""
    found: list[Answer] = []
    for number, one in enumerate(tools.read_list(path, REMEDY), 1):
        task = tools.mapping(one, f"{path.name}, number {number} in the list", REMEDY)
        where = f"{path.name}, task {task.get('id', number)}"
        data = tools.mapping(task.get("data", task), f"{where}, data", REMEDY)
        if not isinstance(data.get(tools.ID), str) or not isinstance(data.get(tools.TEXT), str):
            missing = f"has no {tools.ID} and {tools.TEXT}, so `pcs exchange export` did not write it"
            raise TableError(f"{where} {missing}: export the project into which you imported the tasks of this run")
        answers = _of_short_task(task, where) if data is task else _of_task(task, data, where)
        found += sorted(answers, key=lambda answer: answer.at or "")
    return found


def _of_task(task: Mapping[str, Any], data: Mapping[str, Any], where: str) -> Iterator[Answer]:
    for number, one in enumerate(tools.sequence(task.get("annotations"), f"{where}, annotations", REMEDY), 1):
        given = tools.mapping(one, f"{where}, annotation {number}", REMEDY)
        here = f"{where}, annotation {given.get('id', number)}"
        results = tools.sequence(given.get("result"), f"{here}, result", REMEDY)
        label = None if given.get("was_cancelled") is True else _label(results, here)
        yield _answer(data, given, here, label, given.get("completed_by"))


def _of_short_task(task: Mapping[str, Any], where: str) -> Iterator[Answer]:
    """Yield the answer of a task in JSON-MIN, which has each annotation as a task of its own, without skipped ones."""
    if tools.QUESTION in task:
        value = task[tools.QUESTION]
        choices = value.get("choices") if isinstance(value, dict) else value
        label = _only_choice(choices if isinstance(choices, list) else [choices], where)
        yield _answer(task, task, where, label, task.get("annotator"))


def _label(results: Sequence[Any], where: str) -> str | None:
    """Return the label that an annotation gives; None if it gives none."""
    given = [tools.mapping(one, f"{where}, result", REMEDY) for one in results]
    choices = [one for one in given if one.get("type") == "choices"]
    ours = [one for one in choices if one.get("from_name") == tools.QUESTION] or choices
    if len({str(one.get("from_name")) for one in ours}) > 1:
        names = ", ".join(sorted({repr(one.get("from_name")) for one in ours}))
        raise TableError(f"{where} answers several questions ({names}): name the one to import {tools.QUESTION!r}")
    values = [tools.mapping(one.get("value"), f"{where}, value", REMEDY).get("choices") for one in ours]
    return _only_choice(
        [choice for value in values for choice in tools.sequence(value, f"{where}, choices", REMEDY)], where
    )


def _only_choice(choices: Sequence[Any], where: str) -> str | None:
    # Interfaces with nested choices list the way to each choice.
    flat = [one[-1] if isinstance(one, list) and one else one for one in choices]
    if not flat:
        return None
    label = tools.text_of(flat[0])
    if len(flat) > 1 or label is None:
        raise TableError(f"{where} has the labels {flat!r}: a row has one label; let people choose only one")
    return label


def _answer(
    data: Mapping[str, Any], given: Mapping[str, Any], where: str, label: str | None, annotator: object
) -> Answer:
    return Answer(
        where=where,
        id=data[tools.ID],
        text=data[tools.TEXT],
        label=label,
        reviewer=_reviewer(annotator),
        at=tools.moment_of(given.get("updated_at")) or tools.moment_of(given.get("created_at")),
        seconds=tools.number_of(given.get("lead_time")),
        proposed=tools.text_of(data.get(result_names.LABEL)),
        confidence=tools.number_of(data.get(result_names.CONFIDENCE)),
        queue=tools.queue_of(data.get(tools.QUEUE)),
    )


def _reviewer(annotator: object) -> str:
    """Return who annotated: the email if the export has it, else the number that the person has in Label Studio."""
    known = annotator if isinstance(annotator, dict) else {"email" if isinstance(annotator, str) else "id": annotator}
    return tools.text_of(known.get("email")) or f"label-studio:{known.get('id') or 'unknown'}"
