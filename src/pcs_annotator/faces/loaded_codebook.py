"""A loaded codebook: labels of all its variables for further texts and Arrow tables, with shared calls."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from pcs_annotator.base.concurrency import run_in_thread
from pcs_annotator.core.outcome import Outcome, Outcomes
from pcs_annotator.core.result_names import ERROR, HIGH, LEVEL, LOW, WITHIN_ONE
from pcs_annotator.core.task import Item
from pcs_annotator.faces.loaded_run import LoadedRun
from pcs_annotator.runs.codebook import YES, CodebookFolder, labels_of
from pcs_annotator.runs.columns import with_columns
from pcs_annotator.runs.labeller import LoadOptions
from pcs_annotator.runs.learned_sets import WholeSets, sets_in_force, whole_sets
from pcs_annotator.tables.arrow import columns_of, pa

EXAMPLE = Outcome(id="", label="", scores={}, confidence=0.5, decision="review", probabilities={YES: 0.5})
EXAMPLES = {WITHIN_ONE: 0.5, LOW: "", HIGH: "", LEVEL: 1}
"""What a text may get, from which the types of columns are known before any is labelled."""


class LoadedCodebook(AbstractContextManager["LoadedCodebook"]):
    """All variables of a codebook that was run: labels for further texts, with shared calls.

    It can be pickled and used by several threads, as a `LoadedRun` can.

    Attributes:
        folder: The folder of the codebook.
        variables: Their settings, by name.
        runs: The run of every variable; of one with any number of labels there is one per label, `variable=label`.
    """

    def __init__(self, book: CodebookFolder, options: LoadOptions) -> None:
        self.folder, self.variables = book.path, book.variables
        self.runs = book.each(lambda path: LoadedRun(path, options))
        self._first = next(iter(self.runs.values()))
        self._sets: dict[str, WholeSets] = {}

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close models and ledger; the next text opens them again."""
        for run in self.runs.values():
            run.close()

    def label(self, texts: object, ids: object = None) -> dict[str, Outcomes]:
        """Return the outcomes of one or several texts for every run, by its name in `runs`; else as for a single run.

        Runs label one after the other: the first pays for the calls that all of them share.
        """
        items = self._first._items(texts, ids)
        return {name: run._label_items(items) for name, run in self.runs.items()}

    async def alabel(self, texts: object, ids: object = None) -> dict[str, Outcomes]:
        """Async version of `label`."""
        return await run_in_thread(partial(self.label, texts, ids))

    def label_table(self, table: object, text_column: str | None = None) -> pa.Table:
        """Return the same rows with more columns: those of the codebook's `labels.csv`, and `pcs_error`.

        That says why a row has no label for some variable, and is null otherwise; else as for a single run.
        """
        rows, texts = self._first._rows(table, text_column)
        items = [Item(id=str(row), text=text) for row, (text, _) in enumerate(texts)]
        found = {name: one._label_items(items, one._groups(rows, texts) or ()) for name, one in self.runs.items()}
        why = [error or None for _, error in texts]
        for name, some in found.items():
            why = [
                one or (f"{name}: {got.reason}" if got.label is None else None)
                for one, got in zip(why, some, strict=True)
            ]
        sets = whole_sets(self.variables, found, self._learned)
        columns, schema = {**labels_of(self.variables, found, sets), ERROR: pa.array(why)}, self._new_columns()
        added = {one.name: columns.get(one.name, pa.nulls(len(rows))).cast(one.type) for one in schema}
        return with_columns(rows, added, schema.names)

    def label_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of `label_table` for tables with this schema; engines may ask for it beforehand."""
        added = self._new_columns()
        return with_columns(schema.empty_table(), columns_of(added.empty_table()), added.names).schema

    def _new_columns(self) -> pa.Schema:
        """Return the columns that `label_table` adds: those of a text that has everything a run may say."""
        examples = {}
        for name, run in self.runs.items():
            details = {column: EXAMPLES[column] for column in run._new_columns().names if column in EXAMPLES}
            examples[name] = [replace(EXAMPLE, details=details)]
        sets = whole_sets(self.variables, examples, self._learned)
        return pa.table({**labels_of(self.variables, examples, sets), ERROR: pa.array([""])}).schema

    def _learned(self, parts: Sequence[str]) -> WholeSets:
        """Return what was learned about all labels of a variable together; it is read once."""
        if parts[0] not in self._sets:
            fitted = [self.runs[part]._opened().fitted for part in parts]
            self._sets[parts[0]] = sets_in_force([run.folder for run in fitted], [run.frugal for run in fitted])
        return self._sets[parts[0]]
