"""Take the pictures of the review page in docs/images: the demo's news, labelled by the embedded model, in Chromium.

Needs the extras `web` and `dev`, Chromium, and some minutes of one core. Run it after changes of the page.
"""

from __future__ import annotations

import asyncio
import csv
from importlib.resources import files
from io import BytesIO, StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.async_api import Browser, Page, async_playwright

from pcs_annotator.faces.demo.tour import INSTRUCTION, LABELS, STYLES
from pcs_annotator.faces.review.app import Pages
from pcs_annotator.faces.review.keys import keys_of
from pcs_annotator.faces.web.server import listen, serve
from pcs_annotator.runs.resolve_config import settings_of
from pcs_annotator.runs.review.session import Review
from pcs_annotator.runs.review.values import ReviewOptions
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.verbs.run import run
from tests.chromium import CHROMIUM, QUIET

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
GOLD_ROWS, VERDICTS, SIZE = 20, 12, {"width": 1200, "height": 690}
GUIDELINES = """What is the news item about? Judge what it is *mainly* about.

- **world**: politics, elections, conflicts, disasters
- **sports**: games, athletes, clubs, also transfers
- **business**: companies, markets, prices, central banks
- **technology**: science, software, devices, space

When two fit, take the one that the first half of the sentence is about.
"""


def label_news(folder: Path) -> Path:
    """Return a run over the demo's news, of which the first rows have gold."""
    text = files("pcs_annotator.faces.demo").joinpath("news.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(StringIO(text)))
    with (folder / "news.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "gold", "source"])
        for place, row in enumerate(rows):
            writer.writerow([row["id"], row["text"], row["topic"] if place < GOLD_ROWS else "", "Coastal Post"])
    config = settings_of(
        {"labels": LABELS, "instruction": INSTRUCTION, "models": STYLES, "relations": ["original", "order"]}
    )
    run(RunRequest(data=folder / "news.csv", folder=folder / "news", config=config))
    (folder / "rules.md").write_text(GUIDELINES, encoding="utf-8")
    return folder / "news"


async def opened(browser: Browser, url: str, scheme: str) -> Page:
    """Return the page of somebody whose name is known."""
    settings = {"viewport": SIZE, "device_scale_factor": 2, "color_scheme": scheme, "reduced_motion": "reduce"}
    context = await browser.new_context(**settings)  # type: ignore[arg-type]  # a mix
    await context.add_cookies([{"name": "reviewer", "value": "Ana", "url": url}])
    page = await context.new_page()
    await page.goto(url)
    await page.wait_for_selector("html.ready")
    return page


async def take_pictures(url: str) -> None:
    """Judge some rows, then take one picture of a row, and one of the queues."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        page = await opened(browser, url, "light")
        for _ in range(VERDICTS):
            await page.wait_for_timeout(1_500)  # the page shows the pace
            before = await page.locator("#item-title").inner_text()
            await page.keyboard.press("Enter")
            await page.wait_for_function("old => document.getElementById('item-title').innerText !== old", arg=before)
        save(await page.screenshot(), "review-row.png")
        page = await opened(browser, url, "dark")
        await page.locator(".queues summary").click()
        save(await page.screenshot(), "review-queues.png")
        await browser.close()


def save(picture: bytes, name: str) -> None:
    """Write a picture with as many colours as it needs, a quarter of the bytes."""
    Image.open(BytesIO(picture)).convert("RGB").quantize(128).save(IMAGES / name, optimize=True)


async def main() -> None:
    """Take all pictures."""
    with TemporaryDirectory() as folder:
        path = label_news(Path(folder))
        options = ReviewOptions(refit_every=0, seed=1, guidelines=path.parent / "rules.md")
        with Review.open(path, options) as review:
            door = listen("127.0.0.1", 0)
            app = Pages(review, path.name, keys_of(review.labels)).app()
            serving = asyncio.create_task(serve(app, door, print))
            await take_pictures(door.url)
            serving.cancel()
            await asyncio.wait([serving])


if __name__ == "__main__":
    asyncio.run(main())
