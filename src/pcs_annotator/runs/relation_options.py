"""How the relations that settings name are found, and which ones the paper uses."""

from __future__ import annotations

from pcs_annotator.relations.base import Relation
from pcs_annotator.relations.choose import RelationOptions
from pcs_annotator.relations.prompted.prompted import PromptedRelation
from pcs_annotator.runs.settings import RelationSettings

DEFAULT = ("voice", "double-negation", "synonym")
"""The paper's relations."""


def relation_options_of(settings: RelationSettings, *, rewriter: bool) -> RelationOptions:
    """Return how these settings turn names into relations."""
    return RelationOptions(rewriter=rewriter, own=own_relations(settings), judged=settings.judge)


def own_relations(settings: RelationSettings) -> dict[str, Relation]:
    """Return the relations that the user defines in `pcs.toml`, by name."""
    return {name: PromptedRelation(name, one.prompt, one.version, one.expects) for name, one in settings.own.items()}
