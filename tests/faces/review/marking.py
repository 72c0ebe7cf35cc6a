"""Pages with passages to mark, without a run: what is sent comes back as a message, and is kept."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from pcs_annotator.core.passages import Extraction, Passage
from pcs_annotator.faces.review.forms import form_of
from pcs_annotator.faces.review.item import buttons_view
from pcs_annotator.faces.review.layout import Screen, post_form, whole_page
from pcs_annotator.faces.review.passage_form import passage_field, value_field
from pcs_annotator.faces.review.review_app import _assets, _sending
from pcs_annotator.showing.highlights import Marked
from pcs_annotator.showing.markup import Markup, joined, tag
from tests.faces.web.serving import serving

TEXT = (
    "Smoking 🚬 causes cancer, because tar damages lungs. A 2019 study of 1,200 cafe\u0301s shows it.\r\n\r\n"
    "Some 👩🏽‍🚀 people disagree: they say that grandfathers smoked until 90. "
    "<b>Still</b>, the risk is 25 times higher."
)
EXTRACTION = Extraction(("claim", "evidence", "rebuttal"))


def passage(words: str, type_: str = "claim", value: str = "", text: str = TEXT) -> Passage:
    """Return where words stand in a text."""
    return Passage(text.index(words), text.index(words) + len(words), type_, value)


CANDIDATES = (
    Marked(passage("Smoking 🚬 causes cancer"), 0.97, "accept"),
    Marked(passage("tar damages lungs", "evidence"), 0.41, "review"),
    Marked(passage("A 2019 study of 1,200 cafe\u0301s shows it", "evidence"), 0.88, "accept"),
    Marked(passage("1,200 cafe\u0301s", "claim"), 0.12, "review"),
    Marked(passage("grandfathers smoked until 90", "rebuttal"), 0.63, "review"),
)
VALUES = (
    Marked(passage("1,200", "value", "1200"), 0.71, "review"),
    Marked(passage("2019", "value", "2019"), 0.2, None),
    Marked(passage("25", "value", "25"), 0.09, None),
)


def blind(marked: Sequence[Marked]) -> list[Marked]:
    """Return passages as somebody sees them who judges first."""
    return [Marked(each.passage) for each in marked]


def marking_page(fields: Mapping[str, Sequence[Markup]], text: str = TEXT) -> str:
    """Return a page with a text, and a form with these variables."""
    head = tag("header", tag("h1", "Row t1", id="item-title"), class_="item-head")
    shown = tag("div", text, class_="text", id="text", dir="auto", tabindex="0", lang="")
    article = tag("article", head, shown, id="item", tabindex="-1", aria_labelledby="item-title")
    boxes = [
        tag(
            "fieldset",
            tag("legend", tag("b", name), tag("span", "What is said about smoking?", class_="quiet")),
            *content,
            data_variable=name,
            tabindex="-1",
            class_="variable",
        )
        for name, content in fields.items()
    ]
    save = tag("button", tag("kbd", "↵"), "Save", id="save", class_="strong")
    below = tag("div", save, *buttons_view(None), class_="beside")
    form = post_form("verdict", {"id": "t1"}, *boxes, below, aria_label="Verdicts", class_="verdicts")
    work = tag("div", tag("div", article, form, class_="card both"), class_="work")
    aside = tag(
        "aside",
        tag("section", tag("h2", "Guidelines"), tag("p", "Mark what is said.")),
        tabindex="0",
        aria_label="Aside",
    )
    screen = Screen(title="Row t1", main=tag("div", work, aside, class_="desk"), address="/")
    return whole_page(screen, "run", "Ana", {}, joined())


def marked_page(marked: Sequence[Marked] = CANDIDATES, text: str = TEXT, extraction: Extraction = EXTRACTION) -> str:
    """Return a page with passages to mark."""
    return marking_page({"claims": list(passage_field("claims", text, extraction, marked))}, text)


def valued_page(marked: Sequence[Marked] = VALUES, chosen: str | None = None, text: str = TEXT) -> str:
    """Return a page with a value to choose."""
    return marking_page({"people": list(value_field("people", text, marked, chosen))}, text)


class Sent(list[dict[str, str]]):
    """What was sent, form by form."""

    def passages(self) -> list[tuple[int, int, str]]:
        """Return the passages in the last form."""
        return [(row["start"], row["end"], row["type"]) for row in json.loads(self[-1]["claims"])]


@contextmanager
def page_with(content: str) -> Iterator[tuple[str, Sent]]:
    """Serve a page under the policy of the real one; yields its address, and what is sent to it."""
    sent, ready, stop, addresses = Sent(), Event(), Event(), list[str]()

    async def show(_: Request) -> Response:
        return HTMLResponse(content.encode())

    async def keep(request: Request) -> Response:
        sent.append(await form_of(request))
        return JSONResponse({"message": f"Saved {len(sent)}", "kind": "saved"})

    routes = [
        Route("/", show),
        Route("/verdict", keep, methods=["POST"]),
        Route("/progress", lambda _: JSONResponse({})),
    ]
    routes += [Route(f"/assets/{name}", _sending(*asset)) for name, asset in _assets().items()]

    async def serve() -> None:
        async with serving(Starlette(routes=routes)) as door:
            addresses.append(door.url)
            ready.set()
            while not stop.is_set():
                await asyncio.sleep(0.01)

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield addresses[0], sent
    finally:
        stop.set()
        thread.join(30)
