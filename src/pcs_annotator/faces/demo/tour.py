"""What the tour runs: invented news, the embedded model, rewrites by rule."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.pipeline.resolve_config import Flags, flags_only
from pcs_annotator.pipeline.run import RunRequest, run
from pcs_annotator.pipeline.run_folder import RunResult

LABELS = ("world", "sports", "business", "technology")
INSTRUCTION = "What is this news item about?"
STYLES = ("embedded:smollm2", "embedded:smollm2/plain")
RELATIONS = (ORIGINAL, "voice", "double-negation", "synonym")
FOLDER = Path("pcs-demo")
# A model this small and sixty gold rows are not enough for the usual promise of 5 %.
MAX_ERROR = 0.2


def run_tour(folder: Path, *, progress: bool, limit: int | None = None) -> RunResult:
    """Run the whole method on the invented news, or on its first `limit` rows."""
    flags = Flags(
        labels=LABELS,
        instruction=INSTRUCTION,
        models=STYLES,
        relations=RELATIONS,
        gold_column="topic",
        text_column="text",
        max_error=MAX_ERROR,
    )
    with as_file(files("pcs_annotator.faces.demo") / "news.csv") as data:
        return run(RunRequest(data=data, folder=folder, config=flags_only(flags), limit=limit, progress=progress))
