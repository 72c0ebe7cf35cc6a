"""What `PCS.save` writes and `PCS.load` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.core.task import Task
from pcs_annotator.core.weights import Weights
from pcs_annotator.runs.classic import OwnRelation, annotator_names, saved_values


class Registered(NamedTuple):
    """The arguments of `register_mr`; `how` is None for a function, because a file cannot hold it."""

    how: OwnRelation | None
    checked: bool | None


@dataclass(frozen=True, slots=True)
class LearnedTask:
    """The task, and the weights learned for it."""

    task: Task
    weights: Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The contents of a saved file.

    Attributes:
        path: The file, for messages.
        learned: Prompt, labels and weights.
        optimizer: How the weights were learned.
        models: Annotator → its model's name, or None if the user passed an object.
        textmutator: Name of the model that rewrites; None if there is none, or if the user passed an object.
        own_textmutator: Whether the user passed the textmutator as an object.
        known: Built-in relations, by name.
        own: Registered relations.
    """

    path: Path
    learned: LearnedTask
    optimizer: str
    models: Mapping[str, str | None]
    textmutator: str | None
    own_textmutator: bool
    known: Sequence[str]
    own: Mapping[str, Registered]

    @classmethod
    def read(cls, path: Path) -> Saved:
        """Read a saved file; any other file is a `TableError`."""
        try:
            values = saved_values(path)
            own = {name: Registered(entry["prompt"], entry["checked"]) for name, entry in values["own"].items()}
            return cls(
                path=path,
                learned=LearnedTask(Task(values["prompt"], values["labels"]), Weights.from_dict(values["weights"])),
                optimizer=values["Optimizer"],
                models={entry["name"]: entry["model"] for entry in values["annotators"]},
                textmutator=values["textmutator"],
                own_textmutator=values["own_textmutator"],
                known=values["relations"],
                own=own,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TableError(f"{path} was not written by PCS.save: name another file, or save again") from error

    def annotators(self, given: Sequence[object] | None) -> list[object]:
        """Return the given annotators, or else the saved names."""
        if given is None:
            objects = [name for name, model in self.models.items() if model is None]
            if objects:
                raise ConfigError(f"{self.path}: annotator {objects[0]!r} is an object, not saved: pass annotators=[…]")
            return list(self.models.values())
        if sorted(annotator_names(given)) != sorted(self.models):
            raise ConfigError(f"{self.path} has weights for {', '.join(self.models)}: pass exactly these as annotators")
        return list(given)

    def rewriter(self, given: object | None) -> object | None:
        """Return the given textmutator, or else the saved name."""
        if given is None and self.own_textmutator:
            raise ConfigError(f"{self.path}: the textmutator is an object, not saved: pass textmutator=…")
        return self.textmutator if given is None else given


def as_saved(
    annotators: Sequence[object],
    textmutator: object | None,
    known: Sequence[str],
    own: Mapping[str, Registered],
    learned: LearnedTask,
) -> dict[str, Any]:
    """Return plain values for JSON; objects and functions are saved by name only."""
    named = zip(annotator_names(annotators), annotators, strict=True)
    return {
        "prompt": learned.task.instruction,
        "labels": list(learned.task.labels),
        "annotators": [{"name": name, "model": given if isinstance(given, str) else None} for name, given in named],
        "textmutator": textmutator if isinstance(textmutator, str) else None,
        "own_textmutator": textmutator is not None and not isinstance(textmutator, str),
        "relations": list(known),
        "own": {
            name: {"prompt": entry.how if isinstance(entry.how, str) else None, "checked": entry.checked}
            for name, entry in own.items()
        },
        "weights": learned.weights.to_dict(),
    }
