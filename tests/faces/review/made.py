"""A run to review, with texts that attack the page, and the page on a real socket."""

import asyncio
import csv
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

from pcs_annotator.core.events import Undo, Verdict
from pcs_annotator.faces.review.layout import keys_of
from pcs_annotator.faces.review.review_app import Pages
from pcs_annotator.reviewing.book_review import BookReview
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.draw_registry import read_events
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, LearnSettings, RelationSettings, TaskSettings
from tests.faces.web.serving import serving
from tests.simulated import MODELS, run, simulated_models, truth_of

R = TypeVar("R")
GOLD_ROWS = 40
ATTACK = "<img src=x onerror=\"document.title='pwned'\"><script>document.title='pwned'</script>"
LABELS = ("good", "bad", "<b>neither</b>")
MANY = (
    "good",
    "bad",
    "مقالة إخبارية صحيحة",
    "肯定的な意見",
    *(f"A rather long name, number {one}, of a label" for one in range(8)),
)
RTL = "הסיפור looks good, אמר המבקר."
OPTIONS = ReviewOptions(refit_every=0, seed=1)
SPECIAL = {
    "attack": f"{ATTACK} Case looks bad.",
    "reversed": "Case looks \u202egood\u202d and not backwards.",
    "long": "Case looks good. " + "word " * 17_997,
    "rtl": RTL,
}
"""ID → text; the attack is also an ID and a value of the user's column."""


def make_run(folder: Path, rows: int, labels: tuple[str, ...] = LABELS) -> Path:
    """Return a run folder with simulated votes on this many plain texts, and on special ones."""
    data = folder / "data.csv"
    with data.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "gold", "source"])
        for row in range(rows):
            truth = truth_of(row)
            gold = "" if row >= GOLD_ROWS else truth if row % 8 else labels[2]
            writer.writerow([f"t{row}", f"Case {row} looks {truth}.", gold, f"paper {row % 3}"])
        for name, text in SPECIAL.items():
            writer.writerow([name, text, "", ATTACK])
        writer.writerow([ATTACK, "Case looks good.", "", ""])
    config = Config(
        task=TaskSettings(
            labels=labels, instruction="How does it look? **Judge** the case.", meanings={"good": ATTACK}
        ),
        ask=AskSettings(models=MODELS),
        relations=RelationSettings(use=("original", "frame", "order")),
        learn=LearnSettings(optimiser="lr", folds=3, resamples=5, max_error=0.1),
    )
    with simulated_models(graded=MODELS[:1]):
        run(RunRequest(data=data, folder=folder / "run", config=config))
    return folder / "run"


def page_of(folder: Path, options: ReviewOptions = OPTIONS, reviewer: str = "") -> AbstractContextManager[str]:
    """Serve the page of a run from another thread of this process; yields its address."""
    return served(
        lambda: BookReview.open(Book.open(folder), options),
        lambda review: Pages(review, "run", keys_of(review.labels), reviewer),
    )


@contextmanager
def served(opened: Callable[[], AbstractContextManager[R]], pages_of: Callable[[R], Pages]) -> Iterator[str]:
    """Serve the pages of a review that is opened, used and closed in another thread; yields their address."""
    ready, stop, addresses = Event(), Event(), []

    async def serve() -> None:
        with opened() as review:
            async with serving(pages_of(review).app(), max_body=256 * 1024) as door:
                addresses.append(door.url)
                ready.set()
                while not stop.is_set():
                    await asyncio.sleep(0.01)

    def work() -> None:
        try:
            asyncio.run(serve())
        finally:
            ready.set()

    thread = Thread(target=work)
    thread.start()
    try:
        assert ready.wait(30)
        yield addresses[0]
    finally:
        stop.set()
        thread.join(30)


def verdicts(folder: Path, part: str = "") -> list[Verdict]:
    """Return all verdicts in the folder, undone ones included."""
    return [event for event in read_events(folder / "draws.jsonl", part) if isinstance(event, Verdict)]


def undone(folder: Path, part: str = "") -> list[int]:
    """Return the numbers of verdicts that were taken back."""
    events = read_events(folder / "draws.jsonl", part)
    return [number for event in events if isinstance(event, Undo) for number in event.verdicts]
