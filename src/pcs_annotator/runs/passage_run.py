"""A run whose rows are candidates for passages or values: learning from them, and what is written about texts.

People label texts, and models are asked about texts; candidates follow from what models quote. Everything that learns,
promises and decides has candidates as rows, and the unit that is drawn stays the text.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from pcs_annotator.base.errors import ConfigError, warn_user
from pcs_annotator.core.events import Picked, Reviewed
from pcs_annotator.core.identity import text_hash
from pcs_annotator.core.outcome import Counts, Outcome
from pcs_annotator.core.passages import EVEN, NO, NONE, YES, Extraction, Passage
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluate.passage_figures import GoldPassages, PassageFigures, passage_figures
from pcs_annotator.runs import drawing, folder_votes
from pcs_annotator.runs.gold_labels import FromPeople, Gold, take_gold
from pcs_annotator.runs.learn import Learned
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.quotations import Candidates, about_quotations, candidates_in, quotations_of, windows_of
from pcs_annotator.runs.review_state import ReviewState, ReviewVerdicts
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.settings import LearnSettings
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.chunks import Columns, Dataset
from pcs_annotator.tables.passage_files import gold_passages


class PassageRun(Run):
    """A run of a variable that is quoted from texts."""

    @classmethod
    def asked(cls, texts: Run, votes: Votes, objects: OwnObjects) -> PassageRun:
        """Return the run of which texts were asked about, in windows; `objects` are models given as such."""
        parts = {name: vars(texts)[name] for name in ("sampled", "by", "gold_sample") if name in vars(texts)}
        return cls(texts.folder, texts.config, of_texts=TextRun.of_run(texts, votes), objects=objects, **parts)

    @cached_property
    def of_texts(self) -> TextRun:
        """The run with texts as rows: what people are shown and label."""
        return TextRun(self.folder, self.config, start=self.start)

    @property
    def extraction(self) -> Extraction:
        """What is looked for."""
        extraction = self.config.task.extraction
        assert extraction is not None
        return extraction

    @cached_property
    def objects(self) -> OwnObjects:
        """Models that were given as objects."""
        return OwnObjects()

    @cached_property
    def candidates(self) -> Candidates:
        """What models quoted, as candidates."""
        items = self.of_texts.dataset.items
        windows, asked = windows_of(items), str(self.start.get("asked", ""))
        quoted = quotations_of(self.folder, self.config, windows, asked, self.objects)
        return candidates_in(items, windows, quoted, self.of_texts.window_votes, self.extraction)

    @cached_property
    def dataset(self) -> Dataset:
        """The candidates, each with the text around it; their gold comes from `gold`."""
        votes = self.candidates.votes
        rows = zip(votes.ids, votes.texts or (), strict=True)
        items = tuple(Item(id=name, text=text) for name, text in rows)
        table = pa.table({"id": pa.array(votes.ids, pa.string()), "text": pa.array(votes.texts or (), pa.string())})
        columns = Columns(text="text", id="id")
        return Dataset(name=self.of_texts.dataset.name, table=table, items=items, gold=(), columns=columns)

    @cached_property
    def answers(self) -> Votes:
        """What every question says to every candidate."""
        return self.candidates.votes

    @cached_property
    def votes(self) -> Votes:
        """The same."""
        return self.answers.plain()

    @cached_property
    def marked(self) -> Sequence[tuple[Passage, ...] | None]:
        """The gold passages of every text; None where nobody has said anything."""
        return self._marked(self.of_texts.gold)

    def _marked(self, gold: Gold) -> Sequence[tuple[Passage, ...] | None]:
        items = self.of_texts.dataset.items
        rows = zip(items, gold.labels, strict=True)
        return [gold_passages(label, item.text, self.extraction, f"id {item.id!r}") for item, label in rows]

    def _gold(self, until: int | None = None) -> Gold:
        gold = self.of_texts._gold(until)
        marked, rows = self._marked(gold), np.array(self.candidates.rows, dtype=np.intp)
        labels = tuple(
            None if (some := marked[row]) is None else YES if self.extraction.right(passage, some) else NO
            for row, passage in zip(rows.tolist(), self.candidates.passages, strict=True)
        )
        masks = {name: getattr(gold, name)[rows] for name in ("random_sample", "assumed", "undecided")}
        return Gold(labels, **masks, verdicts=ReviewVerdicts(last=gold.verdicts.last))

    def with_gold(self, people: FromPeople) -> Run:
        """Return the run with the passages of a person's file, which are also stored in the folder."""
        changed = self.having(of_texts=self.of_texts.with_gold(people))
        for name in ("gold", "marked"):
            vars(changed).pop(name, None)
        return changed

    def review(self) -> ReviewState:
        """Return the state of the review, which is about texts."""
        return self.of_texts.review()

    def learn(self, settings: LearnSettings, **how: Any) -> Learned:
        """Learn from the candidates in texts with gold, and compare with every single question."""
        nothing = "no model quoted anything from the texts: ask otherwise, or other models"
        if sentence := about_quotations(self.candidates, self.extraction) if len(self.votes) else nothing:
            how.get("say", warn_user)(sentence)
        learned = super().learn(settings, **how)
        if (certificate := learned.model.certificate) is not None:  # texts in which nothing is quoted were drawn, too
            gold = self.of_texts.gold
            drawn, assumed = int(gold.random_sample.sum()), int((gold.random_sample & gold.assumed).sum())
            certificate = replace(certificate, gold_rows=drawn, assumed_rows=assumed)
            learned = replace(learned, model=replace(learned.model, certificate=certificate))
        return replace(learned, passages=self._figures(learned))

    def _figures(self, learned: Learned) -> PassageFigures | None:
        """Return how many of the passages in gold texts are found, and how many of those found are right."""
        if (trial := learned.trial) is None:
            return None
        places = dict(zip(trial.ids, range(len(trial.ids)), strict=True))
        rows = [row for row, name in enumerate(self.votes.ids) if name in places]
        texts = [self.candidates.rows[row] for row in rows]
        units, judged = np.array(texts, dtype=np.intp), trial.judged
        judged = judged.take(np.array([places[self.votes.ids[row]] for row in rows], dtype=np.intp))
        about = GoldPassages(
            counts=np.array([-1 if marked is None else len(marked) for marked in self.marked]),
            drawn=self.of_texts.gold.random_sample.tolist(),
            meant=[self._meant(self.candidates.passages[row], text) for row, text in zip(rows, texts, strict=True)],
        )
        some, eligible = self.votes.take(np.array(rows, dtype=np.intp)), self.shape.eligible(judged.confidence, units)
        return passage_figures(some, judged._replace(units=units), eligible, about, learned.model.certificate)

    @property
    def least_confidence(self) -> float:
        """The confidence from which on a candidate counts, as the last fit found it."""
        figures = self.figures().get("passages") if self.folder.evaluation.exists() else None
        return float(figures["cut"]) if figures else EVEN

    def _meant(self, passage: Passage, text: int) -> list[int]:
        marked = self.marked[text] or ()
        return [at for at, gold in enumerate(marked) if self.extraction.match(passage, gold)]

    def hand_out(self, learned: Learned, rows: int) -> drawing.HandedOut:
        """Write the texts that a person should mark next: at random, or those with a passage for review."""
        texts = self.of_texts
        certificate = learned.model.certificate
        if certificate is None or not certificate.holds:
            drawn = drawing.draw_at_random(self.folder, texts.dataset, texts.gold, rows)
            return drawing.HandedOut(drawn, "at random")
        judged = learned.model.judged(self.votes)
        assert judged.accepted is not None
        assert judged.confidence is not None
        sure = np.where(judged.accepted, 1.0, judged.confidence)
        least = defaultdict[int, float](lambda: 1.0)
        for row, value in zip(self.candidates.rows, sure.tolist(), strict=True):
            least[row] = min(least[row], value)
        items = texts.dataset.items
        chosen = [row for row in sorted(least, key=least.__getitem__) if least[row] < 1 and not texts.gold.labels[row]]
        picked = [Picked(id=items[row].id, text_hash=text_hash(items[row].text), chosen="for review") for row in chosen]
        return drawing.HandedOut(drawing.write_to_label(self.folder, items, texts.gold, picked), "for review")

    def result(self, learned: Learned, **more: Any) -> RunResult:
        """Return the result of the run."""
        values = vars(super().result(learned, **more))
        names = RunResult.__dataclass_fields__
        known_values = {name: value for name, value in values.items() if name in names}
        return PassageResult(**known_values, run=self, marked=self.marked)


