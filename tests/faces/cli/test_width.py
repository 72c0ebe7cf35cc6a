"""Every table of the terminal at 60, 80 and 120 columns, with long names and long labels."""

import csv
import io
import random
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from rich.console import Console

from pcs_annotator.faces.cli.main import main
from pcs_annotator.showing import to_terminal
from tests.stub import Behaviour, stub_process

pytestmark = pytest.mark.system

MODELS = (
    "openrouter:meta-llama/llama-3.3-70b-instruct:free",
    "openrouter:meta-llama/llama-3.1-405b-instruct:free",
    "azure:my-deployment-gpt-4o-mini-2024-07-18",
)
LABELS = "strongly positive,somewhat positive,neutral or mixed,somewhat negative,strongly negative,not applicable"
WIDTHS = (60, 80, 120)
RUN = ["data.csv", "--labels", LABELS, *(part for model in MODELS for part in ("--model", model))]
FOLDER = "runs/data"
COMMANDS = {
    "run": ["run", *RUN, "--relations", "original,order", "--optimiser", "auto", "--details"],
    "plan": ["plan", *RUN],
    "label": ["label", "data.csv", "--run", FOLDER, "--replace"],
    "evaluate": [
        "evaluate",
        FOLDER,
        "--methods",
        "uniform,majority,zero-shot",
        "--resamples",
        "20",
        "--repeats",
        "1",
        "--details",
    ],
    "ledger": ["ledger", "size", f"{FOLDER}/ledger.db"],
    "models": ["models", "check", *MODELS],
    "all models": ["models", "list"],
    "all relations": ["relations", "list"],
    "relation value": ["relations", "value", FOLDER, "--resamples", "20", "--repeats", "1"],
}
NUMBER = re.compile(r"(?<![\w.,-])\d[\d.,]*\d(?: ?– ?\d[\d.]*| to [+-]?\d[\d.]*)?")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """What each command prints at each width; each is run once."""
    found: dict[str, dict[int, str]] = {}
    rng, words = random.Random(0), ["city", "council", "budget", "bus", "bridge", "school", "teacher"]
    with pytest.MonkeyPatch.context() as patch, stub_process(Behaviour()) as stub:
        patch.chdir(tmp_path_factory.mktemp("wide"))
        for name in ("OPENROUTER", "AZURE_OPENAI"):
            patch.setenv(f"{name}_API_KEY", "none")
        patch.setenv("OPENROUTER_BASE_URL", stub.url)
        patch.setenv("AZURE_OPENAI_ENDPOINT", stub.root)
        with open("data.csv", "w", newline="", encoding="utf-8") as file:
            rows = [[" ".join(rng.choices(words, k=8)), rng.choice(LABELS.split(","))] for _ in range(20)]
            csv.writer(file).writerows([["text", "gold"], *rows])

        Path("pcs.toml").write_text("[learn]\nresamples = 20\n", encoding="utf-8")

        real = to_terminal.show

        def at_every_width(*blocks: object, console: Console | None = None) -> None:
            for width in WIDTHS:
                patch.setenv("COLUMNS", str(width))
                with redirect_stdout(io.StringIO()) as out:
                    real(*blocks)
                found[command][width] = out.getvalue()

        patch.setattr(to_terminal, "show", at_every_width)
        for command, arguments in COMMANDS.items():
            found[command] = {}
            assert main(arguments) == 0
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_too_long_and_no_number_or_interval_is_cut(command: str, texts: dict[str, dict[int, str]]) -> None:
    for width, text in texts[command].items():
        assert max(len(line) for line in text.splitlines() if not line.startswith(to_terminal.COPIED)) <= width
        assert set(NUMBER.findall(text)) >= set(NUMBER.findall(texts[command][120])), width


def test_intervals_are_shown_at_every_width(texts: dict[str, dict[int, str]]) -> None:
    for command in ("run", "evaluate"):
        assert len(re.findall(r"\d\.\d+ ?– ?\d\.\d+", texts[command][80])) > 8
