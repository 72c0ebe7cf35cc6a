"""From a key press to the next row on screen, in a real browser, on a run of 100,000 rows.

Run it with `python -m benchmarks.review_page [FOLDER] [--rows N] [--keys N]`. The run folder is made once, in FOLDER
(default: a temporary one); `pcs review` runs as a process of its own, and fits in the background are on.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.review_speed import make_run

WATCH = """() => {
  window.taken = [];
  let pressed = null;
  addEventListener("keydown", (event) => { pressed = event.timeStamp; }, true);
  new MutationObserver(() => {
    const began = pressed;
    // a task after the frame's callbacks runs when the frame has been painted
    requestAnimationFrame(() => setTimeout(() => window.taken.push(performance.now() - began)));
  }).observe(document.getElementById("main"), { childList: true });
}"""
THINKING = 300
"""Milliseconds between a row and the key for it; people take longer, and a browser that never rests is slower."""
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@contextmanager
def reviewing(folder: Path) -> Iterator[str]:
    """Run `pcs review` on a folder; yields its address."""
    command = [sys.executable, "-m", "pcs_annotator", "review", str(folder), "--port", "0", "--no-browser"]
    process = subprocess.Popen([*command, "--reviewer", "bench"], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        address = next((line.split()[0] for line in process.stderr if line.startswith("http")), None)
        if address is None:
            raise SystemExit("pcs review did not start")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def press_keys(page: Page, times: int) -> list[float]:
    """Return how long each of some presses took, in milliseconds."""
    page.evaluate(WATCH)
    for number in range(times):
        page.wait_for_timeout(THINKING)
        page.keyboard.press("123"[number % 3])
        page.wait_for_function("count => window.taken.length > count", arg=number)
    return [float(one) for one in page.evaluate("window.taken")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=100)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="review-page-"))
    if not (folder / "book.json").exists():
        make_run(folder, given.rows)
    (folder / "draws.jsonl").unlink(missing_ok=True)
    with reviewing(folder) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        page = browser.new_page()
        page.goto(f"{url}/?queue=learn")
        page.wait_for_selector("html.ready")
        taken = press_keys(page, given.keys)
        browser.close()
    worst = statistics.quantiles(taken, n=20)[-1]
    print(
        f"key press → next row painted: median {statistics.median(taken):.0f} ms, 95 % {worst:.0f} ms, n={len(taken)}"
    )
    return 0 if statistics.median(taken) <= 100 else 1


if __name__ == "__main__":
    sys.exit(main())
