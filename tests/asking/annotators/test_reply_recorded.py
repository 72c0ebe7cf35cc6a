"""Recorded replies of real small models."""

import csv
import gzip
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from pcs_annotator.asking.annotators.reply import ParsedReply, read_label

LABELS = {"sentiment": ("positive", "neutral", "negative"), "gossipcop": ("real", "fake")}


class Recorded(NamedTuple):
    model: str
    task: str
    reply: str
    times: int
    reading: ParsedReply


@pytest.fixture(scope="module")
def recorded(shared_data: Path) -> list[Recorded]:
    with (shared_data / "recorded" / "replies.csv").open(newline="", encoding="utf-8") as file:
        return [
            Recorded(
                row["model"],
                row["task"],
                row["reply"],
                int(row["count"]),
                read_label(row["reply"], LABELS[row["task"]]),
            )
            for row in csv.DictReader(file)
        ]


def test_label_occurs_in_the_reply_as_a_whole_word(recorded: list[Recorded]) -> None:
    found = [row for row in recorded if row.reading.label is not None]
    assert found
    assert [
        row.reply
        for row in found
        if not re.search(rf"(?<![^\W_]){row.reading.label}(?![^\W_])", row.reply, re.IGNORECASE)
    ] == []


def test_silence_always_has_a_reason(recorded: list[Recorded]) -> None:
    assert [row.reply for row in recorded if (row.reading.label is None) != bool(row.reading.reason)] == []


def test_well_formed_answers_are_never_silent(recorded: list[Recorded]) -> None:
    formed = re.compile(
        r"\s*(?:<label>)?\s*(?:positive|neutral|negative|real|fake)\s*(?:</label>)?[.\s]*", re.IGNORECASE
    )
    silent = [row for row in recorded if formed.fullmatch(row.reply) and row.reading.label is None]
    assert [row.reply for row in silent if row.reply.lower().strip(" \n.") in LABELS[row.task]] == []


def test_replies_quoted_as_the_text_are_silent_unless_bare(recorded: list[Recorded]) -> None:
    again = [read_label(row.reply, LABELS[row.task], row.reply) for row in recorded]
    assert {reading.how for reading in again if reading.label is not None} == {"bare"}


def test_no_model_has_more_of_any_answer_than_in_its_recorded_votes(
    recorded: list[Recorded], shared_data: Path
) -> None:
    """The replies are a subset of those behind the votes, so each of our counts is at most theirs."""
    ours: Counter[tuple[str, str, str]] = Counter()
    for row in recorded:
        ours[row.task, row.model, row.reading.label or ""] += row.times
    theirs: Counter[tuple[str, str, str]] = Counter()
    for task in LABELS:
        with gzip.open(shared_data / "recorded" / f"votes_{task}.csv.gz", "rt", encoding="utf-8") as file:
            for votes in csv.DictReader(file):
                cells = {name: label for name, label in votes.items() if "|" in name}
                theirs.update((task, name.split("@")[0], label) for name, label in cells.items())
    assert ours - theirs == Counter()
