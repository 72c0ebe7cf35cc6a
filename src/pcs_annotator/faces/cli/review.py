"""`pcs review`: a page in the browser for the rows that need a person."""

import asyncio
import webbrowser
from dataclasses import replace
from pathlib import Path
from shlex import join
from threading import Thread
from typing import Any

import click

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.faces.cli import options
from pcs_annotator.faces.review.layout import keys_of, link
from pcs_annotator.faces.web import need_web
from pcs_annotator.reviewing.book_review import BookReview
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.book import Book

LARGEST_FORM = 256 * 1024  # bytes; a verdict with the longest note has a tenth of this


@click.command("review")
@click.argument("folder", type=options.PATH)
@options.listening_options(8130)
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the page in a browser.")
@click.option("--reviewer", default="", metavar="NAME", help="Your name; default: the page asks for it once.")
@options.options_in(ReviewOptions)
@click.option("--keys", default="", metavar="KEYS", help="One key per label, in their order, such as `pnx`.")
def command(*, folder: Path, browser: bool, reviewer: str, keys: str, **choices: Any) -> None:
    """Review rows of the run in FOLDER in a browser: one key per row, and every verdict is stored before the next."""
    need_web("pcs review")
    from pcs_annotator.faces.review.review_app import Pages
    from pcs_annotator.faces.web.server import listen, serve

    how, name, book = options.take(ReviewOptions, choices), folder.resolve().name, Book.open(folder)
    if book.named and keys:
        raise ConfigError("--keys is for one variable: leave it out, or name the folder of one variable")
    token = choices["token"]
    listening = options.take(listen, choices)
    listening = replace(listening, rules=replace(listening.rules, max_body=LARGEST_FORM))
    with listening.socket, BookReview.open(book, how) as review:
        labels = keys_of(review.labels, keys)
        pages = Pages(review, name, labels, reviewer)
        for note in review.notes:
            options.say(note)
        if browser:
            # a browser in the terminal would not return
            address = link(f"{listening.url}/", **({"token": token} if token else {}))
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        asyncio.run(serve(pages.app(), listening, options.say))
    options.say(f"next  {join(['pcs', 'fit', str(folder)])}    # learns from all verdicts; no model is called")
