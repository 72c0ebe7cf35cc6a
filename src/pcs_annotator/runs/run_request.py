"""What a run is asked to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pcs_annotator.asking.batches.waves import BatchSettings
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import Say
from pcs_annotator.base.errors import PcsError, warn_user
from pcs_annotator.base.fields import setting
from pcs_annotator.core.task import Item
from pcs_annotator.runs import ledgers, resolve_config
from pcs_annotator.runs.ask import CollectSettings, Follow
from pcs_annotator.runs.default_panel import DefaultPanel, panel_for
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.paths import RunFolder, read_start
from pcs_annotator.runs.settings import CommandSettings, Config, GoldSample
from pcs_annotator.tables import chunks
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.chunks import TableStream
from pcs_annotator.tables.find import table_stem
from pcs_annotator.tables.source_files import AS_FOUND, Reading

if TYPE_CHECKING:
    from pcs_annotator.runs.opened import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(CommandSettings):
    """What to run.

    Attributes:
        format: Format on standard output.
    """

    data: Path | str | pa.Table  # the user's table: a path, a pattern or an address; or the table itself
    folder: Path  # the run folder
    config: Config  # settings, including those of the command line
    progress: bool = False  # whether to show progress
    format: Literal["csv", "tsv", "jsonl"] = setting("csv", "--format")
    environment: Mapping[str, str] | None = field(default=None, repr=False)  # keys and URLs; None for the process's own
    own: OwnObjects = field(default_factory=OwnObjects, repr=False)  # objects that some names stand for
    announce: Callable[[Sequence[str]], None] | None = None  # called with sentences about what is asked, before it is
    ask_gold_sample: Callable[[int], GoldSample] | None = None  # asks a person how so many gold rows were chosen
    follow: Follow | None = field(default=None, repr=False)  # called with the counters of what is asked next
    whole_table: pa.Table | None = None  # the user's table, of which `data` has what is about one of several variables
    data_source: str = ""  # what that table is called
    paid: Tally = field(default_factory=Tally, repr=False)  # by this command so far; all variables share it
    working: Callable[[str], AbstractContextManager[object]] = nullcontext  # shows what is done while it takes its time
    say: Say = warn_user  # called with whom the run waits for, and where an earlier ledger is kept

    @property
    def run_folder(self) -> RunFolder:
        """The files of the run."""
        return RunFolder(self.folder, self.config.part)

    def batches(self, executor: str) -> BatchSettings | None:
        """Return how to ask in batches; None if another executor asks."""
        if executor != "batch":
            return None
        records = self.run_folder.batches
        return BatchSettings(records=records, say=self.say, environment=self.environment)

    @property
    def data_name(self) -> str:
        """What the run folder calls the data."""
        if self.data_source:
            return self.data_source
        return str(self.data) if isinstance(self.data, Path | str) else chunks.name_in_memory(self.data)

    def open_data(self) -> TableStream:
        """Open the user's table, to be read in chunks."""
        columns = resolve_config.columns_of(self.config)
        return chunks.open_stream(self.data, columns, self.limit, self.reading())

    def reading(self) -> Reading:
        """Return how to read the table: as the settings say; if they say nothing, as in an earlier run over it."""
        reading = resolve_config.reading_of(self.config)
        if reading == AS_FOUND:
            with suppress(PcsError):  # it may be damaged
                earlier = earlier_run(self.run_folder)
                if earlier is not None and earlier.start.get("data") == str(self.data):
                    return resolve_config.reading_of(earlier.config)
        return reading

    def how_to_ask(self, config: Config) -> CollectSettings:
        """Return how to ask, with what other variables leave of the limits of this command."""
        settings = resolve_config.collect_settings_of(config, self.environment, self.own)
        return replace(settings, follow=self.follow, budget=settings.budget.after(*self.paid.spent))

    def panel(self, config: Config, items: Sequence[Item]) -> DefaultPanel:
        """Return the questions that an earlier run in this folder asked, or that the models can answer about texts."""
        if (recorded := self._recorded_panel(config)) is not None:
            return recorded
        task, ledger = resolve_config.task_of(config), ledgers.ledger_of(self.run_folder, config)
        return panel_for(task, config.ask.models, ledger, self.how_to_ask(config), [item.text for item in items])

    def _recorded_panel(self, config: Config) -> DefaultPanel | None:
        """Return the questions of an earlier run in this folder, so that going on with it pays for nothing twice."""
        before = None if self.fresh else earlier_run(self.run_folder)
        if before is None:
            return None
        earlier = before.config
        same = (earlier.ask.models, earlier.task.labels) == (config.ask.models, config.task.labels)
        if not same or config.ask.answers not in ("auto", earlier.ask.answers) or not earlier.relations.use:
            return None
        reason = f"as in the earlier run in {self.folder}: {', '.join(earlier.relations.use)}"
        return DefaultPanel(relations=earlier.relations.use, questions=earlier.ask.questions, reasons=(reason,))


def earlier_run(folder: RunFolder) -> Run | None:
    """Return the run of a folder; None if there is none yet."""
    if not read_start(folder):
        return None
    from pcs_annotator.runs.opened import Run  # imports the code that learns, for which no new run should wait
    from pcs_annotator.runs.passage_run import of_texts

    return of_texts(Run.of(folder))


def default_folder(data: Path | str | pa.Table) -> Path:
    """Return the run folder to use if none is given."""
    return Path("runs") / (table_stem(data) if isinstance(data, Path | str) else "table")
