"""A codebook with passages and a value beside labels, run with simulated models, to review."""

import csv
import json
import re
from contextlib import AbstractContextManager
from pathlib import Path
from unittest import mock

import orjson

from pcs_annotator import run
from pcs_annotator.core.chat import ChatModel, Request
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.reviewing.values import ReviewOptions
from tests.faces.review.coded import page_of_codebook
from tests.faces.review.made import OPTIONS
from tests.stub.behaviour import pick

CONFIG = """
[ask]
models = ["reader:good@90", "reader:fair@70"]
[relations]
use = ["original"]
[learn]
optimiser = "lr"
folds = 3
resamples = 5
text = false
max_error = 0.2
[variables.claims]
instruction = "Which claims does the text make, and which evidence has it?"
kind = "passages"
labels = ["claim", "evidence"]
[variables.year]
instruction = "When was the study made?"
kind = "value"
format = "number"
[variables.tone]
instruction = "How does the text sound?"
labels = ["calm", "loud"]
"""


def text_of(row: int) -> str:
    """Return a text, with characters that take two places in a browser's strings."""
    study = f"a study of {1990 + row % 30} shows it" if row % 4 else "nobody has studied it"
    told = f"Case {row} 🚬 is told: tar harms lungs, because {study}."
    return f"{told} Others say that cafe\u0301s are worse 👩🏽‍🚀 by far."


def passages_of(row: int, right: bool = True) -> list[tuple[str, str]]:
    """Return types and quotations: those that are right, or wrong ones."""
    evidence = [("evidence", text_of(row).split("because ")[1].split(".")[0])] if row % 4 else []
    claims = [("claim", "tar harms lungs"), ("claim", "cafe\u0301s are worse 👩🏽‍🚀 by far")]
    return [*claims, *evidence] if right else [*claims[1:], ("claim", f"Case {row}")]


def gold_of(row: int) -> str:
    """Return the gold label of a text."""
    text = text_of(row)
    rows = [(text.index(words), text.index(words) + len(words), type_) for type_, words in passages_of(row)]
    return orjson.dumps([{"start": start, "end": end, "type": type_} for start, end, type_ in sorted(rows)]).decode()


def year_of(row: int, right: bool = True) -> str:
    """Return the year that a text names, or another."""
    return (str(1990 + row % 30) if right else str(row)) if row % 4 else "none"


class Reader:
    """Opens `reader:NAME@PERCENT`, which is right about that percentage of texts."""

    def open(self, model: str, environment: object) -> ChatModel:
        percent = int(model.partition("@")[2])

        def answer(request: Request) -> str:
            asked = "\n".join(message.content for message in request.messages)
            row = int(re.findall(r"Case (\d+)", asked)[-1])
            right = pick(100, model, str(row)) < percent
            if "Which claims" in asked:
                return json.dumps([{"type": type_, "quotation": words} for type_, words in passages_of(row, right)])
            if "When was" in asked:
                year = year_of(row, right)
                return "{}" if year == "none" else json.dumps({"quotation": year, "value": year})
            return "loud" if (row % 2 == 1) == right else "calm"

        return ScriptedModel(answer, name=f"reader:{model}")


def make_extraction(folder: Path, rows: int = 60, gold: int = 40) -> Path:
    """Return the folder of a codebook that was run; the first rows have gold."""
    data, config = folder / "data.csv", folder / "codebook.toml"
    with data.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "claims", "year", "tone"])
        for row in range(rows):
            known = [gold_of(row), year_of(row), "loud" if row % 2 else "calm"] if row < gold else ["", "", ""]
            writer.writerow([f"t{row}", text_of(row), *known])
    config.write_text(CONFIG)
    with mock.patch.dict(providers._factories, {"reader": Reader}):
        run(data, folder / "run", config=config)
    return folder / "run"


def page_of_extraction(folder: Path, options: ReviewOptions = OPTIONS) -> AbstractContextManager[str]:
    """Serve the page of the codebook from another thread of this process; yields its address."""
    return page_of_codebook(folder, options)
