"""What all pages share: colours and one style sheet, an icon, the head of a page, and how their files are sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING

from pcs_annotator.showing.markup import Markup, tag

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def page_head(title: str, name: str) -> Markup:
    """Return the head of a page whose style and script have this name."""
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="/assets/icon.svg"),
        tag("link", rel="stylesheet", href=f"/assets/{name}.css"),
        tag("script", src=f"/assets/{name}.js", defer=True),
    )


def asset_routes(package: str, name: str) -> list[Route]:
    """Return the routes of the files of a package's pages; all are read once: no path from a request is opened."""
    from starlette.routing import Route  # an extra, which the command names before it opens a page

    assets, shared = files(package).joinpath("assets"), files(__package__).joinpath("assets")
    colours = files("pcs_annotator.showing.report").joinpath("colours.css")
    styles = (colours, shared.joinpath("page.css"), assets.joinpath(f"{name}.css"))
    contents = {
        f"{name}.css": b"".join(one.read_bytes() for one in styles),
        f"{name}.js": assets.joinpath(f"{name}.js").read_bytes(),
        "icon.svg": shared.joinpath("icon.svg").read_bytes(),
    }
    return [Route(f"/assets/{file}", _sending(file, content)) for file, content in contents.items()]


def _sending(file: str, content: bytes) -> Callable[[Request], Awaitable[Response]]:
    from starlette.responses import Response

    async def send(_request: Request) -> Response:
        return Response(content, media_type=KINDS[PurePath(file).suffix])

    return send
