"""The run behind the tour of `pcs demo`: invented news, and two prompts for the embedded model."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.settings import RunSettings
from pcs_annotator.verbs import run

LABELS = ("world", "sports", "business", "technology")
INSTRUCTION = "What is this news item about?"
STYLES = ("embedded:smollm2", "embedded:smollm2/plain")
FOLDER = Path("pcs-demo")
# A model this small and sixty gold rows are not enough for the usual promise of 5 %.
MAX_ERROR = 0.2


def run_tour(folder: Path, *, progress: bool, limit: int | None = None) -> RunResult:
    """Run the whole method on the invented news, or on its first `limit` rows."""
    settings: RunSettings = {
        "labels": LABELS,
        "instruction": INSTRUCTION,
        "models": STYLES,
        "gold_column": "topic",
        "text_column": "text",
        "max_error": MAX_ERROR,
    }
    with as_file(files("pcs_annotator.faces.demo") / "news.csv") as data:
        config = resolve_config.settings_of(settings)
        return run.run(
            RunRequest(data=data, folder=folder, config=config, limit=limit, progress=progress, replace=True)
        )
