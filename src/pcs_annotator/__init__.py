"""Text labels from language models, with a calibrated confidence: the Perceived Confidence Score.

The names below are the public interface. They are loaded when first used, so that importing stays light.
"""

import logging
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pcs_annotator.version import __version__ as __version__
from perceived_confidence import CLASH, is_mixed

if TYPE_CHECKING:
    from pcs_annotator.asking.annotators.annotator import Annotator
    from pcs_annotator.base.errors import PcsError, PcsWarning, UserError
    from pcs_annotator.core.outcome import Decision, Outcome, Outcomes
    from pcs_annotator.core.task import Example, Item, Task
    from pcs_annotator.core.variant import Expectation, Variant
    from pcs_annotator.core.votes import ABSTAINED, NOT_ASKED, Votes
    from pcs_annotator.core.weights import Weights
    from pcs_annotator.faces.classic import PCS
    from pcs_annotator.faces.classifier import PCSClassifier
    from pcs_annotator.faces.loaded_run import LoadedRun
    from pcs_annotator.faces.python import (
        aevaluate,
        alabel,
        arun,
        compare,
        estimate,
        evaluate,
        label,
        load_run,
        relation_values,
        run,
    )
    from pcs_annotator.judging.fit_weights import Optimiser, fit_weights, optimiser
    from pcs_annotator.judging.score import score
    from pcs_annotator.models.provider import provider
    from pcs_annotator.relations.base import Relation
    from pcs_annotator.relations.combine import RelationOptions
    from pcs_annotator.relations.function import relation
    from pcs_annotator.relations.prompted import PromptedRelation
    from pcs_annotator.runs.ask import CollectSettings
    from pcs_annotator.runs.book_result import BookResult
    from pcs_annotator.runs.executors import collect
    from pcs_annotator.runs.run_result import RunResult

__all__ = [
    "ABSTAINED",
    "NOT_ASKED",
    "PCS",
    "Annotator",
    "BookResult",
    "CollectSettings",
    "Decision",
    "Example",
    "Expectation",
    "Item",
    "LoadedRun",
    "Optimiser",
    "Outcome",
    "Outcomes",
    "PCSClassifier",
    "PcsError",
    "PcsWarning",
    "PromptedRelation",
    "Relation",
    "RelationOptions",
    "RunResult",
    "Task",
    "UserError",
    "Variant",
    "Votes",
    "Weights",
    "aevaluate",
    "alabel",
    "arun",
    "collect",
    "compare",
    "estimate",
    "evaluate",
    "fit_weights",
    "label",
    "load_run",
    "optimiser",
    "provider",
    "relation",
    "relation_values",
    "run",
    "score",
]

_NAMES = {
    "asking.annotators.annotator": ("Annotator",),
    "base.errors": ("PcsError", "PcsWarning", "UserError"),
    "core.outcome": ("Decision", "Outcome", "Outcomes"),
    "core.task": ("Example", "Item", "Task"),
    "core.variant": ("Expectation", "Variant"),
    "core.votes": ("ABSTAINED", "NOT_ASKED", "Votes"),
    "core.weights": ("Weights",),
    "faces.classic": ("PCS",),
    "faces.classifier": ("PCSClassifier",),
    "faces.loaded_run": ("LoadedRun",),
    "judging.fit_weights": ("Optimiser", "fit_weights", "optimiser"),
    "judging.score": ("score",),
    "models.provider": ("provider",),
    "relations.base": ("Relation",),
    "relations.combine": ("RelationOptions",),
    "relations.function": ("relation",),
    "relations.prompted": ("PromptedRelation",),
    "runs.ask": ("CollectSettings",),
    "runs.executors": ("collect",),
    "runs.run_result": ("RunResult",),
}
# the others are the functions of this module
_HOMES = dict.fromkeys(__all__, "faces.python") | {name: home for home, names in _NAMES.items() for name in names}

logging.getLogger(__name__).addHandler(logging.NullHandler())

if is_mixed():
    warnings.warn(CLASH, stacklevel=2)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
