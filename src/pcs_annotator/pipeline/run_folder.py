"""Reading a run folder, learning from it again, and writing it; no model is called."""

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
from pcs_annotator.files import tables, vote_files
from pcs_annotator.files.config import Config, LearnSettings, config_from_dict, learn_settings_from_dict
from pcs_annotator.files.runs import RunFolder, atomic_path, read_json, write_json
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.certificate import fingerprint, in_force
from pcs_annotator.pipeline import human_review, ledgers, resolve_config
from pcs_annotator.pipeline.learn import Learned, evaluation_file, learn_if_possible, model_file
from pcs_annotator.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run.

    Attributes:
        folder: The run folder.
        config: The complete settings.
        dataset: The texts; its gold includes labels that people added after the run.
        votes: The votes of annotators that were asked for a label only.
        learned: The model, and its figures.
        outcomes: A label for every row.
        tally: Counts of calls, answers and failures.
        bills: The cost of all calls in this folder, per model.
        seconds: The duration of each step.
        to_label: Rows written for a person to label; None when the run was only opened.
        to_audit: Number of accepted rows written for a person to check.
    """

    folder: RunFolder
    config: Config
    dataset: tables.Dataset
    votes: Votes
    learned: Learned
    outcomes: Sequence[Outcome]
    tally: Tally
    bills: Sequence[Bill]
    seconds: Mapping[str, float] = field(default_factory=dict)
    to_label: human_review.HandedOut | None = None
    to_audit: int = 0

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        return sum(outcome.label is None for outcome in self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The contents of a run folder before learning.

    Attributes:
        folder: The folder.
        config: The settings of the run.
        dataset: The texts.
        answers: All votes, including those of annotators that also state a confidence.
        gold: Gold labels, including those that people added after the run.
    """

    folder: RunFolder
    config: Config
    dataset: tables.Dataset
    answers: Votes
    gold: human_review.Gold

    @classmethod
    def read(cls, folder: RunFolder) -> Recorded:
        """Read a run folder."""
        config, start = started(folder)
        dataset = tables.read_dataset(folder.items, resolve_config.columns_of(config))
        ids = [item.id for item in dataset.items]
        axes = vote_files.VoteAxes(ids, start["annotators"], start["relations"], config.task.labels, config.ask.draws)
        answers = vote_files.read_votes(folder.votes, axes)
        gold = human_review.gold_of(folder, dataset.items, dataset.gold)
        return cls(folder=folder, config=config, dataset=dataset, answers=answers, gold=gold)

    @property
    def votes(self) -> Votes:
        """The votes that scores are computed from: those of annotators that were asked for a label only."""
        return self.answers.plain()

    def with_gold(self, path: Path) -> Recorded:
        """Return the run with the labels of a person's file, which are also stored in the folder."""
        human_review.take_gold(path, self.folder, self.dataset.items, self.votes.labels)
        return replace(self, gold=human_review.gold_of(self.folder, self.dataset.items, self.dataset.gold))

    @property
    def settings(self) -> LearnSettings:
        """The settings of the last fit; before the first one, those of the run."""
        if not self.folder.model.exists():
            return self.config.learn
        return learn_settings_from_dict(read_json(self.folder.model).get("learn", asdict(self.config.learn)))

    def learn(self, settings: LearnSettings) -> Learned:
        """Learn from the recorded votes; an earlier audit of the same promise still counts."""
        learned = learn_if_possible(self.votes, self.gold.labels, settings, self.gold.random_sample)
        return replace(learned, model=_with_earlier_audit(learned.model, self.folder))

    def write(self, learned: Learned, settings: LearnSettings) -> list[Outcome]:
        """Write model, figures and labels, and return the outcomes."""
        write_json(self.folder.model, model_file(learned, settings, self.votes.labels))
        write_json(self.folder.evaluation, evaluation_file(learned))
        outcomes = list(learned.model.judge(self.votes))
        labelled = tables.with_outcomes(self.dataset.table, outcomes, self.votes.labels)
        tables.write_table(self.folder.labels, labelled)
        return outcomes

    def hand_out(self, learned: Learned, rows: int) -> human_review.HandedOut:
        """Write the rows that a person should label next."""
        return human_review.hand_out(self.folder, self.dataset.items, self.votes, learned.model, self.gold, rows)

    def model_in_force(self) -> Model:
        """Return the model of the folder; its promise is void if votes, gold or code have changed since."""
        model = Model.from_dict(read_json(self.folder.model))
        if model.certificate is None:
            return model
        now = fingerprint(self.votes, gold_codes(self.votes, self.gold.labels), __version__)
        return replace(model, certificate=in_force(model.certificate, now))

    def result(self, learned: Learned, outcomes: Sequence[Outcome], **more: Any) -> RunResult:
        """Return the result of the run."""
        return RunResult(
            folder=self.folder,
            config=self.config,
            dataset=replace(self.dataset, gold=self.gold.labels),
            votes=self.votes,
            learned=learned,
            outcomes=outcomes,
            bills=ledgers.ledger_sizes(self.folder.ledger),
            **{"tally": Tally(), **more},
        )


def started(folder: RunFolder) -> tuple[Config, Mapping[str, Any]]:
    """Return the settings of a run, and all of its `run.json`."""
    if not folder.settings.exists():
        raise ConfigError(f"{folder.path} is not a run folder (it has no {folder.settings.name}): pcs run creates one")
    start = read_json(folder.settings)
    return config_from_dict(start["config"]), start


def _with_earlier_audit(model: Model, folder: RunFolder) -> Model:
    """Return the model with the audit of the folder's model, if both make the same promise from the same rows."""
    if model.certificate is None or not folder.model.exists():
        return model
    earlier = Model.from_dict(read_json(folder.model)).certificate
    if earlier is None or earlier.audit is None:
        return model
    audited = replace(model.certificate, audit=earlier.audit)
    same = replace(audited, accepted_share=earlier.accepted_share, review_rows=earlier.review_rows) == earlier
    return replace(model, certificate=audited) if same else model


class VariantCount(NamedTuple):
    """How often a relation had this result for this reason."""

    relation: str
    status: Status
    reason: str
    times: int


def read_variants(folder: RunFolder, ids: Collection[str] | None = None) -> dict[tuple[str, str], Variant]:
    """Return item id and relation → variant, of some items or of all; empty if the folder has none.

    Original texts are not included, and the source of a variant is left empty: it is the item's text.
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
    """Yield the results of the rewrites with their counts, the most common result of each relation first."""
    table = _table(folder)
    if table is None:
        return
    counts = table.group_by(["relation", "status", "reason"]).aggregate([([], "count_all")]).to_pylist()
    for row in sorted(counts, key=lambda row: (row["relation"], -row["count_all"], row["status"], row["reason"] or "")):
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
        version: Version of the package that made it.
        data: Name of the user's file; empty if unknown.
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
    """Write a page completely or not at all; characters that UTF-8 cannot encode become question marks."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", "replace"))
