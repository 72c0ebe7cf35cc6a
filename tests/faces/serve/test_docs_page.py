"""The page about the service: an example that runs, and tables that say what the description for programs says."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from pcs_annotator.faces.serve import openapi
from pcs_annotator.faces.serve.page import EXAMPLE, ExampleCall, curl, docs_page
from tests.chromium import started_browser
from tests.faces.serve.running import running_in_thread

TOKEN = "a-token-of-some-length"
MANY = ("<b>bold</b>", "مقالة صحيحة", "肯定的な意見", *(f"A long name of a label, number {one}" for one in range(9)))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from started_browser()


def page_of(labels: tuple[str, ...] = ("good", "bad"), *, token: bool = False) -> tuple[str, dict[str, Any]]:
    about = openapi.document(labels)
    return docs_page(about, "<i>run</i>", labels, ExampleCall("http://here", token, {"label": labels[0]}, False)), about


def fields_in(schema: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, one in schema.get("properties", {}).items():
        yield f"{before}{name}"
        yield from fields_in(one, f"{before}{name}.")
        yield from fields_in(one.get("items", {}), f"{before}{name}[].")


def test_every_field_status_and_route_of_the_description_is_on_the_page() -> None:
    page, about = page_of()
    for name, schema in about["components"]["schemas"].items():
        if name != "Error":
            assert all(f"<code>{field}</code>" in page for field in fields_in(schema)), name
    errors = page[page.index('id="errors"') : page.index('id="routes"')]
    statuses = {status for path in about["paths"].values() for one in path.values() for status in one["responses"]}
    assert set(re.findall(r'<th scope="row">(\d+)</th>', errors)) == statuses - {"200"}
    assert errors.count("<table") == 1
    assert all(f"{next(iter(one)).upper()} {path}</code>" in page for path, one in about["paths"].items())


def test_every_field_of_the_reply_is_explained() -> None:
    def unexplained(schema: dict[str, Any]) -> list[str]:
        here = [name for name, one in schema.get("properties", {}).items() if "description" not in one]
        inside = [one.get("items", one) for one in schema.get("properties", {}).values()]
        return [*here, *(name for one in inside for name in unexplained(one))]

    schemas = openapi.document(("good", "bad"))["components"]["schemas"]
    assert unexplained(schemas["ClassifyRequest"]) == unexplained(schemas["Classified"]) == []


def test_labels_are_only_text_and_many_do_not_fill_the_table() -> None:
    page, _ = page_of(MANY)
    assert "<b>bold" not in page
    assert "<i>run" not in page
    assert "one of 13 values" in page


@pytest.mark.parametrize("text", [EXAMPLE, "It's \"quoted\" & 'half", "two\nlines 肯定 $HOME `id`"])
def test_the_command_sends_the_text_as_it_is(text: str) -> None:
    command = shlex.split(curl(ExampleCall("http://here", True, {}, False), text).replace("\\\n", " "))
    assert command[:3] == ["curl", "-s", "http://here/v1/classify"]
    assert "Authorization: Bearer $PCS_TOKEN" in command
    assert json.loads(command[-1]) == {"input": [text]}


def ask(url: str, path: str, body: object = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url + path, data, {"Authorization": f"Bearer {TOKEN}"})) as answer:
        return str(answer.read().decode())


def test_the_page_shows_the_real_reply_to_its_example_once_there_is_one(run: Path) -> None:
    with running_in_thread(run, TOKEN) as url:
        before = ask(url, "/docs")
        assert "A reply looks like this" in before
        assert f"curl -s {url}/v1/classify" in before
        made_up = json.loads(unescape(re.findall(r'id="answer"[^>]*>(.*?)</pre>', before, re.DOTALL)[0]))
        real = json.loads(ask(url, "/v1/classify", {"input": [EXAMPLE]}))
        assert made_up.keys() == real.keys()
        assert made_up["data"][0].keys() == real["data"][0].keys()
        after = ask(url, "/docs")
        assert json.loads(unescape(re.findall(r'id="answer"[^>]*>(.*?)</pre>', after, re.DOTALL)[0])) == real
        assert "A reply looks like this" not in after
        ask(url, "/v1/classify", {"input": ["a secret text"]})
        assert "secret" not in ask(url, "/docs")


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_the_box_labels_a_text_with_the_token_of_the_visit(run: Path, browser: Browser) -> None:
    complaints: list[str] = []
    with running_in_thread(run, TOKEN) as url, browser.new_context() as context:
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{url}/?token={TOKEN}")
        assert page.url == f"{url}/docs"
        page.locator("#text").fill("It's a case that looks good.")
        page.get_by_role("button", name="Label it").click()
        expect(page.locator("#said")).to_contain_text(re.compile(r"^(good|bad) · (accept|review|agree) · "))
        shown = json.loads(page.locator("#answer").inner_text())
        assert shown["data"][0]["label"] in ("good", "bad")
        command = page.locator("#curl").inner_text()
        command = command.replace("$PCS_TOKEN", TOKEN)
        again = json.loads(subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout)
        assert again["data"][0]["label"] == shown["data"][0]["label"]
        page.locator("#text").fill(" ")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#said")).to_have_text("`input[0]` is empty: leave it out")
    assert complaints == [one for one in complaints if "400" in one]


@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_nothing_is_cut_off(
    run: Path, browser: Browser, scheme: Any, phone: bool
) -> None:
    size = {"width": 390, "height": 844} if phone else {"width": 1440, "height": 900}
    with running_in_thread(run) as url, browser.new_context(color_scheme=scheme, viewport=size) as context:  # type: ignore[arg-type]  # a size
        page = context.new_page()
        page.goto(url)
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