class TextRun(Run):
    """The texts of a variable that is quoted from them: their votes say only which questions were answered."""

    @classmethod
    def of_run(cls, run: Run, window_votes: Votes) -> TextRun:
        """Return the same rows, of which windows were asked about."""
        return cls(**vars(run), window_votes=window_votes)

    def with_gold(self, people: FromPeople) -> Run:
        """Return the run with the passages of a person's file, which are also stored in the folder."""
        extraction = self.config.task.extraction
        assert extraction is not None
        check = partial(_read_gold, extraction)
        take_gold(people, self.folder, self.dataset, (), check)
        return self.having(gold=self._gold())

    def review(self) -> ReviewState:
        """Return the state of the review in this folder; what people quote is not among labels that are listed."""
        return ReviewState.read(self.folder.draws, self.dataset.items, part=self.folder.part)

    @cached_property
    def window_votes(self) -> Votes:
        """Which questions about each part of a text were answered."""
        asked = [window.item for window in windows_of(self.dataset.items)]
        return folder_votes.recorded_votes(self.folder, self.config, self.start, asked)

    @cached_property
    def answers(self) -> Votes:
        """Which questions about each text were answered, in any of its parts."""
        rows = np.array([window.row for window in windows_of(self.dataset.items)])
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        codes = np.maximum.reduceat(self.window_votes.codes, starts, axis=0)
        return replace(self.window_votes, codes=codes, ids=[item.id for item in self.dataset.items])


