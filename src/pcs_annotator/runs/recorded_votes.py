"""Votes with gold, read from a table or a run folder, on which methods are compared."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError, UnknownNameError, warn_user
from pcs_annotator.core.arrays import CODE, Codes
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.core.votes import Votes, check_known
from pcs_annotator.judging.evaluate.scored import EvaluationOptions, Splitting
from pcs_annotator.relations.combine import find_relation
from pcs_annotator.runs.learn import about_copies, counted_once
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.resolve_config import relation_options_of
from pcs_annotator.runs.settings import RelationSettings
from pcs_annotator.tables.arrow import columns_of, pa, text_column
from pcs_annotator.tables.find import as_arrow, source_name
from pcs_annotator.tables.source_files import AS_FOUND, Reading
from pcs_annotator.tables.vote_tables import read_vote_table


class RecordedVotes(NamedTuple):
    """Votes, gold as positions in their labels and, as far as known, what a model wrote and the order of the labels."""

    votes: Votes
    gold: Codes
    rewritten: frozenset[str] = frozenset()
    order: Sequence[str] = ()

    @classmethod
    def read(cls, source: Path, reading: Reading = AS_FOUND) -> "RecordedVotes":
        """Return the votes of a table or of a run folder; no model is called, so no key is needed."""
        if not source.is_dir():
            arrow = as_arrow(source, reading)
            table = read_vote_table(arrow, name=source_name(source))
            texts = list(texts_of(arrow, table.votes).values()) or None
            return cls(replace(table.votes, texts=texts), _gold_once(table.votes, table.gold, texts))
        recorded = Run.open(source)
        if recorded.config.task.kind == "number":
            remedy = "pcs evaluate with its own folder says how far numbers are off"
            raise GoldError(f"{source} has numbers, and methods are compared by labels: {remedy}")
        if recorded.config.task.extraction:
            remedy = "its report compares candidates with every single question"
            raise GoldError(f"{source} has passages, and methods are compared by labels: {remedy}")
        siblings = recorded.to_learn(recorded.settings).siblings
        votes = replace(recorded.answers, texts=recorded.texts if recorded.settings.text else None, siblings=siblings)
        gold = _gold_once(votes, recorded.gold.labels, recorded.texts)
        written = written_by_model(votes.relations, recorded.config.relations)
        return cls(votes, gold, written, votes.labels if recorded.config.task.kind == "scale" else ())

    def plus(self, rewritten: Sequence[str], order: Sequence[str] = ()) -> "RecordedVotes":
        """Return the same votes with what a user says about them."""
        check_known(rewritten, self.votes.relations, "relation")
        if order:
            check_order(order, self.votes.labels)
        return self._replace(rewritten=self.rewritten | frozenset(rewritten), order=order or self.order)

    def how(self, splitting: Splitting) -> EvaluationOptions:
        """Return how methods are compared on these votes."""
        return EvaluationOptions(**asdict(splitting), rewritten=self.rewritten, order=self.order)


def check_order(order: Sequence[str], labels: Sequence[str]) -> None:
    """Raise unless an order has every label once."""
    if sorted(order) != sorted(labels):
        raise ConfigError(f"--order must name every label once, from the lowest to the highest: {', '.join(labels)}")


def _gold_once(votes: Votes, gold: Sequence[str | None], texts: Sequence[str] | None) -> Codes:
    """Return the gold of one row for every text: copies would be on both sides of a split."""
    codes = gold_codes(votes, gold)
    once = counted_once(votes, codes, texts)
    for flag in about_copies(once, votes):
        warn_user(flag.detail)
    return np.where(once.distinct, codes, UNLABELLED).astype(CODE)


def written_by_model(names: Sequence[str], settings: RelationSettings) -> frozenset[str]:
    """Return the relations of a run, by their names in its votes, whose variants a model wrote, or may have written."""
    if not settings.use:
        return frozenset()
    options = relation_options_of(settings, rewriter=bool(settings.rewriter))

    def written(spec: str) -> bool:
        parts = (part.strip() for part in spec.replace("|", "+").split("+"))
        try:
            return any("rewriter" in find_relation(part, options).needs for part in parts)
        except UnknownNameError:
            return options.rewriter

    return frozenset(name for name, spec in zip(names, settings.use, strict=True) if written(spec))


def texts_of(arrow: pa.Table, votes: Votes) -> dict[str, str]:
    """Return item id → text, if a table of votes has texts."""
    columns = columns_of(arrow)
    if "text" not in columns:
        return {}
    texts = text_column("text", columns["text"]).to_pylist()
    if len(arrow) == len(votes):
        return {id: text or "" for id, text in zip(votes.ids, texts, strict=True)}
    ids = text_column("id", columns["id"]).to_pylist()  # of a row per vote
    text_of = {id: text for id, text in zip(ids, texts, strict=True) if text}
    return {id: text_of.get(id, "") for id in votes.ids}
