"""All rows of a run as arrays, what the model in force says about them, and everything about one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pcs_annotator.asking.annotators.prompt import task_prompt
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.gold import UNLABELLED, text_hash
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.tabular import as_arrow, columns_of, text_column
from pcs_annotator.core.task import Phrasing, Task, label_lookup, unknown_label
from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.core.vote_columns import indexed
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.errors import PcsError, TableError, UnknownRow
from pcs_annotator.files import human_files, tables, vote_files
from pcs_annotator.files.config import Config
from pcs_annotator.files.runs import RunFolder, read_json
from pcs_annotator.judging.model import Model, Verdicts
from pcs_annotator.pipeline import folder_votes, run_folder
from pcs_annotator.pipeline.relations import relation_options_of
from pcs_annotator.pipeline.resolve_config import columns_of as columns_of_settings
from pcs_annotator.pipeline.resolve_config import task_of
from pcs_annotator.pipeline.review.values import ShownVariant, ShownVote
from pcs_annotator.relations.base import rephrased
from pcs_annotator.relations.choose import choose_relations

if TYPE_CHECKING:
    import pyarrow as pa

DECISIONS = ("none", "accept", "agree", "review")
NO_LABEL = -1


@dataclass(frozen=True)
class Judgement:
    """What the model in force says about every row.

    Attributes:
        model: The model; weights are equal before the first fit.
        fitted: Whether it was learned.
        judged: Scores and probabilities.
        label: Position of the label, `NO_LABEL` where there is no vote.
        certainty: Confidence of the label, or its score where there is no confidence; -1 without a label.
        decision: Position in `DECISIONS`.
        learned_until: Number of the last event of a review that it knows.
    """

    model: Model
    fitted: bool
    judged: Verdicts
    label: Codes
    certainty: Floats
    decision: Codes
    learned_until: int = 0

    @classmethod
    def of(cls, folder: RunFolder, votes: Votes) -> Judgement:
        """Judge votes by the model of a folder; before the first fit, all weights are equal."""
        fitted = folder.model.exists()
        uniform = Model(weights=Weights.uniform(votes), calibrator=None, by_agreement=True)
        model = run_folder.model_in_force(folder, votes, None) if fitted else uniform
        judged, silent = model.judged(votes), votes.silent
        label = np.where(silent, NO_LABEL, judged.best).astype(np.int8)
        certainty = np.where(silent, -1.0, judged.deciding[np.arange(len(votes)), judged.best])
        codes = {name: code for code, name in enumerate(DECISIONS)}
        decision = np.array([codes[one or "none"] for one in model.decisions(votes, judged)], dtype=np.int8)
        decision[silent] = codes["review"]
        until = read_json(folder.model).get("verdicts_until", 0) if fitted else 0
        return cls(model, fitted, judged, label, certainty, decision, until)

    @property
    def accepted(self) -> Mask:
        """Which labels are accepted."""
        return self.decision == DECISIONS.index("accept")


@dataclass(frozen=True, kw_only=True)
class Rows:
    """All rows of a run.

    Attributes:
        folder: The run folder.
        config: The settings of the run.
        own: The user's columns that hold neither IDs nor texts nor gold: whoever sees gold does not judge the text.
        texts: The texts, as an Arrow array.
        answers: All votes, also of annotators that state a confidence.
        votes: Those of them that scores are computed from.
        gold: Position of the gold label, from the data or a person's file; `UNLABELLED` where there is none.
        data_gold: The same, from the data alone.
        places: ID → position.
        rewrites: The variants of every row.
        questions: Relation that changes the question → what was asked.
        judgement: What the model in force says.
    """

    folder: RunFolder
    config: Config
    own: pa.Table
    texts: pa.Array
    answers: Votes
    votes: Votes
    gold: Codes
    data_gold: Codes
    places: Mapping[str, int]
    rewrites: vote_files.VariantsByItem
    questions: Mapping[str, str]
    judgement: Judgement

    @classmethod
    def read(cls, folder: RunFolder) -> Rows:
        """Read a run folder; no row becomes an object of its own.

        Raises:
            ConfigError: It is not a run folder.
            TableError: A file is missing or damaged, or the model was fitted with other labels.
        """
        from pyarrow import ArrowException

        config, start = run_folder.started(folder)
        if not folder.items.exists():
            raise TableError(f"{folder.path} has no {folder.items.name}: pcs run, once more, writes it")
        table = as_arrow(folder.items)
        columns = columns_of(table)
        used = tables.find_columns(columns, folder.items.name, columns_of_settings(config))
        texts = text_column(used.text or "", columns[used.text or ""]).fill_null("")
        names = [None] * len(texts) if used.id is None else text_column(used.id, columns[used.id]).to_pylist()
        ids = [name or str(row) for row, name in enumerate(names, 1)]
        items = partial(tables.read_dataset, folder.items, columns_of_settings(config))
        answers = folder_votes.recorded_votes(folder, config, start, ids, lambda: items().items)
        votes = answers.plain()
        places = {name: place for place, name in enumerate(answers.ids)}
        data_gold = _data_gold(columns, used.gold, votes, folder.items.name)
        rows = cls(
            folder=folder,
            config=config,
            own=table.drop_columns([name for name in (used.text, used.id, used.gold) if name]),
            texts=texts,
            answers=answers,
            votes=votes,
            gold=data_gold,
            data_gold=data_gold,
            places=places,
            rewrites=vote_files.VariantsByItem(folder.variants, answers.ids),
            questions=asked_questions(config),
            judgement=Judgement.of(folder, votes),
        )
        with suppress(OSError, ArrowException):
            rows.rewrites.index()
        return replace(rows, gold=rows.known_gold())

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def task(self) -> Task:
        """What was asked."""
        return task_of(self.config)

    @property
    def own_columns(self) -> Sequence[str]:
        """Names of the user's other columns."""
        return list(self.own.column_names)

    @property
    def labels(self) -> Sequence[str]:
        """The labels."""
        return self.answers.labels

    @property
    def ids(self) -> Sequence[str]:
        """The ID of every row."""
        return self.answers.ids

    @cached_property
    def disagreement(self) -> Mask:
        """Where two models give different labels most often."""
        shares = self.votes.hard().shares().sum(axis=2)
        top = shares.argmax(axis=2)
        spoken = shares.max(axis=2) > 0
        highest = np.where(spoken, top, -1).max(axis=1)
        lowest = np.where(spoken, top, len(self.labels)).min(axis=1)
        return np.asarray((highest > lowest) & spoken.any(axis=1))

    def refitted(self) -> Rows:
        """Return the rows with the model and the gold that are in the folder now; texts and votes stay."""
        return replace(self, judgement=Judgement.of(self.folder, self.votes), gold=self.known_gold())

    def known_gold(self) -> Codes:
        """Return the gold of the data, overridden by what people gave in files, where the text is still the same."""
        codes, lookup = self.data_gold.copy(), label_lookup(self.labels)
        for one in human_files.read_gold(self.folder.gold) if self.folder.gold.exists() else ():
            place = self.places.get(one.id)
            if place is not None and one.text_hash in ("", self.text_hash(place)):
                codes[place] = lookup.get(one.label.casefold(), codes[place])
        return codes

    def place(self, name: str) -> int:
        """Return the position of a row."""
        if name not in self.places:
            raise UnknownRow(f"the run has no row {name!r}: check the ID, or search for a word of its text")
        return self.places[name]

    def text(self, place: int) -> str:
        """Return the text of a row."""
        return str(self.texts[place].as_py())

    def text_hash(self, place: int) -> str:
        """Return the hash of a row's text."""
        return text_hash(self.text(place))

    def outcome(self, place: int) -> Outcome:
        """Return what the models say about a row."""
        return next(self.judgement.model.judge(self.votes.take(np.array([place]))))

    def probabilities(self, place: int) -> list[tuple[str, float]]:
        """Return every label with its probability, or score, the highest first."""
        values = self.judgement.judged.deciding[place]
        order = np.argsort(-values, kind="stable")
        return [(self.labels[code], float(values[code])) for code in order]

    def votes_on(self, place: int) -> list[ShownVote]:
        """Return all answers about a row."""
        answers, codes = self.answers, self.answers.codes[place]
        found = []
        for annotator, relation, draw in np.argwhere(codes != NOT_ASKED).tolist():
            code = int(codes[annotator, relation, draw])
            grades = None if answers.grades is None else answers.grades[place, annotator, relation, draw]
            graded = grades is not None and not np.isnan(grades).any()
            found.append(
                ShownVote(
                    answers.annotators[annotator],
                    answers.relations[relation],
                    draw,
                    self.labels[code] if code >= 0 else None,
                    dict(zip(self.labels, map(float, grades), strict=True)) if graded and grades is not None else None,
                )
            )
        return found

    def variants(self, place: int) -> list[ShownVariant]:
        """Return what relations made of a row."""
        return [
            ShownVariant(
                one.relation,
                one.status,
                one.refused if one.text is None else None if one.status == "original" else one.text,
                self.questions.get(one.relation),
                one.reason,
            )
            for one in self.rewrites.of(place)
        ]

    @property
    def question(self) -> str:
        """What was asked about the original texts."""
        return asked(Phrasing(task=self.task), letters=self.config.ask.letters)

    def columns(self, place: int) -> dict[str, str]:
        """Return the user's other columns of a row; empty cells are left out."""
        values: dict[str, Any] = {name: self.own[name][place].as_py() for name in self.own_columns}
        return {name: str(value) for name, value in values.items() if value is not None and str(value) != ""}


