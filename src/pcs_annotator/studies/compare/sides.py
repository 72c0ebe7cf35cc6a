"""What is compared: a whole run, or the part of it that some models, relations or another optimiser make."""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import ConfigError, LabelError, PcsWarning, TableError
from pcs_annotator.base.text import listed
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.core.identity import same_text
from pcs_annotator.core.outcome import Outcomes
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import NOT_ASKED, Votes
from pcs_annotator.judging.evaluate.harness import Contender
from pcs_annotator.judging.fit_model import fit_model, read_texts
from pcs_annotator.judging.fit_weights import in_canonical_order, optimisers
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs.learn import KnownRows, Learned, counted_once, learn_if_possible, learning_of
from pcs_annotator.runs.run_result import RunResult

KEYS = ("model", "relations", "optimiser")
_PARTS = re.compile(rf":(?=(?:{'|'.join(KEYS)})=)")
_VERSION = re.compile(r"@(\d+)\Z")
HOW = "write RUN, RUN@VERSION, RUN:model=NAME, RUN:relations=A,B or RUN:optimiser=NAME"
PART_HAS_NO_PROMISE = "a part of a run has no promise: run it in a folder of its own to get one"
PER_ROWS = 1_000


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
        path, *parts = _PARTS.split(text)
        if not path and earlier is None:
            raise ConfigError(f"{text!r} names no run folder: {HOW}")
        values = dict(part.split("=", 1) for part in parts)
        if len(values) < len(parts) or not all(values.values()):
            raise ConfigError(f"{text!r} cannot be read: {HOW}, each key once and with a value")
        names = {key: tuple(name.strip() for name in values.get(key, "").split(",") if name.strip()) for key in KEYS}
        of_version = None if Path(path).exists() else _VERSION.search(path)
        path, version = (path[: of_version.start()], int(of_version[1])) if of_version else (path, 0)
        folder = Path(path) if path else earlier or Path()
        if "=" in folder.name and not folder.exists():
            raise ConfigError(f"there is no run folder {folder}: {HOW}")
        return cls(folder, names["model"], names["relations"], values.get("optimiser", ""), version)

    @property
    def whole(self) -> bool:
        """Whether this is a run as it is, or as it was."""
        return not (self.models or self.relations or self.optimiser)

    def of(self, result: RunResult) -> RunResult:
        """Return this part of a run as if only that had been run, learned from the run's own gold."""
        if self.whole:
            return result
        votes, config = (
            result.votes.select(annotators=self.models or None, relations=self.relations or None),
            result.config,
        )
        settings = replace(config.learn, max_error=None, optimiser=self.optimiser or config.learn.optimiser)
        optimisers.create(settings.optimiser)  # an unknown name is an error before anything is learned
        config = replace(
            config,
            learn=settings,
            ask=replace(config.ask, models=tuple(votes.annotators)) if self.models else config.ask,
            relations=replace(config.relations, use=tuple(votes.relations)) if self.relations else config.relations,
        )
        shape, gold = LabelShape.of(config.task.kind, votes.labels), result.dataset.gold
        if any(gold):
            codes = gold_codes(votes, gold)
            once = counted_once(votes, codes, [item.text for item in result.dataset.items])
            with one_thread(), warnings.catch_warnings():
                warnings.simplefilter("ignore", PcsWarning)  # the run has warned of its models and relations
                how = learning_of(replace(settings, resamples=0), shape=shape)
                model = fit_model(votes, codes, how, distinct=once.distinct)[0]
        else:
            model = learn_if_possible(votes, (), settings, KnownRows(shape=shape)).model
        learned = Learned(model=model, figures=(), no_figures=PART_HAS_NO_PROMISE)
        outcomes = Outcomes(model.judge(votes))
        return replace(result, votes=votes, config=config, learned=learned, outcomes=outcomes, whole=None)


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

    def on(self, rows: Sequence[int]) -> tuple[Votes, Codes]:
        """Return the votes on some rows, and their gold, in an order that does not depend on the table."""
        votes, gold = self.result.votes, self.result.dataset.gold
        codes = gold_codes(votes, gold or [None] * len(votes))
        return in_canonical_order(votes.take(np.array(rows, dtype=np.intp)), codes[rows])

    def contender(self, votes: Votes, gold: Codes, seed: int) -> Contender:
        """Return votes as the model sees them: with what the texts say, if it reads them."""
        learn, model = self.result.config.learn, self.result.model
        if model.text is not None:
            votes = read_texts(votes, gold, seed)[0]
        shape = model.shape.mixing(votes, gold)
        return Contender(shape.placed(votes), learn.optimiser, learn.calibration, shape)

    def cost(self, votes: Votes) -> "SideCost":
        """Return what these votes cost per 1,000 rows, with the share of rewrites that their relations need."""
        recorded = {(bill.model, bill.purpose): bill for bill in self.run.used if bill.calls}
        asked = (votes.codes != NOT_ASKED).sum(axis=(0, 2, 3)) / max(len(votes), 1)
        labels = [
            (recorded.get((name, "label")), float(calls)) for name, calls in zip(votes.annotators, asked, strict=True)
        ]
        of_the_question = {ORIGINAL, *(count.relation for count in self.run.rewrites if count.status == "original")}
        rewritten = {*self.run.votes.relations} - of_the_question
        share = len(rewritten & {*votes.relations}) / max(len(rewritten), 1) / max(self.run.counts.rows, 1)
        rewrites = [(bill, share * bill.calls) for bill in recorded.values() if bill.purpose == "rewrite"]
        bills = tuple(_per_rows(bill, calls) for bill, calls in [*labels, *rewrites] if bill is not None and calls)
        return SideCost(bills=bills, complete=all(bill is not None for bill, calls in labels if calls))


