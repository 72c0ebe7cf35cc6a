"""What annotators are asked to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pcs_annotator.core.labels import check_labels, label_lookup
from pcs_annotator.errors import LabelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One text to label. It carries no gold label, so that gold cannot leak into a prompt."""

    id: str
    text: str


@dataclass(frozen=True)
class Task:
    """An instruction, a closed set of labels and, optionally, what each label means.

    Examples:
        >>> Task("How does the writer feel?", labels=["positive", "neutral", "negative"]).labels
        ('positive', 'neutral', 'negative')
    """

    instruction: str
    labels: Sequence[str]
    meanings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels = check_labels(self.labels)
        if len(labels) < 2:
            raise LabelError(f"a task needs at least two labels to choose from, got only {labels[0]!r}")
        known = label_lookup(labels)
        stray = [label for label in self.meanings if label.casefold() not in known]
        if stray:
            raise LabelError(f"meanings are given for {stray}, which are not among the labels {list(labels)}")
        meanings = {labels[known[label.casefold()]]: meaning for label, meaning in self.meanings.items()}
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "meanings", meanings)
