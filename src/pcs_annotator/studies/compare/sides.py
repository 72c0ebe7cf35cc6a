"""What is compared: a whole run, or the part of it that some models, relations or another optimiser make."""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import ConfigError, LabelError, PcsWarning, TableError
from pcs_annotator.base.text import listed
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.core.identity import same_text
from pcs_annotator.core.outcome import Outcomes
from pcs_annotator.judging.fit_model import fit_model
from pcs_annotator.judging.fit_weights import optimisers
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs.learn import KnownRows, Learned, counted_once, learn_if_possible, learning_of
from pcs_annotator.runs.run_result import RunResult

KEYS = ("model", "relations", "optimiser")
_PARTS = re.compile(rf":(?=(?:{'|'.join(KEYS)})=)")
_VERSION = re.compile(r"@(\d+)\Z")
HOW = "write RUN, RUN@VERSION, RUN:model=NAME, RUN:relations=A,B or RUN:optimiser=NAME"
PART_HAS_NO_PROMISE = "a part of a run has no promise: run it in a folder of its own to get one"


class RunPart(NamedTuple):
    """A run folder, and which part of its votes; empty for all."""

    folder: Path
    models: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    optimiser: str = ""
    version: int = 0  # 0 for the one in use

    @classmethod
    def parse(cls, text: str, earlier: Path | None = None) -> "RunPart":
        """Return what a text such as `runs/news:model=openai:gpt-4o:relations=original` selects.

        Without a folder, as in `:model=NAME`, it is the earlier one.
        """
        place, *parts = _PARTS.split(text)
        if not place and earlier is None:
            raise ConfigError(f"{text!r} names no run folder: {HOW}")
        given = dict(part.split("=", 1) for part in parts)
        if len(given) < len(parts) or not all(given.values()):
            raise ConfigError(f"{text!r} cannot be read: {HOW}, each key once and with a value")
        names = {key: tuple(name.strip() for name in given.get(key, "").split(",") if name.strip()) for key in KEYS}
        of_version = None if Path(place).exists() else _VERSION.search(place)
        place, version = (place[: of_version.start()], int(of_version[1])) if of_version else (place, 0)
        folder = Path(place) if place else earlier or Path()
        if "=" in folder.name and not folder.exists():
            raise ConfigError(f"there is no run folder {folder}: {HOW}")
        return cls(folder, names["model"], names["relations"], given.get("optimiser", ""), version)

    @property
    def whole(self) -> bool:
        """Whether this is a run as it is, or as it was."""
        return not (self.models or self.relations or self.optimiser)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two that are compared."""

    name: str  # as the user wrote it
    part: RunPart  # the folder, and which part of it
    run: RunResult  # the whole run
    result: RunResult  # the same or, for a part, as if only that had been run: its votes, model, labels, settings

    @property
    def ids(self) -> list[str]:
        """The IDs of its rows."""
        return list(self.result.votes.ids)


def open_sides(first: str, second: str, open_run: Callable[[Path, int], RunResult]) -> tuple[Side, Side]:
    """Return the two runs, or parts of runs, that are to be compared; `open_run` reads a version of a folder."""
    one = RunPart.parse(first)
    other = RunPart.parse(second, one.folder)
    if one == other:
        raise ConfigError(f"{first} and {second} are the same: {HOW}")
    left = open_run(one.folder, one.version)
    same = one.folder.resolve() == other.folder.resolve() and one.version == other.version
    right = left if same else open_run(other.folder, other.version)
    name = second if not second.startswith(":") else f"{one.folder}{second}"
    a = Side(name=first, part=one, run=left, result=_part(left, one))
    b = Side(name=name, part=other, run=right, result=_part(right, other))
    ours, theirs = a.result.votes.labels, b.result.votes.labels
    if {*ours} != {*theirs}:
        raise LabelError(
            f"{a.name} has the labels {', '.join(ours)}, {b.name} has {', '.join(theirs)}: runs can be compared if "
            "they have the same labels, because a label that one of them cannot give would count against it; run one "
            "of them again with --labels"
        )
    return a, b


def _part(result: RunResult, chosen: RunPart) -> RunResult:
    """Return a part of a run as if only that had been run, learned from the run's own gold."""
    if chosen.whole:
        return result
    votes = result.votes.select(annotators=chosen.models or None, relations=chosen.relations or None)
    config = result.config
    settings = replace(config.learn, max_error=None, optimiser=chosen.optimiser or config.learn.optimiser)
    optimisers.create(settings.optimiser)  # an unknown name is an error before anything is learned
    config = replace(
        config,
        learn=settings,
        ask=replace(config.ask, models=tuple(votes.annotators)) if chosen.models else config.ask,
        relations=replace(config.relations, use=tuple(votes.relations)) if chosen.relations else config.relations,
    )
    part = replace(result, votes=votes, config=config)
    model = _fitted(part)
    learned = Learned(model=model, figures=(), no_figures=PART_HAS_NO_PROMISE)
    return replace(part, learned=learned, outcomes=Outcomes(model.judge(votes)), whole=None)


def _fitted(part: RunResult) -> Model:
    votes, gold = part.votes, part.dataset.gold
    shape = LabelShape.of(part.config.task.kind, votes.labels)
    if not any(gold):
        return learn_if_possible(votes, (), part.config.learn, KnownRows(shape=shape)).model
    codes = gold_codes(votes, gold)
    once = counted_once(votes, codes, [item.text for item in part.dataset.items])
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)  # the run has warned of its models and relations
        how = learning_of(replace(part.config.learn, resamples=0), shape=shape)
        return fit_model(votes, codes, how, distinct=once.distinct)[0]


class Matched(NamedTuple):
    """The rows that two runs have in common, by their positions in each, and the IDs of the others."""

    first: Sequence[int]
    second: Sequence[int]
    only_first: Sequence[str]
    only_second: Sequence[str]

    def __repr__(self) -> str:
        return brief(self)

    @classmethod
    def of(cls, a: Side, b: Side) -> "Matched":
        """Match rows by ID; rows that have the same ID but another text are an error."""
        places = {name: place for place, name in enumerate(b.ids)}
        common = [(row, places[name]) for row, name in enumerate(a.ids) if name in places]
        ours, theirs = a.result.dataset.items, b.result.dataset.items
        other = [ours[row].id for row, place in common if not same_text(theirs[place].text, ours[row].text)]
        remedy = "compare runs on the same table, with the same --id-column"
        if other:
            ids = listed(map(repr, other), len(other))
            raise TableError(
                f"{len(other):,} rows of {a.name} and {b.name} have the same ID but another text: {ids}; {remedy}"
            )
        if not common:
            some = f"{a.name} has {listed(map(repr, a.ids[:3]), 0)} …, {b.name} has {listed(map(repr, b.ids[:3]), 0)} …"
            raise TableError(f"no row is in both {a.name} and {b.name} (IDs: {some}): {remedy}")
        known = {*a.ids}
        return cls(
            [row for row, _ in common],
            [place for _, place in common],
            [name for name in a.ids if name not in places],
            [name for name in b.ids if name not in known],
        )
