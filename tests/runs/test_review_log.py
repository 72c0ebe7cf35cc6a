"""The log of a review: durable, append-only, and readable after a kill."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pcs_annotator import PcsWarning
from pcs_annotator.base.errors import TableError
from pcs_annotator.core.events import Draw, Event, Undo, Verdict
from pcs_annotator.runs.draw_registry import append_events, read_events

AT = "2026-11-16T08:00:00Z"
DRAW = Draw(number=1, id="a", text_hash="h", queue="learn", at=AT, probability=0.25, pool=4, frame="f", reached=1)
VERDICT = Verdict(number=2, id="a", text_hash="h", label="good", reviewer="anna", at=AT, queue="learn", seconds=2.5)
UNDO = Undo(number=3, verdicts=(2,), reviewer="anna", at=AT)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "draws.jsonl"


def test_events_come_back_as_they_were(log: Path) -> None:
    assert read_events(log) == []
    append_events(log, [DRAW])
    append_events(log, [VERDICT, UNDO])
    assert read_events(log) == [DRAW, VERDICT, UNDO]


def test_a_line_that_was_cut_off_is_left_out_and_the_next_one_is_kept(log: Path) -> None:
    append_events(log, [DRAW, VERDICT])
    log.write_bytes(log.read_bytes()[:-9])
    with pytest.warns(PcsWarning, match="the last line was cut off"):
        assert read_events(log) == [DRAW]
    append_events(log, [UNDO])
    with pytest.warns(PcsWarning, match="cut off are not read: 2"):
        assert read_events(log) == [DRAW, UNDO]


@pytest.mark.parametrize(
    ("event", "change", "why"),
    [
        (DRAW, {"number": "7"}, "its number is '7'"),
        (DRAW, {"number": True}, "its number is True"),
        (DRAW, {"at": 5}, "its at is 5"),
        (DRAW, {"queue": "longest"}, "no queue is called 'longest'"),
        (DRAW, {"probability": 0}, "its probability is 0"),
        (DRAW, {"probability": 1.5}, "its probability is 1.5"),
        (DRAW, {"probability": "0.5"}, "its probability is '0.5'"),
        (VERDICT, {"label": ["good"]}, r"its label is \['good'\]"),
        (VERDICT, {"reviewer": ["anna"]}, r"its reviewer is \['anna'\]"),
        (VERDICT, {"number": 1}, "its number is that of line 1"),
        (UNDO, {"verdicts": [2, "3"]}, r"its verdicts are \(2, '3'\)"),
        (UNDO, {"verdicts": ["3"]}, r"its verdicts are \('3',\)"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(log: Path, event: Event, change: dict[str, object], why: str) -> None:
    append_events(log, [DRAW])
    kind = type(event).__name__.lower()
    log.write_text(log.read_text() + json.dumps({"kind": kind, **asdict(event), "number": 9, **change}) + "\n")
    with pytest.raises(
        TableError, match=rf"draws\.jsonl, line 2 is not an event of a review; {why}: correct or remove"
    ):
        read_events(log)


def test_whole_numbers_are_numbers(log: Path) -> None:
    append_events(log, [replace(VERDICT, seconds=2, confidence=1), replace(DRAW, probability=1)])
    first, _ = read_events(log)
    assert isinstance(first, Verdict)
    assert first.seconds == 2


@pytest.mark.parametrize("line", ['{"kind": "guess"}', '{"kind": "draw"}', "[]", '{"kind": "undo", "verdicts": 3}'])
def test_a_line_that_is_no_event_is_named(log: Path, line: str) -> None:
    append_events(log, [DRAW])
    log.write_text(log.read_text() + line + "\n")
    with pytest.raises(TableError, match=r"draws\.jsonl, line 2 is not an event of a review: correct or remove"):
        read_events(log)
