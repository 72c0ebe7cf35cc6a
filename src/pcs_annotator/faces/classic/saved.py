"""What `PCS.save` writes and `PCS.load` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.core.task import Task
from pcs_annotator.core.weights import Weights
from pcs_annotator.errors import ConfigError, TableError
from pcs_annotator.pipeline.classic import OwnRelation, annotator_names, saved_values


class Registered(NamedTuple):
    """What `register_mr` was given; None for a function that a saved file could not hold."""

    how: OwnRelation | None
    checked: bool | None


@dataclass(frozen=True, slots=True)
class LearnedTask:
    """What was asked, and what the answers are worth."""

    task: Task
    weights: Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a saved file holds.

    Attributes:
        path: Of the file, for messages.
        learned: Prompt, labels and weights.
        optimizer: How the weights were learned.
        models: Annotator → what its model is made of; None for an object of the user's.
        textmutator: The model that rewrites, if it has a name.
        own_textmutator: Whether it was an object of the user's.
        known: Relations that have a name.
        own: Those that were registered.
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
        """Return what a file holds; one that is something else is an error that says so."""
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
            raise TableError(f"{path} is not what PCS.save writes: name another file, or save again") from error

    def annotators(self, given: Sequence[object] | None) -> list[object]:
        """Return the annotators: those given again, or the saved names."""
        if given is None:
            objects = [name for name, model in self.models.items() if model is None]
            if objects:
                raise ConfigError(f"{self.path}: annotator {objects[0]!r} is an object of yours: pass annotators=[…]")
            return list(self.models.values())
        if sorted(annotator_names(given)) != sorted(self.models):
            raise ConfigError(f"{self.path} has weights for {', '.join(self.models)}: pass just these as annotators")
        return list(given)

    def rewriter(self, given: object | None) -> object | None:
        """Return the textmutator: the one given, or the saved name."""
        if given is None and self.own_textmutator:
            raise ConfigError(f"{self.path}: the textmutator is an object of yours: pass textmutator=…")
        return self.textmutator if given is None else given


def as_saved(
    annotators: Sequence[object],
    textmutator: object | None,
    known: Sequence[str],
    own: Mapping[str, Registered],
    learned: LearnedTask,
) -> dict[str, Any]:
    """Return plain values for JSON; of objects and functions only the names."""
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
