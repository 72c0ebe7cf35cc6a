"""Take the picture of the report in the docs from a simulated run; with --check, take it aside and compare sizes.

    python scripts/pictures.py

Needs Chromium. The models are simulated: nothing is called and nothing is paid for.
"""

from __future__ import annotations

import contextlib
import csv
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

from playwright.sync_api import sync_playwright

from pcs_annotator import run

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "report.png"
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
WINDOW = {"width": 1180, "height": 500}


def write_news(path: Path) -> dict[str, str]:
    """Write 300 invented news items, the first half with gold labels; return the topic of each text."""
    with NEWS.open(encoding="utf-8", newline="") as file:
        news = [*csv.DictReader(file)]
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
    run(folder / "news.csv", folder / RUN, models=models, labels=TOPICS, instruction=question, max_error=0.05)


def take(folder: Path, to: Path) -> None:
    """Take the picture of the report of a run below this folder."""
    how = {"viewport": WINDOW, "device_scale_factor": SCALE, "color_scheme": "light"}
    with sync_playwright() as play, play.chromium.launch(executable_path=CHROMIUM, args=[*QUIET]) as browser:
        page = browser.new_page(**how)  # type: ignore[arg-type]  # a mix
        page.goto((folder / RUN / "report.html").absolute().as_uri())
        page.screenshot(path=to)


def problem(taken: Path) -> str:
    """Return what is wrong with the picture in the docs, compared with the one just taken; empty if nothing is."""
    if not PICTURE.exists():
        return "is missing"
    if PICTURE.stat().st_size > MOST_BYTES:
        return f"has {PICTURE.stat().st_size:,} bytes; at most {MOST_BYTES:,} are allowed"
    return "" if _size(PICTURE) == _size(taken) else "has another size than the picture that is taken now"


def _size(path: Path) -> tuple[int, int]:
    """Return width and height of a PNG file."""
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height


def main() -> int:
    """Take the picture, or check the one that is there."""
    if CHROMIUM is None:
        print("no Chromium on this machine: apt-get install chromium", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):
        make_run(Path())
        taken = Path("report.png") if "--check" in sys.argv[1:] else PICTURE
        take(Path(), taken)
        found = problem(taken)
    if found:
        print(f"{PICTURE} {found}: run python scripts/pictures.py", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
