"""A codebook with every kind of variable, run with simulated models, to review."""

import re
from contextlib import AbstractContextManager
from pathlib import Path
from unittest import mock

from pcs_annotator import run
from pcs_annotator.core.chat import ChatModel, Request
from pcs_annotator.faces.review.review_app import Pages
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.reviewing.book_review import BookReview
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.book import Book
from tests.faces.review.made import OPTIONS, served
from tests.stub.behaviour import pick

ONE = {
    "topic": ("economy", "health", "education"),
    "tone": ("very negative", "negative", "neutral", "positive", "very positive"),
    "event": (
        "politics/election/campaign",
        "politics/election/result",
        "politics/law",
        "crime/theft",
        "crime/fraud",
        "nature/flood",
    ),
}
FRAMES = ("conflict", "human interest", "morality")
CONFIG = """
[ask]
models = ["coder:good@90", "coder:fair@75"]
[relations]
use = ["original", "order"]
[learn]
optimiser = "lr"
folds = 3
resamples = 5
text = false
max_error = 0.15
[variables.topic]
instruction = "What is the text about?"
labels = ["economy", "health", "education"]
meanings = { health = "illness and care" }
[variables.frames]
instruction = "Which frames does the text use?"
kind = "many"
labels = ["conflict", "human interest", "morality"]
[variables.tone]
instruction = "How does the text sound?"
kind = "scale"
labels = ["very negative", "negative", "neutral", "positive", "very positive"]
[variables.event]
instruction = "Which event does it report?"
kind = "tree"
labels = [%s]
"""


def truth(name: str, row: int) -> str:
    """Return the right answer to a variable about a text."""
    if name == "frames":
        return "; ".join(one for one in FRAMES if pick(3, one, str(row)) == 0) or "none"
    return ONE[name][pick(len(ONE[name]), name, str(row))]


class Coder:
    """Opens `coder:NAME@PERCENT`, which is right about each variable on that percentage of texts."""

    def open(self, model: str, environment: object) -> ChatModel:
        percent = int(model.partition("@")[2])

        def answer(request: Request) -> str:
            asked = "\n".join(message.content for message in request.messages)
            row = int(re.findall(r"Text (\d+)", asked)[-1])

            def said(name: str) -> str:
                right = pick(100, model, name, str(row)) < percent
                return truth(name, row if right else row + 1 + pick(50, model, str(row)))

            return "\n".join(f"<{name}>{said(name)}</{name}>" for name in (*ONE, "frames"))

        return ScriptedModel(answer, name=f"coder:{model}")


def make_codebook(folder: Path, rows: int = 90, gold: int = 40, framed: int = 30) -> Path:
    """Return the folder of a codebook that was run; the first rows have gold, frames fewer than the others."""
    lines = ["id,text,source,topic,frames,tone,event"]
    for row in range(rows):
        told = [truth(name, row) if row < gold else "" for name in ("topic", "tone", "event")]
        frames = truth("frames", row).replace("; ", ";") if row < framed else ""
        lines.append(f"t{row},Text {row} tells a story.,paper {row % 3},{told[0]},{frames},{told[1]},{told[2]}")
    data, config = folder / "data.csv", folder / "codebook.toml"
    data.write_text("\n".join(lines) + "\n")
    config.write_text(CONFIG % ", ".join(f'"{label}"' for label in ONE["event"]))
    with mock.patch.dict(providers._factories, {"coder": Coder}):
        run(data, folder / "run", config=config)
    return folder / "run"


def open_review(folder: Path, options: ReviewOptions = OPTIONS) -> AbstractContextManager[BookReview]:
    """Open the review of a codebook."""
    book = Book.open(folder)
    return BookReview.open(book, options)


def page_of_codebook(folder: Path, options: ReviewOptions = OPTIONS) -> AbstractContextManager[str]:
    """Serve the page of a codebook from another thread of this process; yields its address."""
    return served(lambda: open_review(folder, options), lambda review: Pages(review, "run", {}))
