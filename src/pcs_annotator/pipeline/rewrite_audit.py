"""Applies our checks to rewrites from elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from pcs_annotator.core.concurrency import run_sync
from pcs_annotator.core.tabular import as_arrow, columns_of, text_column
from pcs_annotator.core.variant import Expectation, Verdict
from pcs_annotator.errors import TableError
from pcs_annotator.files.config import read_config
from pcs_annotator.files.runs import check_ending, make_way, refuse_existing, refuse_inputs
from pcs_annotator.files.table_writer import WRITTEN
from pcs_annotator.files.tables import write_table
from pcs_annotator.pipeline.relations import RelationChoice, relation_options_of
from pcs_annotator.relations.base import QuestionRelation
from pcs_annotator.relations.checks.run import check_rewrite
from pcs_annotator.relations.choose import find_relation
from pcs_annotator.relations.parse import Parser

Finding = Literal["kept", "unchanged", "rejected"]
UNCHANGED: Literal["unchanged"] = "unchanged"


class AuditedRow(NamedTuple):
    """One rewrite with its verdicts."""

    relation: str
    original: str
    rewrite: str
    finding: Finding
    verdicts: tuple[Verdict, ...]

    @property
    def reason(self) -> str:
        """What is wrong with it; empty if nothing is."""
        return "; ".join(verdict.detail for verdict in self.verdicts if not verdict.passed)


class Agreement(NamedTuple):
    """The checks compared with a person's judgement.

    Attributes:
        bad: Rewrites that changed the meaning.
        caught: How many of those are rejected.
        good: Rewrites that kept the meaning.
        wronged: How many of those are rejected.
    """

    bad: int
    caught: int
    good: int
    wronged: int


@dataclass(frozen=True, slots=True)
class RewriteAudit:
    """Verdicts on all rows; the agreement is None if the rows have no judgements by a person."""

    rows: Sequence[AuditedRow]
    agreement: Agreement | None = None

    def count(self, finding: str) -> int:
        """Return how many rows have this finding."""
        return sum(row.finding == finding for row in self.rows)

    @property
    def by_check(self) -> Mapping[str, int]:
        """How many rewrites each check rejected."""
        rejected = (row for row in self.rows if row.finding == "rejected")
        failed = Counter(verdict.check for row in rejected for verdict in row.verdicts if not verdict.passed)
        return dict(failed.most_common())


def audit_rewrites(
    path: Path, relation: str, choice: RelationChoice, out: Path | None, *, replace: bool = False
) -> RewriteAudit:
    """Return the verdicts on every row of a table with `original`, `rewrite` and `relation`."""
    if out is not None:
        check_ending(out, WRITTEN)
        refuse_inputs(out, path)
        refuse_existing(out, replace=replace)
    columns = columns_of(as_arrow(path))
    wanted = ["original", "rewrite", *([] if relation else ["relation"])]
    for name in wanted:
        if name not in columns:
            raise TableError(f"{path.name} has no column {name!r}; it has {', '.join(columns)}: rename one")
    texts = {name: [text or "" for text in text_column(name, columns[name]).to_pylist()] for name in wanted}
    relations = texts.get("relation") or [relation] * len(texts["original"])
    options = relation_options_of(read_config(choice.config, choice.folder).relations, rewriter=True)

    @cache
    def expectation(name: str) -> Expectation:
        relation = find_relation(name.strip(), options)
        if isinstance(relation, QuestionRelation):
            raise TableError(
                f"{path.name}: relation {relation.name!r} changes the question, not the text, so there is no rewrite "
                "to check: leave its rows out"
            )
        return relation.expects

    async def all_of_them() -> list[AuditedRow]:
        parser = Parser()
        return [
            await _audited(row, expectation(row[0]), parser)
            for row in zip(relations, texts["original"], texts["rewrite"], strict=True)
        ]

    rows = run_sync(all_of_them)
    if out is not None:
        make_way(out)
        _write(out, rows)
    judged = columns.get("keeps_meaning")
    return RewriteAudit(
        rows, None if judged is None else _agreement(rows, text_column("keeps_meaning", judged).to_pylist())
    )


async def _audited(row: tuple[str, str, str], expects: Expectation, parser: Parser) -> AuditedRow:
    relation, original, rewrite = row
    verdicts = await check_rewrite(original, rewrite, expects, parser)
    failed = {verdict.check for verdict in verdicts if not verdict.passed}
    finding: Finding = UNCHANGED if UNCHANGED in failed else "rejected" if failed else "kept"
    return AuditedRow(relation, original, rewrite, finding, verdicts)


def _agreement(rows: Sequence[AuditedRow], judged: Sequence[str | None]) -> Agreement:
    bad = [row for row, kept in zip(rows, judged, strict=True) if kept == "0"]
    good = [row for row, kept in zip(rows, judged, strict=True) if kept == "1"]
    return Agreement(
        bad=len(bad),
        caught=sum(row.finding == "rejected" for row in bad),
        good=len(good),
        wronged=sum(row.finding == "rejected" for row in good),
    )


def _write(path: Path, rows: Sequence[AuditedRow]) -> None:
    import pyarrow as pa

    columns = {
        "relation": [row.relation for row in rows],
        "original": [row.original for row in rows],
        "rewrite": [row.rewrite for row in rows],
        "finding": [row.finding for row in rows],
        "reason": [row.reason for row in rows],
    }
    write_table(path, pa.table(columns, schema=pa.schema([(name, pa.string()) for name in columns])))
