"""Argilla's files: records with suggestions and the settings of a dataset out, responses back.

Records are those that `dataset.records.from_json` of the Argilla 2 client reads. Responses are read from what
`dataset.records.to_json` writes, and from `dataset.records.to_list(flatten=True)`, which also says which are drafts.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pcs_annotator.core import result_names
from pcs_annotator.core.task import Task
from pcs_annotator.errors import PcsWarning, TableError
from pcs_annotator.files import annotation_tools as tools
from pcs_annotator.files.annotation_tools import Answer, RowToAnswer

REMEDY = "export the dataset with records.to_list(flatten=True) or records.to_json, and give that file as it is"
LONGEST_LABEL, LONGEST_TITLE, LONGEST_GUIDELINES = 200, 500, 10_000
"""Argilla's limits, in characters."""
_RESPONSES, _SUGGESTION = f"{tools.QUESTION}.responses", f"{tools.QUESTION}.suggestion"
_PARTS = ("fields", "metadata", "suggestions", "responses", "vectors")
_TAKEN = (
    *("id", "status", "_server_id", "score", *_PARTS),
    *(_RESPONSES, f"{_RESPONSES}.users", f"{_RESPONSES}.status"),
    *(_SUGGESTION, f"{_SUGGESTION}.score", f"{_SUGGESTION}.agent"),
)
"""Names that a flattened record has besides its fields and metadata."""


def record_of(row: RowToAnswer, agent: str) -> dict[str, Any]:
    """Return a row as a record; its suggestion has the score that `label_studio.prediction` has."""
    suggestions = {}
    if row.outcome.label is not None:
        suggested = {"value": row.outcome.label, "score": tools.score_of(row.outcome), "agent": agent}
        suggestions[tools.QUESTION] = suggested
    return {
        "id": row.outcome.id,
        "fields": {tools.TEXT: row.text},
        "metadata": row.values(taken=_TAKEN),
        "suggestions": suggestions,
        "responses": {},
        "vectors": {},
    }


def write_records(path: Path, rows: Iterable[RowToAnswer], agent: str) -> None:
    """Write records with suggestions."""
    tools.write_values(path, [record_of(row, agent) for row in rows])


def dataset_settings(task: Task) -> str:
    """Return the settings of a dataset for such records, the JSON that `rg.Settings.from_json` reads."""
    for label in task.labels:
        if len(label) > LONGEST_LABEL:
            start = f"{label[:20]}…"
            raise TableError(f"label {start!r} has {len(label)} characters, Argilla takes {LONGEST_LABEL}: shorten it")
    guidelines = "\n".join([task.instruction, "", *(f"- {name}: {words}" for name, words in task.meanings.items())])
    question = {
        "name": tools.QUESTION,
        "title": task.instruction[:LONGEST_TITLE],
        "description": None,
        "required": True,
        "settings": {
            "type": "label_selection",
            "options": [{"value": label, "text": label} for label in task.labels],
            "visible_options": None,
        },
    }
    text = {"name": tools.TEXT, "title": "Text", "required": True, "settings": {"type": "text", "use_markdown": False}}
    settings = {
        "guidelines": guidelines.strip()[:LONGEST_GUIDELINES],
        "questions": [question],
        "fields": [text],
        "vectors": [],
        "metadata": [
            _property(result_names.CONFIDENCE, "Confidence", {"type": "float", "min": None, "max": None}),
            _property(result_names.DECISION, "Decision", {"type": "terms", "values": None}),
        ],
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": 1},
        "mapping": None,
    }
    return json.dumps(settings, indent=1) + "\n"


def _property(name: str, title: str, settings: Mapping[str, object]) -> dict[str, object]:
    return {"name": name, "title": title, "visible_for_annotators": True, "settings": settings}


def read_answers(path: Path) -> list[Answer]:
    """Return the responses in a dataset's export; drafts are left out.

    `to_json` does not write the status of responses. The only one of a completed record must have been submitted;
    others may be drafts, and are left out with a warning.
    """
    found: list[Answer] = []
    unclear = 0
    for number, one in enumerate(tools.read_list(path, REMEDY), 1):
        record = tools.mapping(one, f"{path.name}, number {number} in the list", REMEDY)
        where = f"{path.name}, record {record.get('id', number)!r}"
        about = _about(record, where)
        responses = list(_responses(record, where))
        clear = len(responses) == 1 and record.get("status") == "completed"
        for response in responses:
            status = response.get("status") or ("submitted" if clear else None)
            if status in ("submitted", "discarded"):
                found.append(_answer(about, response, where, skipped=status == "discarded"))
            unclear += status is None
    if unclear:
        warnings.warn(
            f"{path.name}: {unclear} answers may be drafts and are left out, because records.to_json does not write "
            "which are submitted: export with records.to_list(flatten=True)",
            PcsWarning,
            stacklevel=2,
        )
    return found


def _about(record: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return the text and metadata of a record."""
    flat = "fields" not in record
    parts = [record] if flat else [record["fields"], record.get("metadata")]
    about = {name: value for part in parts for name, value in tools.mapping(part, f"{where}, fields", REMEDY).items()}
    if not isinstance(about.get(tools.ID), str) or not isinstance(about.get(tools.TEXT), str):
        missing = f"has no {tools.ID} and {tools.TEXT}, so `pcs exchange export` did not write it"
        raise TableError(f"{where} {missing}: export the dataset into which you imported the records of this run")
    return about


def _responses(record: Mapping[str, Any], where: str) -> Iterator[Mapping[str, Any]]:
    """Yield `value`, `user_id` and, if the file has it, `status` of every response."""
    if "fields" in record:
        answered = tools.mapping(record.get("responses") or {}, f"{where}, responses", REMEDY)
        for one in tools.sequence(answered.get(tools.QUESTION), f"{where}, responses", REMEDY):
            yield tools.mapping(one, f"{where}, response", REMEDY)
        return
    names = {"value": _RESPONSES, "user_id": f"{_RESPONSES}.users", "status": f"{_RESPONSES}.status"}
    columns = [tools.sequence(record.get(name), f"{where}, {name}", REMEDY) for name in names.values()]
    if len({*map(len, columns)}) > 1:
        raise TableError(f"{where} does not have a user and a status for every response: {REMEDY}")
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _answer(about: Mapping[str, Any], response: Mapping[str, Any], where: str, *, skipped: bool) -> Answer:
    label = tools.text_of(response.get("value"))
    if label is None and not skipped:
        raise TableError(f"{where} has the answer {response.get('value')!r}, which is no label: {REMEDY}")
    return Answer(
        where=where,
        id=about[tools.ID],
        text=about[tools.TEXT],
        label=None if skipped else label,
        reviewer=f"argilla:{tools.text_of(response.get('user_id')) or 'unknown'}",
        proposed=tools.text_of(about.get(result_names.LABEL)),
        confidence=tools.number_of(about.get(result_names.CONFIDENCE)),
        queue=tools.queue_of(about.get(tools.QUEUE)),
    )
