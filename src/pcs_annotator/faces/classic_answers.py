"""Answers about a classic dataset: asked for now and written beside it, or read from where they were written."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from pcs_annotator.core.tabular import as_arrow
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import PcsWarning, TableError
from pcs_annotator.faces.classic_annotations import (
    GENERATE,
    Annotated,
    Axes,
    has_votes,
    read_annotations,
    with_annotations,
)
from pcs_annotator.faces.classic_table import ClassicDataset
from pcs_annotator.pipeline.classic import Asked, ask_texts, write_annotations
from pcs_annotator.pipeline.panel import Panel


async def ask_about(panel: Panel, dataset: ClassicDataset, rows: Sequence[int], path: Path) -> Votes:
    """Ask about rows of the dataset, and write what was said to a file beside it."""
    texts = [dataset.texts[row] for row in rows]
    asked = await ask_texts(panel, texts)
    warn_of_open_questions(asked)
    for relation, cause in asked.unchanged.items():
        message = f"relation {relation!r} changed none of {len(texts)} texts ({cause}): it casts no vote"
        warnings.warn(message, PcsWarning, stacklevel=2)
    rewrites = {relation: [asked.rewrite(text, relation) for text in texts] for relation in asked.votes.relations}
    try:
        write_annotations(path, with_annotations(dataset, rows, rewrites, asked.votes))
    except (OSError, TableError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        message = f"{path.name} is not written ({reason}); the answers are safe in {panel.ledger}"
        warnings.warn(message, PcsWarning, stacklevel=2)
    return asked.votes


def read_answers(dataset: ClassicDataset, rows: Sequence[int], axes: Axes, path: Path) -> Annotated:
    """Return votes that were given before, from the file beside the dataset or from the dataset itself."""
    if path.exists():
        return read_annotations(as_arrow(path), path.name, dataset, rows, axes)
    if has_votes(dataset.table, axes.annotators):
        return read_annotations(dataset.table, dataset.name, dataset, rows, axes)
    raise TableError(f"there are no answers to learn from, no file {path}: {GENERATE} about {dataset.name}")


def warn_of_open_questions(asked: Asked) -> None:
    """Warn of questions that nobody answered."""
    failed = asked.tally.failed
    if failed:
        causes = ", ".join(f"{cause}: {count}" for cause, count in failed.most_common())
        message = f"{failed.total()} questions stay open ({causes}); the same call again asks only those"
        warnings.warn(message, PcsWarning, stacklevel=3)


def warn_of_silence(asked: Asked) -> None:
    """Warn of texts without a usable answer."""
    silent = int(asked.votes.silent.sum())
    if silent:
        message = f"nobody gave a usable label to {silent} of {len(asked.votes)} texts: their scores are equal"
        warnings.warn(message, PcsWarning, stacklevel=3)
