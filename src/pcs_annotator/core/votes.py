"""`Votes`: labels that all annotators gave to all variants of all items; one `Vote`, its `Cell`, and what to ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from pcs_annotator.base.errors import InputError, LabelError, TableError, UnknownNameError
from pcs_annotator.base.text import listed
from pcs_annotator.core.arrays import CODE, Array, Codes, Floats, Grades, Integers, Mask, frozen
from pcs_annotator.core.elicitations import kind_of
from pcs_annotator.core.task import check_labels
from pcs_annotator.core.variant import ORIGINAL

ABSTAINED = -1  # asked, but no usable label came back
NOT_ASKED = -2  # never asked, or the rewrite did not apply
OPEN = -3  # may still be asked; used only while a job runs, never in `Votes`


class Cell(NamedTuple):
    """One question that can be asked about every item: positions along the axes of `Votes`."""

    annotator: int
    relation: int
    draw: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A label, or the reason why there is none."""

    label: str | None  # one of the task's labels, or None
    reason: str = ""  # why there is no label; empty otherwise
    asked: bool = True  # false when no model was called, because the rewrite did not apply or the budget was spent
    cut: int = 0  # characters of the text that did not fit into the model's context and were left out
    # the probability that the annotator itself gives to each label of the task, in task order, nan where it gives none;
    # None when none were requested, or there is no label
    stated: tuple[float, ...] | None = None
    # the probability with which the model would have answered each label of the task, in task order; what is missing to
    # 1 went to no label. None for a hard vote, and when there is no label
    grades: tuple[float, ...] | None = None
    # what is to be counted about the grades: why there are none although they were requested, or that a label not among
    # the tokens listed may have more than 1 %
    remark: str = ""


class Strategy(Protocol):
    """The order in which to ask about an item, and when to stop: the interface between asking and judging.

    `needed` takes the codes of one item by annotator, relation and draw: a label, `ABSTAINED`, `OPEN` for a cell that
    may still be asked, `NOT_ASKED` for one that cannot be; and what its text says. It must not modify them.
    """

    @property
    def order(self) -> Sequence[Cell]:
        """The cells of a job in the order to ask them; a cell that is not listed is never asked."""
        ...

    def text_priors(self, texts: Sequence[str]) -> Floats | None:
        """Return what each text says about each label before anything is asked; None if nothing."""
        ...

    def needed(self, cells: Codes, said: Floats | None = None) -> int:
        """Return how many of the next open cells must be asked in any case; 0 when the label is settled."""
        ...


Unknown = Literal["error", "abstain"]
Form = Literal["wide", "long"]

