"""Trustworthy text labelling with language models: the Perceived Confidence Score.

The names below are the public interface. They are loaded when first used, so that importing stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pcs_annotator.version import __version__ as __version__

if TYPE_CHECKING:
    from pcs_annotator.asking.annotators.annotator import Annotator
    from pcs_annotator.asking.relations.base import Relation
    from pcs_annotator.asking.relations.choose import Choosing
    from pcs_annotator.asking.relations.function import relation
    from pcs_annotator.asking.relations.prompted import PromptedRelation
    from pcs_annotator.core.codes import ABSTAINED, NOT_ASKED
    from pcs_annotator.core.expectation import Expectation
    from pcs_annotator.core.item import Item
    from pcs_annotator.core.outcome import Decision, Outcome
    from pcs_annotator.core.task import Task
    from pcs_annotator.core.variant import Variant
    from pcs_annotator.core.votes import Votes
    from pcs_annotator.core.weights import Weights
    from pcs_annotator.errors import PcsError, PcsWarning, UserError
    from pcs_annotator.faces.classic import PCS
    from pcs_annotator.faces.classifier import PCSClassifier
    from pcs_annotator.judging.fitting import fit_weights
    from pcs_annotator.judging.optimiser import Optimiser, optimiser
    from pcs_annotator.judging.scoring import score
    from pcs_annotator.pipeline.collecting import CollectSettings, collect

__all__ = [
    "ABSTAINED",
    "NOT_ASKED",
    "PCS",
    "Annotator",
    "Choosing",
    "CollectSettings",
    "Decision",
    "Expectation",
    "Item",
    "Optimiser",
    "Outcome",
    "PCSClassifier",
    "PcsError",
    "PcsWarning",
    "PromptedRelation",
    "Relation",
    "Task",
    "UserError",
    "Variant",
    "Votes",
    "Weights",
    "collect",
    "fit_weights",
    "optimiser",
    "relation",
    "score",
]

_HOMES = {
    "ABSTAINED": "core.codes",
    "NOT_ASKED": "core.codes",
    "PCS": "faces.classic",
    "Annotator": "asking.annotators.annotator",
    "Choosing": "asking.relations.choose",
    "CollectSettings": "pipeline.collecting",
    "Decision": "core.outcome",
    "Expectation": "core.expectation",
    "Item": "core.item",
    "Optimiser": "judging.optimiser",
    "Outcome": "core.outcome",
    "PCSClassifier": "faces.classifier",
    "PcsError": "errors",
    "PcsWarning": "errors",
    "PromptedRelation": "asking.relations.prompted",
    "Relation": "asking.relations.base",
    "Task": "core.task",
    "UserError": "errors",
    "Variant": "core.variant",
    "Votes": "core.votes",
    "Weights": "core.weights",
    "collect": "pipeline.collecting",
    "fit_weights": "judging.fitting",
    "optimiser": "judging.optimiser",
    "relation": "asking.relations.function",
    "score": "judging.scoring",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
