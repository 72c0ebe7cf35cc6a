"""All rows of a run as arrays, what the model in force says about them, and everything about one row."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pcs_annotator.asking.annotators.prompt import task_prompt
from pcs_annotator.base.errors import PcsError, PcsWarning, TableError, UnknownRow
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.gold import gold_codes, text_hash
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Phrasing, Task
from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.model import Model, Verdicts
from pcs_annotator.relations.base import rephrased
from pcs_annotator.relations.choose import choose_relations
from pcs_annotator.runs import human_review, run_folder
from pcs_annotator.runs.files.config import Config
from pcs_annotator.runs.files.runs import RunFolder, read_json
from pcs_annotator.runs.relation_options import relation_options_of
from pcs_annotator.runs.resolve_config import task_of
from pcs_annotator.runs.review.values import ShownVariant, ShownVote
from pcs_annotator.tables import vote_files
from pcs_annotator.tables.tables import Dataset
from pcs_annotator.tables.tabular import text_column

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
        dataset: The rows, with the gold labels of the data.
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
    dataset: Dataset
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
        """Read a run folder.

        Raises:
            ConfigError: It is not a run folder.
            TableError: A file is missing or damaged, or the model was fitted with other labels.
        """
        config, start = run_folder.started(folder)
        dataset, answers = run_folder.recorded_rows(folder, config, start)
        table, used, votes = dataset.table, dataset.columns, answers.plain()
        data_gold = gold_codes(votes, dataset.gold or [None] * len(votes))
        rows = cls(
            folder=folder,
            config=config,
            dataset=dataset,
            own=table.drop_columns([name for name in (used.text, used.id, used.gold, *used.coders) if name]),
            texts=text_column(used.text or "", table[used.text]).fill_null(""),
            answers=answers,
            votes=votes,
            gold=data_gold,
            data_gold=data_gold,
            places={name: place for place, name in enumerate(answers.ids)},
            rewrites=vote_files.VariantsByItem(folder.variants, answers.ids),
            questions=asked_questions(config),
            judgement=Judgement.of(folder, votes),
        )
        try:
            rows.rewrites.index()
        except TableError as error:
            warnings.warn(f"{error}; rewrites are not shown", PcsWarning, stacklevel=2)
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
        labels = list(self.dataset.gold) or [None] * len(self)
        for place, one in human_review.labels_by_people(self.folder, self.dataset.items).items():
            labels[place] = one.label
        return gold_codes(self.votes, labels)

    def place(self, name: str) -> int:
        """Return the position of a row."""
        if name not in self.places:
            raise UnknownRow(f"the run has no row {name!r}: check the ID, or search for a word of its text")
        return self.places[name]

    def text(self, place: int) -> str:
        """Return the text of a row."""
        return self.dataset.items[place].text

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
        except PcsError as error:
            warnings.warn(f"what {name} asked is not shown: {error}", PcsWarning, stacklevel=3)
            continue
        if phrasing != plain:
            found[relation.name] = asked(phrasing, letters=config.ask.letters)
    return found


def asked(phrasing: Phrasing, *, letters: bool) -> str:
    """Return what is asked, without the text: who gets to read it, then the words."""
    where = "One message, with the text at its end" if phrasing.one_message else "System message; the text comes alone"
    return f"{where}\n\n{task_prompt(phrasing.task, 'letter tag' if letters else 'tag')}"
