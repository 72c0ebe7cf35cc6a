"""How settings turn names of relations into relations."""

from __future__ import annotations

from pcs_annotator.relations.base import Relation
from pcs_annotator.relations.choose import RelationOptions
from pcs_annotator.relations.prompted.prompted import PromptedRelation
from pcs_annotator.runs.files.config import RelationSettings

DEFAULT = ("voice", "double-negation", "synonym")
"""The relations of the paper."""


def relation_options_of(settings: RelationSettings, *, rewriter: bool) -> RelationOptions:
    """Return how these settings turn names into relations; `rewriter` says whether a model may write variants."""
    return RelationOptions(rewriter=rewriter, own=own_relations(settings), judged=settings.judge)


def own_relations(settings: RelationSettings) -> dict[str, Relation]:
    """Return the user's relations from `pcs.toml`."""
    return {name: PromptedRelation(name, one.prompt, one.version, one.expects) for name, one in settings.own.items()}