def asked_questions(config: Config) -> dict[str, str]:
    """Return relation → what was asked, for relations that change the question and are still known."""
    rewriter = bool(config.relations.rewriter)
    found = {}
    for name in config.relations.use:
        try:
            [relation] = choose_relations([name], relation_options_of(config.relations, rewriter=rewriter))
            plain = Phrasing(task=task_of(config))
            phrasing = rephrased(relation, plain)
        except PcsError:
            continue
        if phrasing != plain:
            found[relation.name] = asked(phrasing, letters=config.ask.letters)
    return found


def asked(phrasing: Phrasing, *, letters: bool) -> str:
    """Return what is asked, without the text: who gets to read it, then the words."""
    where = "One message, with the text at its end" if phrasing.one_message else "System message; the text comes alone"
    return f"{where}\n\n{task_prompt(phrasing.task, 'letter tag' if letters else 'tag')}"


def _data_gold(columns: Mapping[str, pa.ChunkedArray], name: str | None, votes: Votes, source: str) -> Codes:
    if name is None:
        return np.full(len(votes), UNLABELLED, dtype=np.int8)
    column, lookup = indexed(name, columns[name]), label_lookup(votes.labels)
    codes = [UNLABELLED] * (len(column.distinct) + 1)  # the last one stands for an empty cell
    for position, text in enumerate(column.distinct):
        if text.strip():
            code = lookup.get(text.strip().casefold())
            if code is None:
                raise unknown_label(text, votes.labels, f"{source}, column {name}")
            codes[position] = code
    return np.array(codes, dtype=np.int8)[column.positions]
