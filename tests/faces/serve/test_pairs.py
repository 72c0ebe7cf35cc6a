"""Pairs of texts over HTTP and as a tool of an assistant."""

from pathlib import Path
from typing import Any

import pytest
from mcp.shared.memory import create_connected_server_and_client_session
from starlette.exceptions import HTTPException

import pcs_annotator as pcs
from pcs_annotator.faces.serve import Limits, bodies, openapi
from pcs_annotator.faces.serve.mcp import tools_of
from pcs_annotator.faces.serve.service_app import App
from pcs_annotator.faces.serve.service_page import Door, Standing, service_page
from pcs_annotator.runs.labeller import LoadOptions
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.service import Service
from tests.runs.test_pairs import QUICK, judge, pairs

GIVEN = [{"a": f"Answer {row} is worth {row}.", "b": f"Answer {row} is worth 5."} for row in range(3, 8)]
FOUND = ["b", "b", "tie", "a", "a"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    how: Any = {"pair": ("left", "right"), "relations": ["original", "order"], **QUICK}
    pcs.run(pairs(tmp_path / "data.csv", 40, 30), tmp_path / "run", models=[judge(0), judge(1)], **how)
    return tmp_path / "run"


@pytest.mark.system
@pytest.mark.asyncio
async def test_pairs_are_labelled_as_the_command_labels_them(folder: Path) -> None:
    options = LoadOptions(environment={}, own=OwnObjects.of([judge(0), judge(1)], ()))
    async with Service(folder, options) as service:
        app = App({"": service}, Limits(), variables={})
        several, one = await app.labelled({"input": GIVEN}), await app.labelled({"input": GIVEN[0]})
        async with create_connected_server_and_client_session(tools_of(app)) as client:
            by_tool = (await client.call_tool("classify", {"input": GIVEN[:2]})).structuredContent
        await app.stop()
        about = app._about
    assert [item["label"] for item in several["data"]] == FOUND
    assert [item["label"] for item in one["data"]] == FOUND[:1]
    assert by_tool is not None
    assert [item["label"] for item in by_tool["data"]] == FOUND[:2]
    schemas = about["components"]["schemas"]
    assert schemas["ClassifyRequest"]["properties"]["input"]["oneOf"][0] == schemas["Pair"]
    page = service_page("run@1", {"": service.task}, about, Standing(True, {}), Door("http://here", False, pairs=True))
    assert page.count("<textarea") == 2
    validator = pytest.importorskip("jsonschema")
    validator.validate({"input": GIVEN}, schemas["ClassifyRequest"])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("a text", "`input` must be a pair of texts"),
        ([], "`input` must be a pair of texts"),
        (["a text"], "`input[0]` must be a pair"),
        ([GIVEN[0], {"a": "one"}], "`input[1].b` must be a text, not null"),
        ({"a": "one", "b": 2}, "`input[0].b` must be a text, not a number"),
        ({"a": " ", "b": "two"}, "`input[0].a` is empty"),
    ],
)
def test_what_is_not_a_pair_is_refused_with_its_place(given: object, says: str) -> None:
    with pytest.raises(HTTPException) as error:
        bodies.texts_and_model({"input": given}, 10, pairs=True)
    assert error.value.status_code == 400
    assert says in error.value.detail


def test_a_run_without_pairs_takes_none() -> None:
    with pytest.raises(HTTPException, match="must be a text"):
        bodies.texts_and_model({"input": [GIVEN[0]]}, 10)
    about = openapi.document(("x", "y"))["components"]["schemas"]["ClassifyRequest"]["properties"]["input"]
    assert about["oneOf"][0]["type"] == "string"
