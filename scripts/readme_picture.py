"""Draw docs/images/fit.svg: what `pcs fit` prints for the example, as the README shows it."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from pcs_annotator.faces.cli.fit_view import print_fit
from pcs_annotator.pipeline.project import FitFiles, fit_table
from pcs_annotator.pipeline.steps import LearnSettings

ROOT = Path(__file__).resolve().parents[1]
# the picture must not fetch a font from anywhere
SVG_FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main() -> None:
    """Fit the example and save the picture."""
    with tempfile.TemporaryDirectory() as folder:
        fitted = fit_table(
            FitFiles(table=ROOT / "examples/votes.csv", model=Path(folder, "model.json")), LearnSettings()
        )
    console = Console(record=True, width=88, file=io.StringIO(), highlight=False)
    shown = FitFiles(
        table=Path("examples/votes.csv"), model=Path("demo/model.json"), labels_out=Path("demo/labels.csv")
    )
    console.print("[bold]$ pcs fit examples/votes.csv --out demo/labels.csv[/]\n")
    print_fit(fitted, shown, [], console)
    console.save_svg(str(ROOT / "docs/images/fit.svg"), title="pcs fit", code_format=SVG_FORMAT, unique_id="fit")


if __name__ == "__main__":
    main()
