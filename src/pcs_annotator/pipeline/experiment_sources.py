"""What experiments are run on: recorded votes, the folder of a run, or texts that models are asked about first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.core.elicitations import elicited_name, kind_of
from pcs_annotator.core.tabular import as_arrow
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.core.vote_table import LONG_COLUMNS
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import ConfigError, GoldError
from pcs_annotator.files.config import Config
from pcs_annotator.files.runs import RunFolder, read_json, write_json
from pcs_annotator.files.sources import is_public_set, read_source
from pcs_annotator.files.vote_files import write_votes
from pcs_annotator.pipeline.resolve_config import columns_of, settled
from pcs_annotator.pipeline.run import RunRequest, run
from pcs_annotator.pipeline.run_folder import Recorded, RunResult

ELICITED = ("1s-top-2", "2s-top-2", "ling-1s", "p-true")
"""How models are asked how sure they are, for the published baselines."""
ENDINGS = (".gz", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".pq")

Kind = Literal["votes", "run", "texts"]


class ExperimentSource(NamedTuple):
    """One dataset: its name, what the user wrote, and what that is."""

    name: str
    spec: str
    kind: Kind

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(self.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How models are asked about texts.

    Attributes:
        config: Models, relations, columns and all else that `pcs run` knows.
        baselines: Whether to ask what published baselines need, too.
        limit: How many rows of each source; None for all.
        progress: Whether to show how far it is.
        environment: Keys and base URLs; None for those of the process and of `.env`.
    """

    config: Config
    baselines: bool = False
    limit: int | None = None
    progress: bool = False
    environment: Mapping[str, str] | None = field(default=None, repr=False)


class AskedSource(NamedTuple):
    """The run that holds the votes, and how many questions were left unanswered, by reason."""

    folder: Path
    unanswered: Mapping[str, int]


def find_sources(given: Sequence[str]) -> list[ExperimentSource]:
    """Return what each of `PATH` or `NAME=PATH` is; names must differ, for tables tell datasets by them."""
    found = [_source(one) for one in given]
    names = [source.name for source in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two sources are called {name!r}: rename one, as in NAME=PATH")
    return found


def _source(given: str) -> ExperimentSource:
    name, equals, spec = given.partition("=")
    if not equals or "/" in name or Path(given).exists():
        name, spec = "", given
    path = Path(spec)
    if is_public_set(spec):
        kind: Kind = "texts"
    elif path.is_dir():
        kind = "run"
    else:
        columns = as_arrow(path).column_names
        kind = "votes" if set(LONG_COLUMNS) <= set(columns) or any("|" in column for column in columns) else "texts"
    return ExperimentSource(name or _stem(path), spec, kind)


def _stem(path: Path) -> str:
    while path.suffix.lower() in ENDINGS:
        path = path.with_suffix("")
    return path.name.rpartition(":")[2] or path.name


def ask_source(source: ExperimentSource, folder: Path, asking: Asking, folds: int) -> AskedSource:
    """Do what `pcs run` does with the texts of a source; what its ledger holds is not asked again."""
    config = _settled(source, asking, folds)
    request = RunRequest(
        data=source.path,
        folder=folder,
        config=config,
        limit=asking.limit,
        progress=asking.progress,
        to_label=0,
        environment=asking.environment,
    )
    if not asking.baselines:
        return AskedSource(folder, _unanswered(run(request)))
    if ORIGINAL not in config.relations.use:
        raise ConfigError(f"--baselines asks about the unchanged text: add {ORIGINAL} to --relations")
    kept = RunFolder(folder)
    # Baselines see the unchanged text alone. The same folder, so that no answer on it is paid for twice.
    plain = [model for model in config.ask.models if not kind_of(model)]
    models = (*plain, *(elicited_name(model, kind) for model in plain for kind in ELICITED))
    only = replace(config.relations, use=(ORIGINAL,))
    sure = run(replace(request, config=replace(config, ask=replace(config.ask, models=models), relations=only)))
    answers = Recorded.read(kept).answers
    found = run(request)
    _record(kept, _with_elicited(Recorded.read(kept).answers, answers))
    return AskedSource(folder, {**_unanswered(sure), **_unanswered(found)})


def _settled(source: ExperimentSource, asking: Asking, folds: int) -> Config:
    """Return settings with nothing left open; too little gold is an error before the first call, not after the last."""
    if not asking.config.ask.models:
        raise ConfigError(
            f"{source.spec} holds texts and no votes: name models to ask with --model provider:model, or give a table "
            "with columns <annotator>|<relation> and gold"
        )
    dataset = read_source(source.spec, columns_of(asking.config), asking.limit)
    rows = [label for label in dataset.gold if label]
    classes = len({label.casefold() for label in rows})
    if len(rows) < 2 * folds or classes < 2:
        raise GoldError(
            f"{source.spec}: experiments need at least {2 * folds} gold rows and two classes, there are {len(rows)} of "
            f"{classes}: label more rows, or name the column with --gold-column"
        )
    return settled(asking.config, dataset)


def _unanswered(result: RunResult) -> dict[str, int]:
    return dict(result.tally.failed)


def _with_elicited(votes: Votes, sure: Votes) -> Votes:
    """Return the votes with those of elicited annotators beside them, which saw the unchanged text alone."""
    names = [name for name in sure.annotators if kind_of(name) and name not in votes.annotators]
    more = sure.select(annotators=names, relations=[ORIGINAL])
    place = votes.relations.index(ORIGINAL)
    shape = (len(votes), len(names), *votes.codes.shape[2:])
    codes = np.full(shape, NOT_ASKED, dtype=np.int8)
    codes[:, :, place] = more.codes[:, :, 0]
    stated = np.full((*shape, len(votes.labels)), np.nan)
    if more.stated is not None:
        stated[:, :, place] = more.stated[:, :, 0]
    nothing = np.full((*votes.codes.shape, len(votes.labels)), np.nan)
    return replace(
        votes,
        codes=np.concatenate([votes.codes, codes], axis=1),
        annotators=(*votes.annotators, *names),
        stated=np.concatenate([nothing if votes.stated is None else votes.stated, stated], axis=1),
    )


def _record(folder: RunFolder, votes: Votes) -> None:
    write_votes(folder.votes, votes)
    start = read_json(folder.settings)
    write_json(folder.settings, {**start, "annotators": list(votes.annotators)})
