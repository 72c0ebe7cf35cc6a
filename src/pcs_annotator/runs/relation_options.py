"""How the relations that settings name are found, and which ones the paper uses."""

from __future__ import annotations

from pcs_annotator.relations.choose import RelationOptions
from pcs_annotator.relations.prompted.prompted import PromptedRelation
from pcs_annotator.runs.files.config import RelationSettings

DEFAULT = ("voice", "double-negation", "synonym")
"""The paper's relations."""


def relation_options_of(settings: RelationSettings, *, rewriter: bool) -> RelationOptions:
    """Return how these settings turn names into relations."""
    own = {name: PromptedRelation(name, one.prompt, one.version, one.expects) for name, one in settings.own.items()}
    return RelationOptions(rewriter=rewriter, own=own, judged=settings.judge)