def _per_rows(bill: Bill, calls: float) -> Bill:
    """Return a bill for 1,000 rows with so many calls each."""
    part = PER_ROWS * calls / bill.calls
    return bill.scaled(lambda number: round(part * number), lambda usd: part * usd)


class SideCost(NamedTuple):
    """What one side costs per 1,000 rows if every question is paid for, whoever has paid for it."""

    bills: tuple[Bill, ...]  # per model and purpose; models of which no call is recorded are not among them
    complete: bool  # whether all models are among them

    @property
    def calls(self) -> int:
        """All calls."""
        return sum(bill.calls for bill in self.bills)

    @property
    def usd(self) -> float | None:
        """Dollars; None when a price is unknown."""
        prices = [bill.usd for bill in self.bills]
        return None if None in prices or not self.complete else sum(price or 0.0 for price in prices)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        tokens = [sum(bill.input_tokens for bill in self.bills), sum(bill.output_tokens for bill in self.bills)]
        models = [asdict(bill) for bill in self.bills]
        return {"calls": self.calls, "tokens": tokens, "usd": self.usd, "models": models}


def open_sides(first: str, second: str, open_run: Callable[[Path, int], RunResult]) -> tuple[Side, Side]:
    """Return the two runs, or parts of runs, that are to be compared; `open_run` reads a version of a folder."""
    ours = RunPart.parse(first)
    theirs = RunPart.parse(second, ours.folder)
    if ours == theirs:
        raise ConfigError(f"{first} and {second} are the same: {HOW}")
    left = open_run(ours.folder, ours.version)
    same = ours.folder.resolve() == theirs.folder.resolve() and ours.version == theirs.version
    right = left if same else open_run(theirs.folder, theirs.version)
    name = second if not second.startswith(":") else f"{ours.folder}{second}"
    a = Side(name=first, part=ours, run=left, result=ours.of(left))
    b = Side(name=name, part=theirs, run=right, result=theirs.of(right))
    labels = [side.result.votes.labels for side in (a, b)]
    if {*labels[0]} != {*labels[1]}:
        raise LabelError(
            f"{a.name} has the labels {', '.join(labels[0])}, {b.name} has {', '.join(labels[1])}: runs can be "
            "compared if they have the same labels, because a label that one of them cannot give would count against "
            "it; run one of them again with --labels"
        )
    return a, b


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
        places = {name: position for position, name in enumerate(b.ids)}
        common = [(row, places[name]) for row, name in enumerate(a.ids) if name in places]
        ours, theirs = a.result.dataset.items, b.result.dataset.items
        other = [ours[row].id for row, position in common if not same_text(theirs[position].text, ours[row].text)]
        remedy = "compare runs on the same table, with the same --id-column"
        if other:
            ids = listed(map(repr, other), len(other))
            raise TableError(
                f"{len(other):,} rows of {a.name} and {b.name} have the same ID but another text: {ids}; {remedy}"
            )
        if not common:
            some = f"{a.name} has {listed(map(repr, a.ids[:3]), 0)} …, {b.name} has {listed(map(repr, b.ids[:3]), 0)} …"
            raise TableError(f"no row is in both {a.name} and {b.name} (IDs: {some}): {remedy}")
        ids_of_a = {*a.ids}
        return cls(
            [row for row, _ in common],
            [position for _, position in common],
            [name for name in a.ids if name not in places],
            [name for name in b.ids if name not in ids_of_a],
        )
