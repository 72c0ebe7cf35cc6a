"""The datasets of an experiment: which votes or texts a user named, and the votes that count."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError, UnknownNameError
from pcs_annotator.core import elicitations
from pcs_annotator.core.arrays import Array
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import NOT_ASKED, PER_LABEL, Votes, check_known
from pcs_annotator.tables.fakenewsnet import is_fakenewsnet
from pcs_annotator.tables.find import open_parts, table_place, table_stem
from pcs_annotator.tables.vote_tables import is_long


class ExperimentSource(NamedTuple):
    """One dataset: its name, the path or name that the user wrote, and its kind."""

    name: str
    spec: str
    kind: Literal["votes", "run", "texts"]

    @property
    def path(self) -> Path:
        """The path that the user wrote."""
        return Path(self.spec)

    def chosen(self, votes: Votes, models: Sequence[str], relations: Sequence[str]) -> Votes:
        """Return the votes of the named models, by default of all; an unknown name is an error that lists the known."""
        bases = [elicitations.base_annotator(name) for name in votes.annotators]
        try:
            check_known(relations, votes.relations, "relation")
            check_known(models, [*dict.fromkeys(bases)], "model")
        except UnknownNameError as error:
            raise UnknownNameError(f"{self.name}: {error}") from None
        kept = [name for name, base in zip(votes.annotators, bases, strict=True) if base in models]
        return votes.select(annotators=kept) if models else votes


def find_sources(given: Sequence[str]) -> list[ExperimentSource]:
    """Return the source of each `PATH` or `NAME=PATH`; names must differ, because tables list datasets by name."""
    found = [_source(one) for one in given]
    names = [source.name for source in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two sources are named {name!r}: rename one, as in NAME=PATH")
    return found


def _source(given: str) -> ExperimentSource:
    name, equals, spec = given.partition("=")
    if not equals or "/" in name or Path(given).exists():
        name, spec = "", given
    stem = table_stem(spec)
    name = name or stem.rpartition(":")[2] or stem
    if is_fakenewsnet(spec):
        return ExperimentSource(name, spec, "texts")
    if Path(spec).is_dir():
        return ExperimentSource(name, spec, "run")
    columns = open_parts(table_place(spec)).schema.names
    has_votes = is_long(columns) or any("|" in column for column in columns)
    return ExperimentSource(name, spec, "votes" if has_votes else "texts")


def with_elicited(votes: Votes, elicited: Votes) -> Votes:
    """Return the votes plus those, on the original text, of annotators that also state a confidence."""
    names = [name for name in elicited.annotators if elicitations.kind_of(name) and name not in votes.annotators]
    more = elicited.select(annotators=names, relations=[ORIGINAL])
    place = votes.relations.index(ORIGINAL)

    def joined(ours: Array, theirs: Array, nothing: float) -> Array:
        added = np.full((len(votes), len(names), *ours.shape[2:]), nothing, dtype=ours.dtype)
        added[:, :, place] = theirs[:, :, 0]
        return np.concatenate([ours, added], axis=1)

    probabilities: dict[str, Any] = {
        name: joined(_or_nan(votes, name), _or_nan(more, name), np.nan)
        for name in PER_LABEL
        if any(getattr(one, name) is not None for one in (votes, more))
    }
    return replace(
        votes,
        codes=joined(votes.codes, more.codes, NOT_ASKED),
        annotators=(*votes.annotators, *names),
        **probabilities,
    )


def _or_nan(votes: Votes, name: str) -> Array:
    given: Array | None = getattr(votes, name)
    return np.full((*votes.codes.shape, len(votes.labels)), np.nan, PER_LABEL[name]) if given is None else given
