"""Lists relations, tries one on a text, and measures them on a file."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from pcs_annotator.asking.annotators.prompt import build_messages
from pcs_annotator.asking.engine.ask import Asker, Rewriter
from pcs_annotator.asking.engine.budget import Budget, BudgetTracker
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import lock_ledger_async
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.task import Item, Phrasing, Task, usual_instruction
from pcs_annotator.core.variant import Status, Variant
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluation.flips import Flips, flips_by_relation
from pcs_annotator.models.provider import read_environment
from pcs_annotator.models.resolve import resolve_model
from pcs_annotator.relations.base import Context, QuestionRelation, Relation, asks_about_truth, rephrased
from pcs_annotator.relations.choose import choose_relations, known_relations
from pcs_annotator.relations.compose import text_parts
from pcs_annotator.relations.parse import Parser
from pcs_annotator.relations.prepared import prepared
from pcs_annotator.relations.question.wording import write_wording
from pcs_annotator.relations.rule import why_not_parsed
from pcs_annotator.runs.ask import pricing
from pcs_annotator.runs.files.config import TaskSettings, read_config
from pcs_annotator.runs.files.runs import RunFolder, check_ending, make_way, refuse_existing, refuse_inputs
from pcs_annotator.runs.relation_options import DEFAULT, own_relations, relation_options_of
from pcs_annotator.tables.sources import read_source
from pcs_annotator.tables.table_files import AS_FOUND, Reading
from pcs_annotator.tables.table_writer import WRITTEN
from pcs_annotator.tables.tables import Columns, write_table

AT_ONCE = 256
WARM_UP = "The council approved the plan on Monday, and it did not say why."
EXAMPLE = Task("How does the writer feel?", ["positive", "neutral", "negative"])
"""The task that relations of the question are shown with if `pcs.toml` has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRelation:
    """A relation as it is listed.

    Attributes:
        name: As users write it.
        version: Changes whenever the rewrite of a text may change.
        changes: What it changes.
        needs: What it cannot work without.
        deterministic: Whether the same text always gives the same rewrite.
        usable: Whether the packages it needs are installed.
    """

    name: str
    version: str
    changes: Literal["text", "question", "nothing"]
    needs: tuple[str, ...]
    deterministic: bool
    usable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationChoice:
    """Where relations come from.

    Attributes:
        rewriter: The model that rewrites; empty for the one in the configuration, if any.
        config: A `pcs.toml`; None for the one in the working folder, if any.
        ledger: Where to keep paid rewrites; None not to keep them.
        folder: The working folder.
    """

    rewriter: str = ""
    config: Path | None = None
    ledger: LedgerAddress | None = None
    folder: Path = field(default_factory=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How well one relation does on a file.

    Attributes:
        texts: Number of texts.
        statuses: Number of texts per status.
        causes: Why texts were not changed, with counts.
        seconds: Time spent rewriting, without checks: CPU time with parsing for rules, wall time for models.
        flips: How often votes changed under it; None without votes.
    """

    texts: int
    statuses: Mapping[Status, int]
    causes: Mapping[str, int]
    seconds: float
    flips: Flips | None = None

    @property
    def changed(self) -> int:
        """Number of rewritten texts."""
        return self.statuses.get("changed", 0)

    @property
    def unchanged(self) -> int:
        """Number of texts that stay as they are, because the relation changes the question."""
        return self.statuses.get("original", 0)

    @property
    def not_applicable(self) -> int:
        """Number of texts to which the relation does not apply."""
        return self.statuses.get("not_applicable", 0)

    @property
    def rejected(self) -> int:
        """Number of texts whose rewrite failed a check."""
        return self.statuses.get("rejected", 0)

    @property
    def per_second(self) -> float:
        """Texts per second."""
        return self.texts / max(self.seconds, 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """What to measure relations on.

    Attributes:
        file: A table of texts.
        relations: Names; empty for those in the configuration, otherwise the paper's three.
        text_column: Text column; None for `text`, or the only column.
        id_column: ID column; None for `id`, or row numbers.
        votes: A run folder or a table of votes, for how often answers changed under each relation.
        out: Where to write every variant; None to write none.
        replace: Whether to keep a file in the way of `out` under a dated name.
        limit: Use only the first N texts; None for all.
        reading: How to read the table.
    """

    file: Path
    relations: tuple[str, ...] = ()
    text_column: str | None = None
    id_column: str | None = None
    votes: Path | None = None
    out: Path | None = None
    replace: bool = False
    limit: int | None = None
    reading: Reading = AS_FOUND


def list_relations(choice: RelationChoice) -> list[KnownRelation]:
    """Return every relation: built in, from plug-ins, and from `pcs.toml`."""
    settings = read_config(choice.config, choice.folder).relations
    parses = Parser().available
    return [
        KnownRelation(
            name=relation.name,
            version=relation.version,
            changes=_changes(relation),
            needs=tuple(sorted(relation.needs)),
            deterministic=relation.deterministic,
            usable="parser" not in relation.needs or parses,
        )
        for relation in known_relations(own_relations(settings))
    ]


def _changes(relation: Relation) -> Literal["text", "question", "nothing"]:
    if isinstance(relation, QuestionRelation):
        return "question"
    return "text" if text_parts(relation) else "nothing"


class TriedRelation(NamedTuple):
    """A text under a relation.

    Attributes:
        variant: The text, or why there is none.
        question: What models read under this relation; empty if it does not change the question.
        usual_question: What they read under `original`.
        example: Whether the question is an example, because `pcs.toml` has no labels.
    """

    variant: Variant
    question: str = ""
    usual_question: str = ""
    example: bool = False


def try_relation(name: str, text: str, choice: RelationChoice) -> TriedRelation:
    """Return what one relation makes of one text, and of the question about it."""
    settings = read_config(choice.config, choice.folder).task

    async def one() -> TriedRelation:
        async with _opened([name], choice) as bench:
            relation = bench.relations[0]
            variant = await relation.rewrite(text, bench.context)
            usual = Phrasing(task=await _task_for(relation, settings, bench.context))
            put = rephrased(relation, usual)
            if put == usual:
                return TriedRelation(variant)
            return TriedRelation(
                variant, _read_as(put, variant.text or text), _read_as(usual, text), not settings.labels
            )

    return run_sync(one)


async def _task_for(relation: Relation, settings: TaskSettings, context: Context) -> Task:
    """Return the task of `pcs.toml`, or an example, with all that a relation needs."""
    task = _task_of(settings)
    if "wording" not in relation.needs or task.written_wording:
        return task
    if context.ask is None:
        raise ConfigError(
            f"relation {relation.name!r} needs a model that rewrites: name one as rewriter (--rewriter MODEL)"
        )
    return replace(task, written_wording=await write_wording(task, context.ask))


def _task_of(settings: TaskSettings) -> Task:
    if not settings.labels:
        return EXAMPLE
    instruction = settings.instruction or usual_instruction(settings.labels)
    return Task(instruction, settings.labels, settings.meanings, settings.wordings, settings.written_wording)


def _read_as(question: Phrasing, text: str) -> str:
    messages = build_messages(question.task, text, style="plain" if question.one_message else "chat")
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in messages)


def check_relations(request: CheckRequest, choice: RelationChoice) -> dict[str, Coverage]:
    """Return how well each relation does on the texts of a file; write every variant if the request asks for it."""
    if request.out is not None:
        check_ending(request.out, WRITTEN)
        refuse_inputs(request.out, request.file)
        refuse_existing(request.out, replace=request.replace)
    columns = Columns(text=request.text_column, id=request.id_column)
    items = read_source(request.file, columns, request.limit, request.reading).items
    flips = _flips(request.votes) if request.votes is not None else {}
    variants: list[tuple[Item, Variant]] = []

    async def all_of_them() -> dict[str, _Count]:
        async with _opened(request.relations, choice) as bench:
            await bench.warm_up()
            counts = {relation.name: _Count() for relation in bench.relations}
            for start in range(0, len(items), AT_ONCE):
                async for item, variant in bench.measured(items[start : start + AT_ONCE], counts):
                    counts[variant.relation].add(variant)
                    variants.append((item, variant))
            return counts

    counts = run_sync(all_of_them)
    if request.out is not None:
        make_way(request.out)
        _write_variants(request.out, variants)
    return {name: count.coverage(len(items), flips.get(name)) for name, count in counts.items()}


def _flips(path: Path) -> dict[str, Flips]:
    votes = Votes.from_table(RunFolder(path).votes if path.is_dir() else path)
    return flips_by_relation(votes)


@dataclass(slots=True)
class _Count:
    """The results of one relation so far."""

    statuses: Counter[Status] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, variant: Variant) -> None:
        self.statuses[variant.status] += 1
        if variant.text is None:
            self.causes[variant.cause] += 1

    def coverage(self, texts: int, flips: Flips | None) -> Coverage:
        return Coverage(
            texts=texts,
            statuses=self.statuses,
            causes=dict(self.causes.most_common()),
            seconds=self.seconds,
            flips=flips,
        )


@dataclass(frozen=True, slots=True)
class _RelationBench:
    """Relations, the same relations without checks, and their context."""

    relations: Sequence[Relation]
    unchecked: Sequence[Relation]
    context: Context

    async def warm_up(self) -> None:
        """Load parser and word lists before the clock starts."""
        for relation in self.unchecked:
            if "rewriter" not in relation.needs:
                await relation.rewrite(WARM_UP, self.context)

    async def measured(
        self, items: Sequence[Item], counts: Mapping[str, _Count]
    ) -> AsyncIterator[tuple[Item, Variant]]:
        """Yield every variant of some items, and add up the time spent rewriting."""
        parsing = self._parse(items)
        for relation, unchecked in zip(self.relations, self.unchecked, strict=True):
            count = counts[relation.name]
            if "rewriter" not in relation.needs:
                count.seconds += parsing if "parser" in relation.needs else 0.0
                started = time.process_time()
                for item in items:
                    await unchecked.rewrite(item.text, self.context)
                count.seconds += time.process_time() - started
            started = time.perf_counter()
            variants = await asyncio.gather(*(relation.rewrite(item.text, self.context) for item in items))
            if "rewriter" in relation.needs:
                count.seconds += time.perf_counter() - started
            for item, variant in zip(items, variants, strict=True):
                yield item, variant

    def _parse(self, items: Sequence[Item]) -> float:
        """Parse the items once for all relations; return the seconds it took."""
        if not any("parser" in relation.needs for relation in self.relations):
            return 0.0
        started = time.process_time()
        self.context.parser.parse_many(prepared(item.text).text for item in items if not why_not_parsed(item.text))
        return time.process_time() - started


@asynccontextmanager
async def _opened(names: Sequence[str], choice: RelationChoice) -> AsyncIterator[_RelationBench]:
    """Open relations that are ready to rewrite, and close their model at the end."""
    config = read_config(choice.config, choice.folder)
    settings, about_truth = config.relations, asks_about_truth(_task_of(config.task))
    spec = choice.rewriter or settings.rewriter
    options = relation_options_of(settings, rewriter=bool(spec))
    relations = choose_relations(names or settings.use or DEFAULT, options)
    unchecked = choose_relations(names or settings.use or DEFAULT, replace(options, checked=False))
    if not spec:
        yield _RelationBench(relations, unchecked, Context(about_truth=about_truth))
        return
    model = resolve_model(spec, read_environment(choice.folder))
    with TemporaryDirectory() as folder:
        path = choice.ledger or Path(folder) / "ledger.db"
        async with lock_ledger_async(path):
            with open_ledger(path) as ledger:
                asker = Asker(ledger, BudgetTracker(Budget()), Tally(), pricing({}))
                try:
                    context = Context(ask=Rewriter(model, asker), about_truth=about_truth)
                    yield _RelationBench(relations, unchecked, context)
                finally:
                    await model.close()


def _write_variants(path: Path, variants: Sequence[tuple[Item, Variant]]) -> None:
    import pyarrow as pa

    columns = {
        "id": [item.id for item, _ in variants],
        "relation": [variant.relation for _, variant in variants],
        "status": [variant.status for _, variant in variants],
        "text": [variant.text for _, variant in variants],
        "reason": [variant.reason for _, variant in variants],
    }
    write_table(path, pa.table(columns, schema=pa.schema([(name, pa.string()) for name in columns])))
