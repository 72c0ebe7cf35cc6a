"""The texts of a variable that is quoted from them, for a review: what models quoted, and what that makes of a text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from pcs_annotator.base.errors import LabelError
from pcs_annotator.base.text import counted
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED, OpenLabels
from pcs_annotator.core.outcome import Decision, Outcome
from pcs_annotator.core.passages import Extraction, Passage, written
from pcs_annotator.judging.text_model import TellingWord
from pcs_annotator.reviewing.run_rows import DECISIONS, Judgement, Rows
from pcs_annotator.reviewing.values import Candidate, ShownVote
from pcs_annotator.runs.gold_labels import labels_by_people
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.passage_run import PassageRun
from pcs_annotator.tables.passage_files import gold_passages

HARDLY = 0.03  # candidates that are less probable are not shown: whoever sees one can mark it
_DECIDED: Sequence[Decision | None] = [None, "accept", "agree", "review"]  # as in `DECISIONS`


@dataclass(frozen=True, kw_only=True)
class PassageRows(Rows):
    """All texts of a variable that is quoted from them."""

    quoted: PassageRun  # whose rows are candidates
    judged: Judgement  # of the candidates
    labels: OpenLabels

    @classmethod
    def of_run(cls, quoted: PassageRun, labels: OpenLabels) -> PassageRows:
        """Return the texts of a run."""
        texts, judged = quoted.of_texts, Judgement.of(quoted)
        gold = _codes(labels, _canonical(quoted, texts.dataset.gold or [None] * len(texts.dataset.items)))
        judgement = _of_texts(quoted, judged, labels)
        return cls.of(texts, labels=labels, data_gold=gold, judgement=judgement, quoted=quoted, judged=judged)

    @cached_property
    def of_text(self) -> Mapping[int, Sequence[int]]:
        """Text → its candidates."""
        return _by_text(self.quoted)

    def refitted(self) -> Rows:
        """Return the rows with the model and the gold that are in the folder now."""
        run = Run.of(self.run.folder)
        assert isinstance(run, PassageRun)
        return PassageRows.of_run(run, self.labels)

    def known_gold(self) -> Codes:
        """Return the gold of the data, overridden by what people gave in files, where the text is still the same."""
        labels = list(self.run.dataset.gold) or [None] * len(self)
        for row, entry in labels_by_people(self.run.folder, self.run.dataset.items).items():
            labels[row] = entry.label
        return _codes(self.labels, _canonical(self.quoted, labels))

    def canonical(self, row: int, label: str) -> str:
        """Return a verdict as all equal ones are written.

        Raises:
            LabelError: A passage is not in the text or of no known type, or the value is none of its format.
        """
        where = f"verdict on {self.ids[row]!r}"
        passages = gold_passages(label, self.text(row), self.quoted.extraction, where)
        if passages is None:
            raise LabelError(f"{where}: nothing is said: mark passages, or say that there is none")
        return written(passages, self.quoted.extraction)

    def candidates(self, row: int, *, blind: bool) -> list[Candidate]:
        """Return what models quoted from a text; who judges blind does not learn what became of it."""
        sure = self.judged.judged.confidence
        some = []
        for number in self.of_text.get(row, ()):
            if sure is not None and sure[number] < HARDLY:
                continue
            decision: Decision | None = None if blind else _decision(self.judged, number)
            confidence = None if blind or sure is None else float(sure[number])
            some.append(Candidate(self.quoted.candidates.passages[number], confidence, decision))
        return sorted(some, key=lambda candidate: candidate.passage)

    def outcome(self, row: int) -> Outcome:
        """Return what the models say about a text as a whole."""
        label, confidence = self.proposal(row)
        decision, places = _decision(self.judgement, row), self.of_text.get(row, ())
        doubtful = sum(_decision(self.judged, number) == "review" for number in places)
        why = f"{doubtful} of {counted(len(places), 'candidate')} not accepted" if doubtful else ""
        return Outcome(id=self.ids[row], label=label, scores={}, confidence=confidence, decision=decision, reason=why)

    def proposal(self, row: int) -> tuple[str | None, float | None]:
        """Return the likely candidates of a text, and how certain the least certain one is."""
        label, confidence = super().proposal(row)
        return label, confidence if row in self.of_text else None

    def probabilities(self, row: int) -> dict[str, float]:
        """Return nothing: candidates have their own probabilities."""
        return {}

    def telling_words(self, row: int, text: str) -> list[TellingWord]:
        """Return nothing: words tell candidates from others, and not texts."""
        return []

    def votes_on(self, row: int) -> list[ShownVote]:
        """Return what every question quotes from a text: how many candidates, or which value."""
        answers, places = self.run.answers, self.of_text.get(row, ())
        votes = []
        for cell in map(tuple, np.argwhere(answers.codes[row] >= 0).tolist()):
            here = [at for at in places if self.quoted.answers.codes[(at, *cell)] == 0]
            label = f"{len(here)} of {len(places)}"
            if self.quoted.extraction.is_value:
                label = written([self.quoted.candidates.passages[at] for at in here], self.quoted.extraction)
            votes.append(ShownVote(answers.annotators[cell[0]], answers.relations[cell[1]], cell[2], label, None))
        return votes


def read_rows(path: Path, *, stream: bool = True) -> Rows:
    """Return the rows of a run folder as `Rows.read` does; of a variable that is quoted from texts, its texts."""
    run = Run.open(path)
    return PassageRows.of_run(run, OpenLabels()) if isinstance(run, PassageRun) else Rows.read(path, stream=stream)


def _by_text(quoted: PassageRun) -> dict[int, list[int]]:
    places = defaultdict[int, list[int]](list)
    for number, row in enumerate(quoted.candidates.rows):
        places[row].append(number)
    return places


def _decision(judged: Judgement, number: int) -> Decision | None:
    return _DECIDED[judged.decision[number]]


def _of_texts(quoted: PassageRun, judged: Judgement, labels: OpenLabels) -> Judgement:
    """Return what is said about texts: their likely candidates, and what is decided about the least certain of these.

    A text is as certain as the candidate is about which least is known, whether that is likely or not.
    """
    silent, least = quoted.of_texts.answers.silent, quoted.least_confidence
    certainty, decision = np.where(silent, -1.0, 1.0), np.zeros(len(silent), dtype=np.int16)
    proposed: list[str | None] = [None if quiet else written([], quoted.extraction) for quiet in silent.tolist()]
    for row, places in _by_text(quoted).items():
        likely = [number for number in places if judged.certainty[number] >= least]
        if quoted.extraction.is_value:
            likely = sorted(likely, key=lambda number: -judged.certainty[number])[:1]
        proposed[row] = written([quoted.candidates.passages[number] for number in likely], quoted.extraction)
        certainty[row] = min(max(judged.certainty[number], 1 - judged.certainty[number]) for number in places)
        decisions = {int(judged.decision[number]) for number in likely}
        review = DECISIONS.index("review")
        decision[row] = review if review in decisions else max(decisions, default=0)
    return Judgement(
        judged.model, judged.fitted, judged.judged, _codes(labels, proposed), certainty, decision, judged.learned_until
    )


def _canonical(quoted: PassageRun, labels: Sequence[str | None]) -> Iterator[str | None]:
    extraction: Extraction = quoted.extraction
    for item, label in zip(quoted.of_texts.dataset.items, labels, strict=True):
        passages: Sequence[Passage] | None = gold_passages(label, item.text, extraction, f"id {item.id!r}")
        yield None if passages is None else written(passages, extraction)


def _codes(labels: OpenLabels, names: Iterable[str | None]) -> Codes:
    return np.array([UNLABELLED if name is None else labels.code(name) for name in names], dtype=np.int32)
