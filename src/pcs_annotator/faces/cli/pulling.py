"""Fetching weights, with a bar to watch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from pcs_annotator.pipeline.models import missing_weights, pull_weights


def pull_missing(models: Sequence[str], *, shown: bool) -> None:
    """Fetch the weights of embedded models that are not on this machine yet."""
    for name in missing_weights(models):
        pull_with_bar(name, shown=shown)


def pull_with_bar(model: str, *, shown: bool) -> Path:
    """Fetch the weights of one embedded model and return where they are."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown, transient=True) as bar:
        task = bar.add_task(f"fetching {model}", total=None)
        return pull_weights(model, lambda there, total: bar.update(task, completed=there, total=total))
