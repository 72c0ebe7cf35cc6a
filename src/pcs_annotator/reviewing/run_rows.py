"""All rows of a run as arrays, what the model in force says about them, and everything about one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from pcs_annotator.asking.annotators.prompt import task_prompt
from pcs_annotator.base.errors import PcsError, TableError, UnknownRow, warn_user
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers, Mask
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.core.identity import text_hash
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Phrasing, Task, label_code
from pcs_annotator.core.votes import NOT_ASKED
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.model import Model, Predictions
from pcs_annotator.judging.text_model import TellingWord
from pcs_annotator.relations.base import rephrased
from pcs_annotator.relations.combine import choose_relations
from pcs_annotator.reviewing.values import Candidate, ShownVote
from pcs_annotator.runs.gold_in_prompts import EXAMPLES, asks_with
from pcs_annotator.runs.gold_labels import labels_by_people
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.resolve_config import relation_options_of, task_of
from pcs_annotator.runs.settings import Config
from pcs_annotator.tables import vote_files
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.chunks import text_names
from pcs_annotator.tables.files import read_json

DECISIONS = ("none", "accept", "agree", "review")


@dataclass(frozen=True)
class Judgement:
    """What the model in force says about every row."""

    model: Model  # weights are equal before the first fit
    fitted: bool  # whether it was learned
    judged: Predictions
    label: Codes  # position of the label, `UNLABELLED` where there is no vote
    certainty: Floats  # confidence of the label, or its score where there is no confidence; -1 without a label
    decision: Codes  # position in `DECISIONS`
    learned_until: int = 0  # number of the last event of a review that it knows

    @classmethod
    def of(cls, run: Run) -> Judgement:
        """Judge the votes of a run by its model; before the first fit, all weights are equal."""
        votes, fitted = run.votes, run.folder.model.exists()
        uniform = Model(weights=Weights.uniform(votes), calibrator=None, by_agreement=True, shape=run.shape)
        model = run.model_in_force(with_gold=False) if fitted else uniform
        judged, silent = model.judged(votes), votes.silent
        label = np.where(silent, UNLABELLED, judged.best).astype(CODE)
        certainty = np.where(silent, -1.0, judged.deciding[np.arange(len(votes)), judged.best])
        decision = np.array([DECISIONS.index(name or "none") for name in model.decisions(votes, judged)], dtype=CODE)
        until = read_json(run.folder.model).get("verdicts_until", 0) if fitted else 0
        return cls(model, fitted, judged, label, certainty, decision, until)

    @property
    def accepted(self) -> Mask:
        """Which labels are accepted."""
        return self.decision == DECISIONS.index("accept")


@dataclass(frozen=True, kw_only=True)
class Rows:
    """All rows of a run."""

    run: Run
    task: Task  # what was asked
    labels: Sequence[str]
    ids: Sequence[str]
    own_columns: Sequence[str]  # names of the user's other columns
    own: pa.Table  # the user's columns without IDs, texts and gold: whoever sees gold does not judge the text
    texts: pa.Array
    gold: Codes  # position of the gold label, from the data or a person's file; `UNLABELLED` where there is none
    data_gold: Codes  # the same, from the data alone
    places: Mapping[str, int]  # ID → position
    rewrites: vote_files.VariantsByItem
    questions: Mapping[str, str]  # relation that changes the question → what was asked
    judgement: Judgement

    @classmethod
    def read(cls, path: Path, *, stream: bool = True) -> Rows:
        """Read a run folder, with the texts of its stream or without.

        Raises:
            ConfigError: It is not a run folder.
            TableError: A file is missing or damaged, or the model was fitted with other labels.
        """
        run = Run.open(path)
        run = run.with_stream() if stream else run
        data_gold = gold_codes(run.votes, run.dataset.gold or [None] * len(run.answers.ids))
        return cls.of(run, labels=run.answers.labels, data_gold=data_gold, judgement=Judgement.of(run))

    @classmethod
    def of(cls, run: Run, *, data_gold: Codes, **parts: Any) -> Self:
        """Return the rows of a run, of which some parts are known."""
        table, used, ids = run.dataset.table, run.dataset.columns, run.answers.ids
        both = text_names(used.text or "", table.column_names)
        own_table = table.drop_columns([name for name in (*both, used.id, used.gold, *used.coders) if name])
        rows = cls(
            run=run,
            task=task_of(run.config),
            ids=ids,
            own_columns=list(own_table.column_names),
            own=own_table,
            texts=pa.array(run.texts, pa.string()),
            gold=data_gold,
            data_gold=data_gold,
            places={name: row for row, name in enumerate(ids)},
            rewrites=vote_files.VariantsByItem(run.folder.variants, ids),
            questions=asked_questions(run.config),
            **parts,
        )
        try:
            rows.rewrites.index()
        except TableError as error:
            warn_user(f"{error}; rewrites are not shown")
        return replace(rows, gold=rows.known_gold())

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def streamed(self) -> Integers:
        """The rows that came as a stream: those drawn at random first, then the others, as they came."""
        first = len(self) - len(self.run.dataset.streamed)
        return first + np.argsort(~self.drawn[first:], kind="stable")

    @cached_property
    def drawn(self) -> Mask:
        """Which rows came as a stream and were drawn at random."""
        later = [drawn for drawn, _ in self.run.dataset.streamed]
        return np.array([False] * (len(self) - len(later)) + later, dtype=np.bool_)

    @cached_property
    def to_finish(self) -> tuple[Integers, str]:
        """The rows that people label for a promise about the whole table, the least certain first, and the promise."""
        path = self.run.folder.finish
        plan: dict[str, Any] = read_json(path) if path.exists() else {}
        named = [self.places[name] for name in plan.get("by_people", ()) if name in self.places]
        return np.array(named, dtype=np.intp), plan.get("goal", "")

    def refitted(self) -> Rows:
        """Return the rows with the model and the gold that are in the folder now; texts and votes stay."""
        return replace(self, judgement=Judgement.of(self.run), gold=self.known_gold())

    def known_gold(self) -> Codes:
        """Return the gold of the data, overridden by what people gave in files, where the text is still the same."""
        run = self.run
        labels = list(run.dataset.gold) or [None] * len(self)
        for row, entry in labels_by_people(run.folder, run.dataset.items).items():
            labels[row] = entry.label
        return gold_codes(run.votes, labels)

    def place(self, name: str) -> int:
        """Return the position of a row."""
        if name not in self.places:
            raise UnknownRow(f"the run has no row {name!r}: check the ID, or search for a word of its text")
        return self.places[name]

    def gold_label(self, row: int) -> str | None:
        """Return the gold label of a row, if it has one."""
        code = int(self.gold[row])
        return None if code == UNLABELLED else self.labels[code]

    def canonical(self, row: int, label: str) -> str:
        """Return a label as the task spells it; for one that it does not have, raise."""
        return self.labels[label_code(label, self.labels, "verdict")]

    def candidates(self, row: int, *, blind: bool) -> list[Candidate]:
        """Return what models quoted from a text, for a variable that is quoted."""
        return []

    def proposal(self, row: int) -> tuple[str | None, float | None]:
        """Return the label that the models propose for a row, and its confidence, as far as there are any."""
        code, calibrated = int(self.judgement.label[row]), self.judgement.judged.probabilities is not None
        if code == UNLABELLED:
            return None, None
        return self.labels[code], float(self.judgement.certainty[row]) if calibrated else None

    def text(self, row: int) -> str:
        """Return the text of a row."""
        return self.run.dataset.items[row].text

    def text_hash(self, row: int) -> str:
        """Return the hash of a row's text."""
        return text_hash(self.text(row))

    def outcome(self, row: int) -> Outcome:
        """Return what the models say about a row; in a tree, down to the leaf."""
        return next(self.judgement.model.judge(self.run.votes.take(np.array([row])))).for_people

    def probabilities(self, row: int) -> dict[str, float]:
        """Return every label with its probability, or score."""
        return dict(zip(self.labels, self.judgement.judged.deciding[row].tolist(), strict=True))

    def telling_words(self, row: int, text: str) -> list[TellingWord]:
        """Return the words of a row's text that speak for its label, or against it, if the model in force knows any."""
        model, code = self.judgement.model.text, int(self.judgement.label[row])
        return [] if model is None or code == UNLABELLED else model.telling_words([text], [code])[0]

    def votes_on(self, row: int) -> list[ShownVote]:
        """Return all answers about a row."""
        answers = self.run.answers
        codes = answers.codes[row]
        votes = []
        for annotator, relation, draw in np.argwhere(codes != NOT_ASKED).tolist():
            code = int(codes[annotator, relation, draw])
            grades = None if answers.grades is None else answers.grades[row, annotator, relation, draw]
            graded = grades is not None and not np.isnan(grades).any()
            votes.append(
                ShownVote(
                    answers.annotators[annotator],
                    answers.relations[relation],
                    draw,
                    self.labels[code] if code >= 0 else None,
                    dict(zip(self.labels, map(float, grades), strict=True)) if graded and grades is not None else None,
                )
            )
        return votes

    @property
    def question(self) -> str:
        """What was asked about the original texts."""
        return asked(Phrasing(task=self.task, examples=int(not asks_with(EXAMPLES, self.run.config.relations.use))))

    def columns(self, row: int) -> dict[str, str]:
        """Return the user's other columns of a row; empty cells are left out."""
        values: dict[str, Any] = {name: self.own[name][row].as_py() for name in self.own_columns}
        return {name: str(value) for name, value in values.items() if value is not None and str(value) != ""}


