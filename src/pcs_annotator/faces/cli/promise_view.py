"""What is promised about accepted labels, for a person and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from pcs_annotator.pipeline.promises import Model, promised


def promise_json(model: Model) -> dict[str, Any]:
    """Return certificate and decisions as plain values."""
    return {
        "certificate": None if model.certificate is None else model.certificate.to_dict(),
        "calibrated": model.calibrator is not None,
        "decided_by": model.decided_by,
    }


def print_promise(model: Model, rows: int, console: Console) -> None:
    """Print the certificate: what is promised, for how many rows; or why nothing is."""
    certificate = model.certificate
    if model.by_agreement:
        told = "uncalibrated: labels are accepted where every answer agrees, and nobody knows how often those are wrong"
        console.print(Text(f"\n{told}", style="yellow"))
    if certificate is None:
        return
    sentences = promised(certificate)
    console.print(Text(f"\n{sentences.headline}", style="bold green" if certificate.holds else "bold yellow"))
    for detail in sentences.details:
        console.print(Text(f"  {detail}", style="dim"))
    if certificate.holds:
        console.print(
            f"  accepted {rows - certificate.review_rows:,} of {rows:,} rows, {certificate.review_rows:,} for review"
        )
