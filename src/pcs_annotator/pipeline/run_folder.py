"""A run as it lies in its folder: learned from again, written anew, opened for a page. Asks nobody."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.gold import gold_codes
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.tabular import as_arrow
from pcs_annotator.core.variant import Status, Variant
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import ConfigError
from pcs_annotator.files.config import Config, LearnSettings, config_from_dict, learn_settings_from_dict
from pcs_annotator.files.runs import RunFolder, atomic_path, read_json, write_json
from pcs_annotator.files.tables import Dataset, read_dataset, with_outcomes, write_table
from pcs_annotator.files.vote_files import VoteAxes, read_votes
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.certificate import fingerprint, in_force
from pcs_annotator.pipeline.human_review import (
    Gold,
    HandedOut,
    gold_of,
    hand_out,
    take_gold,
)
from pcs_annotator.pipeline.learn import Learned, evaluation_file, learn_if_possible, model_file
from pcs_annotator.pipeline.ledgers import ledger_sizes
from pcs_annotator.pipeline.resolve_config import columns_of
from pcs_annotator.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of a run.

    Attributes:
        folder: Where everything is.
        config: The settings, with nothing left open.
        dataset: What was labelled; its gold includes what people gave afterwards.
        votes: What everybody said.
        learned: What the votes are worth.
        outcomes: A label for every row.
        tally: What happened on the way.
        bills: What the calls of this folder cost, model by model.
        seconds: How long each step took.
        to_label: Rows written for a person to label; None when the run was only opened.
        to_audit: Accepted rows written for a person to check.
    """

    folder: RunFolder
    config: Config
    dataset: Dataset
    votes: Votes
    learned: Learned
    outcomes: Sequence[Outcome]
    tally: Tally
    bills: Sequence[Bill]
    seconds: Mapping[str, float] = field(default_factory=dict)
    to_label: HandedOut | None = None
    to_audit: int = 0

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        return sum(outcome.label is None for outcome in self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a run folder holds before anything is learned.

    Attributes:
        folder: Where it is.
        config: The settings of the run.
        dataset: The texts.
        answers: All votes, those of annotators that also state a confidence included.
        gold: Gold labels, with those that people gave afterwards; read once.
    """

    folder: RunFolder
    config: Config
    dataset: Dataset
    answers: Votes
    gold: Gold

    @classmethod
    def read(cls, folder: RunFolder) -> Recorded:
        """Return what lies in a folder."""
        config, start = started(folder)
        dataset = read_dataset(folder.items, columns_of(config))
        ids = [item.id for item in dataset.items]
        axes = VoteAxes(ids, start["annotators"], start["relations"], config.task.labels, config.ask.draws)
        gold = gold_of(folder, dataset.items, dataset.gold)
        return cls(folder=folder, config=config, dataset=dataset, answers=read_votes(folder.votes, axes), gold=gold)

    @property
    def votes(self) -> Votes:
        """The votes that scores are made of: those of annotators asked for a label alone."""
        return self.answers.plain()

    def with_gold(self, path: Path) -> Recorded:
        """Return the run with the labels of a person's file, which are kept in the folder too."""
        take_gold(path, self.folder, self.dataset.items, self.votes.labels)
        return replace(self, gold=gold_of(self.folder, self.dataset.items, self.dataset.gold))

    @property
    def settings(self) -> LearnSettings:
        """How the run was learned from the last time; before that, how it was to be."""
        if not self.folder.model.exists():
            return self.config.learn
        return learn_settings_from_dict(read_json(self.folder.model).get("learn", asdict(self.config.learn)))

    def learn(self, settings: LearnSettings) -> Learned:
        """Learn from the recorded votes; what an audit found about the very same promise still counts."""
        learned = learn_if_possible(self.votes, self.gold.labels, settings, self.gold.random_sample)
        return replace(learned, model=_with_earlier_audit(learned.model, self.folder))

    def write(self, learned: Learned, settings: LearnSettings) -> list[Outcome]:
        """Write model, figures and labels, and return the outcomes."""
        write_json(self.folder.model, model_file(learned, settings, self.votes.labels))
        write_json(self.folder.evaluation, evaluation_file(learned))
        outcomes = list(learned.model.judge(self.votes))
        write_table(self.folder.labels, with_outcomes(self.dataset.table, outcomes, self.votes.labels))
        return outcomes

    def hand_out(self, learned: Learned, rows: int) -> HandedOut:
        """Write the rows that a person should label next, and say which they are."""
        return hand_out(self.folder, self.dataset.items, self.votes, learned.model, self.gold, rows)

    def model_in_force(self) -> Model:
        """Return the model of the folder; its promise is void when votes, gold or code changed since."""
        model = Model.from_dict(read_json(self.folder.model))
        if model.certificate is None:
            return model
        now = fingerprint(self.votes, gold_codes(self.votes, self.gold.labels), __version__)
        return replace(model, certificate=in_force(model.certificate, now))

    def result(self, learned: Learned, outcomes: Sequence[Outcome], **more: Any) -> RunResult:
        """Return everything about the run."""
        return RunResult(
            folder=self.folder,
            config=self.config,
            dataset=replace(self.dataset, gold=self.gold.labels),
            votes=self.votes,
            learned=learned,
            outcomes=outcomes,
            bills=ledger_sizes(self.folder.ledger),
            **{"tally": Tally(), **more},
        )


def started(folder: RunFolder) -> tuple[Config, Mapping[str, Any]]:
    """Return the settings of a run, and all of its `run.json`."""
    if not folder.settings.exists():
        raise ConfigError(f"{folder.path} is no run folder (it has no {folder.settings.name}): pcs run makes one")
    start = read_json(folder.settings)
    return config_from_dict(start["config"]), start


def _with_earlier_audit(model: Model, folder: RunFolder) -> Model:
    """Return the model with the audit of the folder's own, if that made the very same promise from the same rows."""
    if model.certificate is None or not folder.model.exists():
        return model
    earlier = Model.from_dict(read_json(folder.model)).certificate
    if earlier is None or earlier.audit is None:
        return model
    audited = replace(model.certificate, audit=earlier.audit)
    same = replace(audited, accepted_share=earlier.accepted_share, review_rows=earlier.review_rows) == earlier
    return replace(model, certificate=audited) if same else model


class VariantCount(NamedTuple):
    """How often a relation came to the same end for the same reason."""

    relation: str
    status: Status
    reason: str
    times: int


def read_variants(folder: RunFolder, ids: Collection[str] | None = None) -> dict[tuple[str, str], Variant]:
    """Return item id and relation → variant, of some items or of all; empty when the folder holds none.

    The original text is no entry, and a variant's source is left empty: it is the item's text.
    """
    table = _table(folder)
    if table is None:
        return {}
    if ids is not None:
        import pyarrow as pa
        import pyarrow.compute as pc

        table = table.filter(pc.is_in(table["id"], value_set=pa.array(sorted(ids), pa.string())))
    return {(row["id"], row["relation"]): _variant(row) for row in table.to_pylist()}


def count_variants(folder: RunFolder) -> Iterator[VariantCount]:
    """Yield how the rewrites ended, the commonest end of each relation first."""
    table = _table(folder)
    if table is None:
        return
    ends = table.group_by(["relation", "status", "reason"]).aggregate([([], "count_all")]).to_pylist()
    for row in sorted(ends, key=lambda row: (row["relation"], -row["count_all"], row["status"], row["reason"] or "")):
        yield VariantCount(row["relation"], row["status"], row["reason"] or "", row["count_all"])


def _table(folder: RunFolder) -> pa.Table | None:
    return as_arrow(folder.variants) if folder.variants.exists() else None


def _variant(row: dict[str, str | None]) -> Variant:
    return Variant(
        relation=row["relation"] or "",
        status=row["status"],  # type: ignore[arg-type]  # written from a Variant
        text=row["text"],
        reason=row["reason"] or "",
        refused=row["refused"],
    )


class Origin(NamedTuple):
    """Where a run comes from.

    Attributes:
        version: Of the package that made it.
        data: Name of the user's file; empty when it is not known.
    """

    version: str
    data: str


def read_origin(folder: RunFolder) -> Origin:
    """Return where the run in a folder comes from."""
    if not folder.settings.exists():
        return Origin(__version__, "")
    start = read_json(folder.settings)
    return Origin(start.get("version", __version__), PurePath(start.get("data", "")).name)


def write_page(path: Path, text: str) -> None:
    """Write a page whole or not at all; what UTF-8 cannot hold becomes a question mark."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", "replace"))
