"""Examples are written by hand from Argilla's documentation; with `argilla`, its client reads and writes them."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Task
from pcs_annotator.errors import PcsWarning, TableError
from pcs_annotator.files.annotation_tools import Answer, RowToAnswer
from pcs_annotator.files.argilla import dataset_settings, read_answers, record_of, write_records

ADA, BOB = "7b1e9c5c-5a5b-4a0e-9b7d-0f5d6a1f2e3c", "8b1e9c5c-5a5b-4a0e-9b7d-0f5d6a1f2e3c"
HOSTILE = ('"quoted", <b>&amp;</b>', "007", "$text", "naïve\n\ttab \u202e右", "  spaces  ", "' OR 1=1 --")
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1)


def row(id: str = "a", text: str = "Fine.", label: str | None = "good", **columns: object) -> RowToAnswer:
    scores = {} if label is None else {label: 0.7}
    confidence = None if label is None else 0.9
    outcome = Outcome(id=id, label=label, scores=scores, confidence=confidence, decision="review")
    return RowToAnswer(text=text, outcome=outcome, columns=columns)


def answered(record: dict[str, Any], *responses: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    """Return a record as `records.to_json` writes it."""
    return {**record, "responses": {"label": list(responses)}, "status": status, "_server_id": BOB}


def flattened(record: dict[str, Any], *responses: tuple[Any, str, str | None]) -> dict[str, Any]:
    """Return a record as `records.to_list(flatten=True)` gives it; without responses, there are no such keys."""
    flat = {"id": record["id"], "status": "pending", "_server_id": BOB, **record["fields"], **record["metadata"]}
    for name, suggestion in record["suggestions"].items():
        flat[f"{name}.suggestion"] = suggestion["value"]
    if responses:
        values, users, statuses = map(list, zip(*responses, strict=True))
        flat |= {"label.responses": values, "label.responses.users": users, "label.responses.status": statuses}
    return flat


def exported(folder: Path, *records: object) -> Path:
    path = folder / "news.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return path


def test_a_record_has_the_text_what_the_run_says_and_the_users_columns() -> None:
    assert record_of(row(source="Blog", status="old"), "pcs 1") == {
        "id": "a",
        "fields": {"text": "Fine."},
        "metadata": {
            "pcs_id": "a",
            "pcs_decision": "review",
            "pcs_queue": "chosen",
            "pcs_label": "good",
            "pcs_confidence": 0.9,
            "source": "Blog",
            "input_status": "old",
        },
        "suggestions": {"label": {"value": "good", "score": 0.9, "agent": "pcs 1"}},
        "responses": {},
        "vectors": {},
    }


def test_a_row_without_a_label_has_no_suggestion() -> None:
    assert record_of(row(label=None), "pcs 1")["suggestions"] == {}


def test_responses_come_back_with_who_gave_them(tmp_path: Path) -> None:
    record = record_of(row(), "pcs 1")
    other = answered(record, {"value": "good", "user_id": BOB})
    first, second = read_answers(exported(tmp_path, answered(record, {"value": "bad", "user_id": ADA}), other))
    assert first == Answer(
        where="news.json, record 'a'",
        id="a",
        text="Fine.",
        label="bad",
        reviewer=f"argilla:{ADA}",
        proposed="good",
        confidence=0.9,
    )
    assert (second.label, second.reviewer) == ("good", f"argilla:{BOB}")


def test_drafts_are_left_out_and_discarded_records_are_skipped_ones(tmp_path: Path) -> None:
    record = record_of(row(), "pcs 1")
    flat = flattened(record, ("bad", ADA, "submitted"), ("good", BOB, "draft"), ("good", "eve", "discarded"))
    found = read_answers(exported(tmp_path, flat, flattened(record)))
    assert [(one.reviewer, one.label) for one in found] == [(f"argilla:{ADA}", "bad"), ("argilla:eve", None)]
    nested = answered(
        record,
        {"value": "bad", "user_id": ADA, "status": "submitted"},
        {"value": "good", "user_id": BOB, "status": "draft"},
        {"value": None, "user_id": "eve", "status": "discarded"},
        status="pending",
    )
    assert read_answers(exported(tmp_path, nested)) == found


def test_answers_that_may_be_drafts_are_left_out_with_a_warning(tmp_path: Path) -> None:
    record, response = record_of(row(), "pcs 1"), {"value": "bad", "user_id": ADA}
    unclear = answered(record, response, status="pending")
    path = exported(tmp_path, unclear, {**unclear, "responses": None}, answered(record, response, response))
    with pytest.warns(PcsWarning, match=r"news\.json: 3 answers may be drafts.*to_list\(flatten=True\)"):
        assert read_answers(path) == []


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (3, r"news\.json, number 1 in the list must be an object"),
        (
            {"id": "7", "fields": {"prompt": "x"}, "metadata": {}},
            r"record '7' has no pcs_id and text.*export the dataset",
        ),
        ({"id": "7", "text": "x"}, r"record '7' has no pcs_id"),
        ({"fields": [], "metadata": {}}, r"record 1, fields must be an object, not a list"),
        ({"fields": {}, "metadata": None}, r"record 1, fields must be an object, not null"),
        (answered(record_of(row(), ""), {"value": ["a", "b"], "user_id": ADA}), r"the answer \['a', 'b'\]"),
        ({**record_of(row(), ""), "responses": []}, None),
        ({**record_of(row(), ""), "responses": {"label": {}}}, r"record 'a', responses must be a list"),
        ({**record_of(row(), ""), "responses": {"label": ["bad"]}}, r"record 'a', response must be an object"),
        ({**flattened(record_of(row(), "")), "label.responses": ["bad"]}, r"a user and a status for every response"),
    ],
)
def test_files_of_another_shape_are_refused_with_the_place_and_a_remedy(
    tmp_path: Path, record: object, message: str | None
) -> None:
    path = exported(tmp_path, record)
    if message is None:
        assert read_answers(path) == []
        return
    with pytest.raises(TableError, match=message):
        read_answers(path)


def test_labels_longer_than_argilla_takes_are_refused() -> None:
    with pytest.raises(TableError, match=r"label 'x{20}…' has 201 characters, Argilla takes 200: shorten it"):
        dataset_settings(Task("?", ["good", "x" * 201]))


def test_long_instructions_are_cut_to_what_argilla_takes() -> None:
    settings = json.loads(dataset_settings(Task("Why? " * 4000, ["good", "bad"], {"good": "fine"})))
    assert len(settings["questions"][0]["title"]) == 500
    assert len(settings["guidelines"]) == 10_000


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), unique_by=lambda one: one[0], max_size=5), st.booleans())
def test_ids_texts_labels_and_their_order_survive_the_round_trip(rows: list[tuple[str, str, str]], flat: bool) -> None:
    records = [record_of(row(name, text), "v") for name, text, _ in rows]
    given = [
        flattened(one, (label, ADA, "submitted")) if flat else answered(one, {"value": label, "user_id": ADA})
        for one, (_, _, label) in zip(records, rows, strict=True)
    ]
    with TemporaryDirectory() as folder:
        found = read_answers(exported(Path(folder), *given))
    assert [(one.id, one.text, one.label) for one in found] == rows


class _Me(BaseHTTPRequestHandler):
    """Answers the only question that Argilla's client asks before it reads and writes files: who am I?"""

    def do_GET(self) -> None:
        me = {"id": ADA, "username": "ada", "first_name": "Ada", "last_name": None, "role": "owner"}
        times = {"inserted_at": "2026-01-01T00:00:00", "updated_at": "2026-01-01T00:00:00"}
        body = json.dumps(me | times).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def client() -> Iterator[Any]:
    argilla = pytest.importorskip("argilla", reason="argilla is not installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Me)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield argilla.Argilla(api_url=f"http://127.0.0.1:{server.server_port}", api_key="none")
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_real_client_reads_our_settings(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(dataset_settings(Task("Which?", HOSTILE, {"007": "a spy"})), encoding="utf-8")
    settings = sys.modules["argilla"].Settings.from_json(path)
    settings.validate()
    assert settings.questions["label"].labels == list(HOSTILE)
    assert [field.name for field in settings.fields] == ["text"]
    assert [one.name for one in settings.metadata] == ["pcs_confidence", "pcs_decision"]
    assert settings.guidelines == "Which?\n\n- 007: a spy"


@pytest.mark.parametrize("flat", [False, True])
def test_the_real_client_reads_our_records_and_we_read_its_files(client: Any, tmp_path: Path, flat: bool) -> None:
    argilla, files = sys.modules["argilla"], sys.modules["argilla.records._io"]
    labels = [*HOSTILE, "x" * 90_000]
    rows = [row(f"{name}-{at}", f"{name}{name}", name, **{name: name}) for at, name in enumerate(labels)]
    write_records(tmp_path / "records.json", rows, "pcs 1")
    records = files.JsonIO._records_from_json(tmp_path / "records.json")
    assert [one.suggestions["label"].value for one in records] == labels
    assert {(one.suggestions["label"].score, one.suggestions["label"].agent) for one in records} == {(0.9, "pcs 1")}
    sent = [one.api_model().model_dump() for one in records]
    assert [(one["external_id"], one["fields"]["text"]) for one in sent] == [(one.outcome.id, one.text) for one in rows]
    for record, label in zip(records, labels, strict=True):
        record._model.status = "completed"
        record.responses.add(argilla.Response("label", label, user_id=UUID(ADA), status="submitted"))
        if flat:
            record.responses.add(argilla.Response("label", label, user_id=UUID(BOB), status="draft"))
    path = tmp_path / "answered.json"
    if flat:
        path.write_text(json.dumps(files.GenericIO.to_list(records, flatten=True)), encoding="utf-8")
    else:
        files.JsonIO.to_json(records, path)
    assert [(one.id, one.text, one.label, one.reviewer) for one in read_answers(path)] == [
        (given.outcome.id, given.text, label, f"argilla:{ADA}") for given, label in zip(rows, labels, strict=True)
    ]