def _read_gold(extraction: Extraction, label: str, text: str, where: str) -> None:
    gold_passages(label, text, extraction, where)


@dataclass(frozen=True, kw_only=True, repr=False)
class PassageResult(RunResult):
    """The result of a run of a variable that is quoted from texts."""

    run: PassageRun
    marked: Sequence[tuple[Passage, ...] | None] = ()

    def __repr__(self) -> str:
        texts = f"{len(self.marked):,} texts, {self.counts.rows:,} {self.run.extraction.noun}"
        return f"{type(self).__name__}({str(self.folder.home)!r}, {texts}, {self._decided()})"

    @cached_property
    def of_text(self) -> Mapping[int, list[tuple[Passage, Outcome]]]:
        """Text → its candidates, in their order, each with what was decided."""
        texts = defaultdict[int, list[tuple[Passage, Outcome]]](list)
        candidates = self.run.candidates
        for row, passage, outcome in zip(candidates.rows, candidates.passages, self.outcomes, strict=True):
            texts[row].append((passage, outcome))
        return texts

    @property
    def least_confidence(self) -> float:
        """The confidence from which on a candidate counts."""
        return EVEN if self.learned.passages is None else self.learned.passages.cut

    @cached_property
    def counts(self) -> Counts:
        """How many candidates count or are accepted, and what was decided about them; others are not worth a look."""
        least = self.least_confidence
        kept = np.array([each.decision == "accept" or probability(each) >= least for each in self.outcomes], dtype=bool)
        outcomes = [outcome for outcome, there in zip(self.outcomes, kept.tolist(), strict=True) if there]
        return Counts.of(outcomes, (), int((self.settled & kept).sum()))

    def final(self, row: int) -> list[Passage]:
        """Return the passages of a text: those that people marked, else those that count, the surest first."""
        marked = self.marked[row]
        some = sorted(self.chosen(row), key=lambda entry: -probability(entry[1]))
        return [passage for passage, _ in some] if marked is None else list(marked)

    def chosen(self, row: int) -> list[tuple[Passage, Outcome]]:
        """Return the candidates of a text that count; of values, at most one."""
        some = [entry for entry in self.of_text.get(row, ()) if probability(entry[1]) >= self.least_confidence]
        if self.run.extraction.is_value:
            return sorted(some, key=lambda entry: -probability(entry[1]))[:1]
        return some

    def passages_table(self) -> pa.Table:
        """Return every candidate with its confidence and decision, as `passages.csv` has it.

        Of texts with gold, it also says which are right, and has the gold passages that no model found.
        """
        rows = list[tuple[Any, ...]]()
        items, gold = self.run.of_texts.dataset.items, self.run.gold.labels
        yes = (self.run.votes.codes == 0).sum(axis=(1, 2, 3)).tolist()
        answered = (self.run.votes.codes >= 0).sum(axis=(1, 2, 3)).tolist()
        by_place = zip(self.run.candidates.rows, self.run.candidates.passages, self.outcomes, gold, strict=True)
        for number, (row, passage, outcome, right) in enumerate(by_place):
            quoted = items[row].text[passage.start : passage.end]
            votes = f"{yes[number]} of {answered[number]}"
            about = passage.value or passage.type, outcome.confidence, outcome.decision, votes, right
            rows.append((items[row].id, passage.start, passage.end, quoted, *about))
        for row, marked in enumerate(self.marked):
            there = [passage for passage, _ in self.of_text.get(row, ())]
            for passage in marked or ():
                if not any(self.run.extraction.match(candidate, passage) for candidate in there):
                    quoted = items[row].text[passage.start : passage.end]
                    about = passage.value or passage.type, None, None, "0", "missed"
                    rows.append((items[row].id, passage.start, passage.end, quoted, *about))
        named = "value" if self.run.extraction.is_value else "type"
        names = ["id", "start", "end", "quotation", named, "confidence", "decision", "votes", "gold"]
        kinds = [pa.string(), pa.int64(), pa.int64(), *[pa.string()] * 2, pa.float64(), *[pa.string()] * 3]
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        table = pa.table([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], names=names)
        return table if any(label is not None for label in self.marked) else table.drop_columns(["gold"])

    def labels_table(self) -> pa.Table:
        """Return the candidates, which the result is as a data frame."""
        return self.passages_table()

    def columns(self, people: Sequence[Reviewed | None]) -> dict[str, pa.Array]:
        """Return the end of a column's name → its values for every text: the value, or counts by type.

        Where there is gold, further columns have it in the place of what models say about the same text.
        """
        chosen = [self.chosen(row) for row in range(len(self.marked))]
        decided = pa.array([_decided(some) for some in chosen], pa.string())
        by_models = self._said([[passage for passage, _ in some] for some in chosen])
        final = self._said(list(map(self.final, range(len(chosen)))))
        sure = [some[0][1].confidence if some else None for some in chosen]
        confidence = {"_confidence": pa.array(sure, pa.float64())} if self.run.extraction.is_value else {}
        with_gold = any(marked is not None for marked in self.marked)
        with_people = {f"_final{end}": values for end, values in final.items()} if with_gold else {}
        return {**by_models, **confidence, "_decision": decided, **with_people}

    def _said(self, passages: Sequence[Sequence[Passage]]) -> dict[str, pa.Array]:
        """Return the end of a column's name → the value of every text, or the number of its passages by type."""
        if self.run.extraction.is_value:
            return {"": pa.array([some[0].value if some else NONE for some in passages], pa.string())}
        counts = [Counter(passage.type for passage in some) for some in passages]
        types = {f"={name}": pa.array([some[name] for some in counts], pa.int64()) for name in self.config.task.labels}
        return {"": pa.array(list(map(len, passages)), pa.int64()), **types}


def _decided(chosen: Sequence[tuple[Passage, Outcome]]) -> str | None:
    """Return the decision that all of some candidates have; if one is for review, that."""
    decisions = {outcome.decision for _, outcome in chosen}
    return "review" if "review" in decisions else next(iter(decisions), None)


def of_texts(run: Run) -> Run:
    """Return a run with the user's texts as rows."""
    return run.of_texts if isinstance(run, PassageRun) else run


def refuse_passages(run: Run, what: str) -> None:
    """Raise for a run of candidates, if something is for labels only."""
    if isinstance(run, PassageRun):
        raise ConfigError(f"{run.folder.home} has {run.extraction.noun}, and {what}")


def probability(outcome: Outcome) -> float:
    """Return how sure a candidate is; before there is gold, the share of the questions that quote it."""
    return outcome.confidence if outcome.confidence is not None else outcome.scores.get(YES, 0.0)
