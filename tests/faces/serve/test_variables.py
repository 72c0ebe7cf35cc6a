"""All variables of a codebook over HTTP."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from unittest import mock

import aiohttp
import pytest
from starlette.exceptions import HTTPException

from pcs_annotator.faces.serve import Limits
from pcs_annotator.faces.serve.service_app import App
from pcs_annotator.models.provider import providers
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.labeller import LoadOptions
from pcs_annotator.runs.service import Classified, Service, Spent
from tests.faces.review.coded import FRAMES, Coder, make_codebook, truth
from tests.faces.web.serving import serving
from tests.made_once import made_once
from tests.simulated import copy_run


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Book:
    made = made_once(tmp_path_factory, "codebook", make_codebook) / "run"
    book = Book.open(copy_run(made, tmp_path / "run"))
    return book


def test_a_text_gets_all_variables_for_the_price_of_one(folder: Book) -> None:
    asyncio.run(_check(folder))


async def _slowly(service: Service, text: str, group: str | None) -> Classified:
    """Each part takes less than the time of a request, and all together take more."""
    await asyncio.sleep(0.3)
    return Classified(outcome=None, probabilities=(), spent=Spent(0, 0, 0, 0, None), error=None, version="1")


async def _check(folder: Book) -> None:
    with mock.patch.dict(providers._factories, {"coder": Coder}):
        services = folder.each(lambda place: Service(place, LoadOptions(environment={})))
        async with AsyncExitStack() as stack:
            for one in services.values():
                await stack.enter_async_context(one)
            app = App(services, Limits(), variables=folder.variables)
            async with serving(app.asgi) as door, aiohttp.ClientSession(door.url) as client:
                about = await (await client.get("/openapi.json")).json()
                texts = [f"Text {row} is new." for row in range(700, 710)]
                reply = await (await client.post("/v1/classify", json={"input": texts})).json()
                other = await client.post("/v1/classify", json={"input": "x", "model": "other"})
                assert other.status == 404
                again = await client.post("/v1/classify", json={"input": texts, "model": reply["model"]})
                assert again.status == 200
                calls = sum(one.tracker.calls for one in services.values())
                assert f"pcs_calls_total {calls}" in await (await client.get("/metrics")).text()
                last = [*services.values()][-1]
                last.note_failure("late")
                ready = await client.get("/ready")
                assert (ready.status, (await ready.json())["reason"]) == (503, last.trouble)
                late = App(services, Limits(seconds=0.5), variables=folder.variables)
                with (
                    mock.patch.object(Service, "classify", _slowly),
                    pytest.raises(HTTPException, match=r"within 0\.5 s"),
                ):
                    await late.labelled({"input": "Text 1 is new."})
                await late.stop()
            await app.stop()
    schema = {"$ref": "#/components/schemas/Classified", "components": about["components"]}
    pytest.importorskip("jsonschema").validate(reply, schema)  # comes with schemathesis
    assert "applies" in str(about)
    assert reply["usage"]["calls"] <= 4 * len(texts)  # two models, two relations
    assert reply["usage"]["known_already"] > reply["usage"]["calls"]
    data = reply["data"]
    assert sum(one["topic"]["label"] == truth("topic", row) for row, one in enumerate(data, 700)) >= 6
    assert [part["label"] for part in data[0]["frames"]] == list(FRAMES)
    assert {part["applies"] for one in data for part in one["frames"]} == {True, False}
    assert all(0 <= part["confidence"] <= 1 for one in data for part in one["frames"])
    assert {"low", "high"} <= data[0]["tone"].keys()
    assert reply["labels"]["frames"] == list(FRAMES)
