"""The tutorial notebook runs in a real kernel, with a bar, rich display and an interrupt that loses nothing."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.system

TUTORIAL = Path(__file__).resolve().parents[1] / "examples" / "tutorial.ipynb"
SLOW = """
import os, pathlib, time

pathlib.Path("kernel").write_text(str(os.getpid()))

def slow(question):
    with open("asked", "a") as file:
        print(file=file)
    if not pathlib.Path("quick").exists() and pathlib.Path("asked").stat().st_size > 5:
        pathlib.Path("enough").touch()
        time.sleep(0.3)
    return "<label>good</label>"

texts = [f"Text number {row}." for row in range(12)]
usual = {"labels": ["good", "bad"], "models": [slow], "relations": ["original"], "concurrency": 1}
"""
RUN_SLOW = 'pcs.run(texts, "slow", **usual)'
RESUME = (
    'pathlib.Path("quick").touch(); again = pcs.run(texts, "slow", progress=False, **usual); again.tally.from_ledger'
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookClient]:
    """The executed tutorial, with its kernel still running."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(TUTORIAL, as_version=4)  # type: ignore[no-untyped-call]  # nbformat has few types
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
    with client.setup_kernel():
        for place, cell in enumerate(notebook.cells):
            client.execute_cell(cell, place)
        client.set_widgets_metadata()
        yield client


def shown(client: NotebookClient, source: str) -> dict[str, str]:
    """Return what the first cell with this source shows."""
    cell = next(cell for cell in client.nb.cells if source in cell.source and cell.cell_type == "code")
    return dict(cell.outputs[-1].data)


def execute(client: NotebookClient, source: str, *tags: str) -> Any:
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)})  # type: ignore[no-untyped-call]
    client.nb.cells.append(cell)
    return client.execute_cell(client.nb.cells[-1], len(client.nb.cells) - 1)


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(TUTORIAL, as_version=4)  # type: ignore[no-untyped-call]  # nbformat has few types
    nbformat.validate(notebook)
    assert not any(cell.outputs for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("pcs.run(", ["60 rows", "accept", "good", "report.html"]),
        ("result.weights", ["right_9_of_10", "right_7_of_10", "order", "60 gold rows"]),
        ("result.outcomes", ["60 outcomes", "the first 20 of 60", "accept"]),
        ("result.report()", ["<iframe srcdoc", 'href="runs/reviews/report.html"']),
        ("run.label(", ["1 outcome", "good"]),
        ("run.alabel(", ["2 outcomes", "bad"]),
    ],
)
def test_results_show_themselves(client: NotebookClient, source: str, words: list[str]) -> None:
    found = shown(client, source)["text/html"]
    assert [word for word in words if word not in found] == []


def test_one_bar_stays_below_the_run(client: NotebookClient) -> None:
    models = client.nb.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"].values()
    (bar,) = [one["state"] for one in models if one["model_name"] == "FloatProgressModel"]
    assert (bar["value"], bar["max"], bar["bar_style"]) == (60, 60, "success")
    texts = [one["state"].get("value", "") for one in models if one["model_name"] == "HTMLModel"]
    assert "60 of 60 rows, 240 calls" in "".join(texts).replace("\u2007", " ")  # tqdm aligns with wide blanks


def test_an_interrupted_cell_keeps_its_answers_and_the_next_one_resumes(client: NotebookClient) -> None:
    folder = Path(client.resources["metadata"]["path"])
    execute(client, SLOW)

    def interrupt_once_enough_is_asked() -> None:
        while not (folder / "enough").exists():
            threading.Event().wait(0.05)
        os.kill(int((folder / "kernel").read_text()), signal.SIGINT)

    watching = threading.Thread(target=interrupt_once_enough_is_asked, daemon=True)
    watching.start()
    stopped = execute(client, RUN_SLOW, "raises-exception")
    watching.join(60)
    assert stopped.outputs[-1].ename == "KeyboardInterrupt"
    asked = (folder / "asked").stat().st_size
    assert asked < 12
    resumed = execute(client, RESUME)
    assert int(resumed.outputs[-1].data["text/plain"]) >= asked - 1  # all but the call under way
