"""Take the pictures in the docs, of a report and its review, from a simulated run; --check compares sizes only.

    python scripts/pictures.py

Needs Chromium. The models are simulated: nothing is called and nothing is paid for.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from zlib import crc32

from PIL import Image
from playwright.async_api import Browser, Page, async_playwright

from pcs_annotator import run
from pcs_annotator.faces.review.layout import keys_of
from pcs_annotator.faces.review.review_app import Pages
from pcs_annotator.faces.web.server import listen, serve
from pcs_annotator.reviewing.book_review import BookReview
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.book import Book

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
PICTURES = ("report.png", "review-row.png", "review-queues.png")
NEWS = ROOT / "src" / "pcs_annotator" / "faces" / "demo" / "news.csv"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
RUN = "runs/news"
LEADS = ("", "In brief: ", "Update: ", "This morning: ", "From the archive: ")
TOPICS = ("world", "sports", "business", "technology")
GOLD_ROWS = 150
SKILLS = {"large-model": 93, "small-model": 80}
SCALE = 2
MOST_BYTES = 200_000
WINDOW, REVIEW = {"width": 1180, "height": 500}, {"width": 1200, "height": 690}
VERDICTS = 6


def write_news(path: Path) -> dict[str, str]:
    """Write 225 invented news items, two thirds with gold labels; return the topic of each text."""
    with NEWS.open(encoding="utf-8", newline="") as file:
        news = [row for row in csv.DictReader(file) if row["topic"]]
    rows = [(f"{lead}{one['text']}", one["topic"]) for lead in LEADS for one in news]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "gold"])
        for place, (text, topic) in enumerate(rows):
            writer.writerow([f"n{place + 1}", text, topic if place < GOLD_ROWS else ""])
    return dict(rows)


def simulated(name: str, topics: dict[str, str]) -> Callable[[str], str]:
    """Return a model that is right about most texts, and about some it depends on the question."""

    def answer(prompt: str) -> str:
        text = max((one for one in topics if one.casefold() in prompt.casefold()), key=len, default="")
        luck = crc32(f"{name} {text}".encode()) % 100 + crc32(f"{name} {prompt}".encode()) % 9
        right = TOPICS.index(topics.get(text, "world"))
        return TOPICS[right if luck < SKILLS[name] else (right + 1 + luck % 2) % len(TOPICS)]

    answer.__name__ = name
    return answer


def make_run(folder: Path) -> None:
    """Label the news in a run folder."""
    topics = write_news(folder / "news.csv")
    models = [simulated(name, topics) for name in SKILLS]
    question = "What is the news item about?"
    how = {"instruction": question, "max_error": 0.05, "text": False}  # items come five times, so texts tell too much
    run(folder / "news.csv", folder / RUN, models=models, labels=TOPICS, **how)  # type: ignore[arg-type]  # a mix


async def take(folder: Path, to: Path) -> None:
    """Take all pictures of a run below this folder."""
    async with async_playwright() as play:
        browser = await play.chromium.launch(executable_path=CHROMIUM, args=[*QUIET])
        page = await _opened(browser, (folder / RUN / "report.html").absolute().as_uri(), WINDOW)
        _save(await page.screenshot(), to / PICTURES[0])
        with BookReview.open(Book.open(folder / RUN), ReviewOptions(refit_every=0, seed=1)) as review:
            door = listen("127.0.0.1", 0)
            app = Pages(review, "news", keys_of(review.labels)).app()
            serving = asyncio.create_task(serve(app, door, print))
            await take_review(browser, door.url, to)
            serving.cancel()
            await asyncio.wait([serving])


async def take_review(browser: Browser, url: str, to: Path) -> None:
    """Judge some rows, then take one picture of a row, and one of the queues."""
    page = await _opened(browser, url, REVIEW)
    for _ in range(VERDICTS):
        await page.wait_for_timeout(1_500)  # the page shows the pace
        before = await page.locator("#item-title").inner_text()
        await page.keyboard.press("Enter")
        await page.wait_for_function("old => document.getElementById('item-title').innerText !== old", arg=before)
    _save(await page.screenshot(), to / PICTURES[1])
    page = await _opened(browser, url, REVIEW, scheme="dark")
    await page.locator(".queues summary").click()
    _save(await page.screenshot(), to / PICTURES[2])


async def _opened(browser: Browser, url: str, size: dict[str, int], scheme: str = "light") -> Page:
    """Return the page of somebody whose name is known."""
    how = {"viewport": size, "device_scale_factor": SCALE, "color_scheme": scheme, "reduced_motion": "reduce"}
    context = await browser.new_context(**how)  # type: ignore[arg-type]  # a mix
    if url.startswith("http"):
        await context.add_cookies([{"name": "reviewer", "value": "Ana", "url": url}])
    page = await context.new_page()
    await page.goto(url)
    if url.startswith("http"):
        await page.wait_for_selector("html.ready")
    return page


def _save(picture: bytes, to: Path) -> None:
    """Write a picture with as many colours as it needs, a quarter of the bytes."""
    Image.open(BytesIO(picture)).convert("RGB").quantize(128).save(to, optimize=True)


def problems(taken: Path) -> Iterator[str]:
    """Yield what is wrong with the pictures in the docs, compared with those just taken."""
    for name in PICTURES:
        path = IMAGES / name
        if not path.exists():
            yield f"{path} is missing"
        elif path.stat().st_size > MOST_BYTES:
            yield f"{path} has {path.stat().st_size:,} bytes; at most {MOST_BYTES:,} are allowed"
        elif _size(path) != _size(taken / name):
            yield f"{path} has another size than the picture that is taken now"


def _size(path: Path) -> tuple[int, int]:
    """Return width and height of a PNG file."""
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height


def main() -> int:
    """Take the pictures, or check those that are there."""
    if CHROMIUM is None:
        print("no Chromium on this machine: apt-get install chromium", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):
        make_run(Path())
        taken = Path(temporary) if "--check" in sys.argv[1:] else IMAGES
        asyncio.run(take(Path(), taken))
        found = [*problems(taken)]
    for one in found:
        print(f"{one}: run python scripts/pictures.py", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