def asked_questions(config: Config) -> dict[str, str]:
    """Return relation → what was asked, for relations that change the question and are still known."""
    rewriter = bool(config.relations.rewriter)
    questions = {}
    for name in config.relations.use:
        try:
            [relation] = choose_relations([name], relation_options_of(config.relations, rewriter=rewriter))
            plain = Phrasing(task=task_of(config), examples=int(not asks_with(EXAMPLES, config.relations.use)))
            phrasing = rephrased(relation, plain)
        except PcsError as error:
            warn_user(f"what {name} asked is not shown: {error}")
            continue
        if phrasing != plain:
            questions[relation.name] = asked(phrasing)
    return questions


def asked(phrasing: Phrasing) -> str:
    """Return what is asked, without the text: who gets to read it, then the words."""
    where = "One message, with the text at its end" if phrasing.one_message else "System message; the text comes alone"
    task = phrasing.task
    if task.asked:
        where += f", with {task.asked} of {len(task.labels):,} labels, chosen for it, such as these"
        task = replace(task, labels=task.labels[: task.asked], meanings={}, among=task.labels)
    if not phrasing.examples:
        task = replace(task, examples=(), nearest=0)
    elif task.nearest:
        where += f", after {task.nearest} of {len(task.examples)} examples, chosen for it (set {phrasing.examples})"
        task = replace(task, examples=(), nearest=0)
    return f"{where}\n\n{task_prompt(task)}"