MAX_LISTED = 20
# Grades are stored as float32, and servers round log-probabilities.
GRADE_TOLERANCE = 1e-3
TABLES = "pcs_annotator.tables.vote_tables"  # loaded when needed: core knows no file format
PER_ITEM = ("texts", "groups", "units")
NO_GROUP = "(none)"  # the group of items whose own is not known
PER_LABEL: Mapping[str, type[np.generic]] = {"stated": np.float64, "grades": np.float32}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Votes:
    """Label codes with four named axes: item, annotator, relation, draw.

    Attributes:
        codes: int16 array `[item, annotator, relation, draw]`; a position in `labels`, `ABSTAINED` or `NOT_ASKED`.
        ids: Name of every item.
        annotators: Name of every annotator.
        relations: Name of every relation; the unchanged text is called `original`.
        labels: The closed set of labels.
        texts: The text of every item; None if that is not known.
        groups: The group of every item, such as its language, if promises are made for groups; None if not known.
        units: The text that every item is a passage of: those of one text stand or fall together. None if items are
            texts.
        read: What a model of the texts says, `[item, label]`, as logarithms of probabilities; None if none read them.
        stated: Probability that an annotator itself gave to each label, `[item, annotator, relation, draw, label]`,
            nan where it gave none; None when none were requested.
        siblings: The gold rows of the other labels, if these votes are about one of those that a text may have any
            number of; their axes are sorted by name, and rows are the same if their ids are.
        grades: Probability with which a model would have answered each label, float32, same axes; nan in cells with a
            hard vote or none. What is missing to 1 went to no label. None when all votes are hard.
    """

    codes: Codes
    ids: Sequence[str]
    annotators: Sequence[str]
    relations: Sequence[str]
    labels: Sequence[str]
    stated: Floats | None = None
    grades: Grades | None = None
    texts: Sequence[str] | None = None
    text_log_probs: Floats | None = None
    groups: Sequence[str] | None = None
    units: Sequence[str] | None = None
    siblings: Sequence[tuple[Votes, Codes]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", check_labels(self.labels))
        for axis in ("ids", "annotators", "relations"):
            names = tuple(getattr(self, axis))
            object.__setattr__(self, axis, names)
            check_unique(names, axis)
        object.__setattr__(self, "codes", self._checked_codes())
        for name, dtype in PER_LABEL.items():
            values = getattr(self, name)
            if values is None:
                continue
            kept = frozen(values, dtype)
            object.__setattr__(self, name, kept)
            if kept.shape != (*self.codes.shape, len(self.labels)):
                raise ValueError(
                    f"{name} has shape {kept.shape}, codes {self.codes.shape}: {name} needs an axis for labels"
                )
        self._check_grades()

    def _check_grades(self) -> None:
        if self.grades is None or not self.grades.size:
            return
        total = self.grades.sum(axis=-1)
        if self.grades.min() >= 0 and total.max() <= 1 + GRADE_TOLERANCE and self.codes.min() >= 0:
            return  # all are given and good; false if some are nan
        wrong = (self.grades.min(axis=-1) < 0) | (total > 1 + GRADE_TOLERANCE)
        wrong |= np.isnan(total) != np.isnan(self.grades).all(axis=-1)
        if wrong.any():
            item, annotator, relation, draw = np.argwhere(wrong)[0].tolist()
            cell = f"{self.annotators[annotator]}, {self.relations[relation]}, draw {draw}"
            raise ValueError(
                f"the grades of item {self.ids[item]!r} ({cell}) are {self.grades[item, annotator, relation, draw]}: "
                "give each label a probability, all together at most 1, or nan to every label for a hard vote"
            )
        if (~np.isnan(total) & (self.codes < 0)).any():
            raise ValueError("a cell without a label has grades: only a vote can be graded")

    def _checked_codes(self) -> Array:
        codes = np.asarray(self.codes)
        if codes.ndim == 3:
            codes = codes[..., np.newaxis]
        expected = (len(self.ids), len(self.annotators), len(self.relations))
        if codes.ndim != 4 or codes.shape[:3] != expected:
            raise ValueError(f"codes have shape {codes.shape}, but the names need {expected} and draws")
        if codes.size and codes.dtype.kind not in "iu":  # nan would become a vote for the first label
            raise ValueError(f"codes must be whole numbers (int16), not {codes.dtype}")
        if codes.size and (codes.min() < NOT_ASKED or codes.max() >= len(self.labels)):
            raise LabelError(f"codes must be between {NOT_ASKED} and {len(self.labels) - 1}, one for each label")
        return frozen(codes, CODE)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        items, annotators, relations, draws = self.codes.shape
        size = f"{items} items × {annotators} models × {relations} relations × {draws} draws"
        return f"<Votes: {size}, labels {', '.join(self.labels)}>"

    @classmethod
    def joined(cls, parts: Sequence[Votes]) -> Votes:
        """Return the votes of several parts, one after the other; their other axes are the same."""
        probabilities: dict[str, Any] = {}
        for name in PER_LABEL:
            arrays = [getattr(part, name) for part in parts]
            if any(values is not None for values in arrays):
                shapes = [(*part.codes.shape, len(part.labels)) for part in parts]
                filled = (
                    np.full(shape, np.nan) if values is None else values
                    for values, shape in zip(arrays, shapes, strict=True)
                )
                probabilities[name] = np.concatenate(list(filled))
        codes = np.concatenate([part.codes for part in parts])
        ids = [name for part in parts for name in part.ids]
        for name in PER_ITEM:
            parts_of = [value for part in parts for value in getattr(part, name) or ()]
            probabilities[name] = parts_of if len(parts_of) == len(ids) else None
        return replace(parts[0], codes=codes, ids=ids, text_log_probs=None, **probabilities)

    @property
    def original(self) -> str:
        """The relation that stands for the unchanged text: `original`, or the first if none is called so."""
        return ORIGINAL if ORIGINAL in self.relations else next(iter(self.relations), ORIGINAL)

    @property
    def silent(self) -> Mask:
        """True for every item without votes."""
        return np.asarray((self.codes < 0).all(axis=(1, 2, 3)))

    def shares(self, rows: slice = slice(None)) -> Floats:
        """Return H of the paper, `[item, annotator, relation, label]`: the share of draws that gave the label.

        A graded vote counts with its probabilities, so a cell may sum to less than 1; a cell without votes is all
        zeros. `rows` limits the work to some items.
        """
        codes = self.codes[rows]
        if self.grades is not None:
            return _graded_shares(codes, self.grades[rows])
        if codes.shape[3] == 1:
            return (codes == np.arange(len(self.labels), dtype=CODE)).astype(np.float64)
        hits = np.stack([(codes == code).sum(axis=3) for code in range(len(self.labels))], axis=-1)
        return np.asarray(hits / np.maximum(hits.sum(axis=-1, keepdims=True), 1))

    def take(self, rows: Integers | Mask | slice) -> Votes:
        """Return the votes on some items, given by position or by a mask."""
        positions = np.arange(len(self.ids))[rows]
        if np.array_equal(positions, np.arange(len(self.ids))):
            return self
        return self._rows(positions, [self.ids[position] for position in positions])

    def _rows(self, positions: Integers, ids: Sequence[str]) -> Votes:
        text_log_probs = None if self.text_log_probs is None else self.text_log_probs[positions]
        return self._each(
            lambda values: values[positions], ids=ids, text_log_probs=text_log_probs, **self.per_item(positions)
        )

    def per_item(self, positions: Integers) -> dict[str, list[str] | None]:
        """Return the texts and groups of some items, as far as they are known."""
        values = {name: getattr(self, name) for name in PER_ITEM}
        return {name: column and [column[row] for row in positions.tolist()] for name, column in values.items()}

    def coded_groups(self, first: Iterable[str] = ()) -> tuple[list[str], Integers]:
        """Return the names of groups, some of them first, and the position of every item's group among them."""
        groups = self.groups or [NO_GROUP] * len(self)
        places = {name: code for code, name in enumerate(dict.fromkeys([*first, *groups]))}
        return [*places], np.array([places[name] for name in groups], dtype=np.intp)

    @property
    def unit_codes(self) -> Integers | None:
        """The position of every item's text among those of all items; None if items are texts."""
        return None if self.units is None else np.unique(self.units, return_inverse=True)[1]

    def texts_among(self, rows: Mask) -> int:
        """Return how many texts some items are, or are from."""
        units = self.unit_codes
        return int(rows.sum()) if units is None else len(np.unique(units[rows]))

    def resampled(self, rows: Integers) -> Votes:
        """Return the votes on rows drawn with replacement; items are named by position, because ids would repeat."""
        return replace(self._rows(rows, [str(row) for row in range(len(rows))]), siblings=())

    def select(
        self,
        *,
        annotators: Iterable[str] | None = None,
        relations: Iterable[str] | None = None,
        draws: int | None = None,
    ) -> Votes:
        """Return the votes of some annotators and relations, by name and in that order, in the first `draws` draws."""
        voters = list(self.annotators) if annotators is None else list(annotators)
        views = list(self.relations) if relations is None else list(relations)
        rows = positions_of(voters, self.annotators, "model")
        columns = positions_of(views, self.relations, "relation")
        return self._each(
            lambda values: values[:, rows][:, :, columns][:, :, :, :draws], annotators=voters, relations=views
        )

    def _each(self, part: Callable[[Array], Array], **axes: Any) -> Votes:
        """Return the votes with a part taken of the codes and of all probabilities, along renamed axes."""
        arrays = {name: getattr(self, name) for name in PER_LABEL}
        probabilities: dict[str, Any] = {name: part(array) for name, array in arrays.items() if array is not None}
        return replace(self, codes=part(self.codes), **probabilities, **axes)

    def without(self, *, annotator: str | None = None, relation: str | None = None) -> Votes:
        """Return the votes without one annotator or one relation."""
        check_known([] if annotator is None else [annotator], self.annotators, "model")
        check_known([] if relation is None else [relation], self.relations, "relation")
        return self.select(
            annotators=[name for name in self.annotators if name != annotator],
            relations=[name for name in self.relations if name != relation],
        )

    def only(self, asked: Mask) -> Votes:
        """Return the votes of some cells, `[annotator, relation, draw]`; all others become `NOT_ASKED`."""

        def kept(values: Array) -> Array:
            if values.ndim == asked.ndim + 1:
                return np.where(asked, values, NOT_ASKED).astype(CODE)
            return np.where(asked[..., np.newaxis], values, values.dtype.type(np.nan))

        return self._each(kept)

    def hard(self) -> Votes:
        """Return the votes without grades: the label of every answer, and nothing about how sure the model was."""
        return self if self.grades is None else replace(self, grades=None)

    def plain(self) -> Votes:
        """Return the votes of annotators that were asked for a label only; these are the ones to learn from."""
        names = [name for name in self.annotators if not kind_of(name)]
        if len(names) == len(self.annotators):
            return self
        if not names:
            all_names = listed(self.annotators, len(self.annotators), MAX_LISTED)
            raise UnknownNameError(f"none of {all_names} was asked for a label only: add a model without elicitation")
        return replace(self.select(annotators=names), stated=None)

    @classmethod
    def from_table(cls, table: object, labels: Iterable[str] | None = None, *, unknown: Unknown = "error") -> Votes:
        """Read votes from a pandas, polars or pyarrow table, a dict of columns, or a CSV or Parquet file.

        Wide form has the columns `id`, optionally `gold`, and `<model>|<relation>` or
        `<model>|<relation>|<draw>`; long form has `id`, `annotator`, `relation`, `label` and optionally `draw` and
        `gold`. An empty cell is an abstention.

        Only the long form has probabilities: grades as `p_<label>`, or their natural logarithms as `logp_<label>` and
        optionally `mass`; and `stated_<label>` for those that annotators stated. A row whose grades are empty is a hard
        vote; a graded row without a label is a vote for the most probable one.

        Args:
            table: The table or its path.
            labels: The closed set of labels; by default those seen in the table, sorted.
            unknown: What to do with a vote outside of `labels`: raise an error (`"error"`), or count it as an
                abstention (`"abstain"`).
        """
        votes: Votes = import_module(TABLES).read_vote_table(table, labels, unknown=unknown).votes
        return votes

    def to_table(self, form: Form = "wide") -> Any:
        """Return the votes as a pyarrow table that `from_table` reads back.

        The wide form holds labels only, with empty cells for both `ABSTAINED` and `NOT_ASKED`; the long form leaves out
        what was not asked, and keeps grades (`p_<label>`) and stated probabilities.
        """
        return import_module(TABLES).write_vote_table(self, form)


def _graded_shares(codes: Codes, grades: Grades) -> Floats:
    hits = codes[..., np.newaxis] == np.arange(grades.shape[-1], dtype=CODE)
    shares = np.where(np.isnan(grades), hits, grades).astype(np.float64)
    if codes.shape[3] == 1:
        return shares[:, :, :, 0]
    votes = (codes >= 0).sum(axis=3, keepdims=True)
    return np.asarray(shares.sum(axis=3) / np.maximum(votes, 1))


def check_votes(votes: object) -> None:
    """Raise if Python code gave something else than votes, such as a data frame of them."""
    if not isinstance(votes, Votes):
        raise InputError(f"votes is a {type(votes).__name__}: make votes of a table or a file with Votes.from_table")


def check_known(wanted: Iterable[str], names: Sequence[str], axis: str) -> None:
    """Raise when a wanted name is not on an axis."""
    allowed = set(names)
    missing = next((name for name in wanted if name not in allowed), None)
    if missing is not None:
        raise UnknownNameError(f"no {axis} is called {missing!r}; there are: {listed(names, len(names), MAX_LISTED)}")


def positions_of(wanted: Sequence[str], names: Sequence[str], axis: str) -> list[int]:
    """Return the position of each wanted name on an axis."""
    check_known(wanted, names, axis)
    index = {name: position for position, name in enumerate(names)}
    return [index[name] for name in wanted]


def check_unique(names: Sequence[str], axis: str) -> None:
    """Raise when two entries of an axis have the same name."""
    if len(set(names)) == len(names):
        return
    name = next(name for name, count in Counter(names).items() if count > 1)
    earlier = names.index(name)
    row = names.index(name, earlier + 1)
    raise TableError(f"{axis}: {name!r} is at row {earlier + 1} and again at row {row + 1}: make the names unique")
