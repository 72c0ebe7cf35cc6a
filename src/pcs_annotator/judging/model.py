"""The model learned from gold: turns new votes into labels, confidence and decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import MismatchError
from pcs_annotator.base.plain import to_plain
from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.identity import text_hash
from pcs_annotator.core.outcome import HIGH, LEVEL, LOW, UNLIKE_GOLD, WITHIN_ONE, Decision, Outcome
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Flag, Weights
from pcs_annotator.judging.calibrate import ROWS_TO_CALL_CALIBRATED, Calibrator
from pcs_annotator.judging.label_shape import ONE, STEP, LabelShape
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.judging.promise.drift import Drift, Profile
from pcs_annotator.judging.promise.sets import PredictionSets
from pcs_annotator.judging.reasons import KNOWN_ERRORS, TEXT_OR_ERRORS, reasons
from pcs_annotator.judging.score import score
from pcs_annotator.judging.text_model import TextModel

UNCALIBRATED = "uncalibrated"
DECIMALS = 6
STORED = (
    "weights", "margin", "by_agreement", "calibrator", "certificate", "sets", "profile", "text", "shape", "profiles",
)  # fmt: skip
LEAST_ANSWERS = 2  # fewer answers cannot agree


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """What was learned."""

    weights: Weights  # what every annotator and relation is worth
    calibrator: Calibrator | None  # turns scores into probabilities; None when there was too little gold
    # how far the mean confidence may be from the share of right labels, 95 %; None when that was not said
    margin: float | None = None
    # what is promised about accepted labels, or why nothing is; None when no promise was requested
    certificate: Certificate | None = None
    sets: PredictionSets | None = None  # finds the labels that cannot be ruled out; None when they were not requested
    text: TextModel | None = None  # reads the texts themselves; None when that adds nothing to the votes
    profile: Profile | None = None  # statistics of all votes at the time of learning, to detect new texts that differ
    profiles: Mapping[str, Profile] = field(default_factory=dict)  # the same of each group that has a promise
    # whether there is no gold, so that nothing is accepted and decisions only tell where answers agree
    by_agreement: bool = False
    # whether the texts to judge differ from the gold rows, so that nothing is accepted; not stored
    unlike_gold: bool = False
    unlike_groups: tuple[str, ...] = ()  # the same for groups of texts that differ; not stored
    shape: LabelShape = ONE  # whether labels are steps of a scale or paths of a tree
    # hash of a text → its gold label, for outcomes of copies; None where labels are compared with gold; not stored
    gold_labels: Mapping[str, str] | None = None

    __repr__ = brief

    @property
    def calibrated(self) -> bool:
        """Whether confidence may be called calibrated; from fewer than 50 gold rows it is rough."""
        return self.calibrator is not None and self.gold_rows >= ROWS_TO_CALL_CALIBRATED

    @property
    def gold_rows(self) -> int:
        """The number of gold rows that were learned from."""
        return self.weights.diagnostics.gold_rows

    @property
    def decided_by(self) -> str:
        """What decisions are based on: `promise`, `agreement` (which accepts nothing), or empty for no decision."""
        return "agreement" if self.by_agreement else "" if self.certificate is None else "promise"

    @property
    def by(self) -> str:
        """What groups of texts the promise is made for, such as `language`; empty if for all together."""
        return "" if self.certificate is None else self.certificate.promise.by

    @property
    def references(self) -> Mapping[str, Profile]:
        """What new texts are compared with: a profile of each group that has a promise, or `""` → that of all texts."""
        return self.profiles or ({} if self.profile is None else {"": self.profile})

    def differing(self, votes: Votes) -> Mask:
        """Return which rows are not accepted whatever their votes, because such texts differ from the gold rows."""
        groups = votes.groups or [""] * len(votes)
        return np.array([self.unlike_gold or name in self.unlike_groups for name in groups], dtype=np.bool_)

    def judge(self, votes: Votes, judged: Predictions | None = None) -> Iterator[Outcome]:
        """Yield the outcome of every item, in order; `judged` is what `judged` returned, if that is at hand."""
        judged = judged or self.judged(votes)
        why = self.reasons(votes, judged)
        plausible = None if self.shape.ordered else self.plausible(votes, judged)
        decided, shown, more = self.decisions(votes, judged), self.given(votes, judged), self.details(votes, judged)
        sure, confidence, gold = judged.probabilities, judged.confidence, self.gold_of_copies(votes)
        for row, (name, silent) in enumerate(zip(votes.ids, votes.silent.tolist(), strict=True)):
            outcome = Outcome(
                id=name,
                label=None if silent else shown[row],
                scores=_by_label(votes.labels, judged.scores[row], judged.best[row]),
                confidence=None if silent or confidence is None else float(confidence[row]),
                decision=decided[row],
                reason=why[row],
                label_set=() if plausible is None else tuple(np.array(votes.labels)[plausible[row]].tolist()),
                probabilities={}
                if silent or sure is None
                else _by_label(votes.labels, sure[row], judged.best[row], judged.scores[row]),
                details={} if silent else {name: values[row] for name, values in more.items()},
            )
            yield outcome.with_gold(gold[row])

    def gold_of_copies(self, votes: Votes) -> list[str | None]:
        """Return the gold label of every row whose text is a copy of a gold text; None for others."""
        if not self.gold_labels or votes.texts is None:
            return [None] * len(votes)
        return [self.gold_labels.get(text_hash(text)) for text in votes.texts]

    def given(self, votes: Votes, judged: Predictions) -> list[str]:
        """Return the name of every row's label: in a tree, of the level that it is accepted at."""
        if judged.level is None:
            return [votes.labels[code] for code in judged.best.tolist()]
        pairs = zip(judged.level.tolist(), judged.best.tolist(), strict=True)
        return [STEP.join(votes.labels[code].split(STEP)[:level]) for level, code in pairs]

    def plausible(self, votes: Votes, judged: Predictions) -> Mask | None:
        """Return which labels cannot be ruled out, `[item, label]`; on a scale an interval of them."""
        if self.sets is None or judged.probabilities is None:
            return None
        values, shape = judged.probabilities, self.shape
        return self.sets.of(shape.tails(values, votes.labels) if shape.ordered else values)

    def details(self, votes: Votes, judged: Predictions) -> dict[str, list[Any]]:
        """Return what the kind of the task adds to every row, by the name of its column."""
        if judged.level is not None:
            return {LEVEL: np.minimum(judged.level, self.shape.depths(votes.labels)[judged.best]).tolist()}
        plausible = self.plausible(votes, judged) if self.shape.ordered else None
        if plausible is None or judged.probabilities is None:
            return {}
        low, high = self.shape.ends(plausible, votes.labels)
        if self.shape.kind == "number":
            return {LOW: low, HIGH: high}
        within = self.shape.confidence(judged.probabilities, judged.best, votes.labels, near=True)
        return {WITHIN_ONE: within.round(DECIMALS).tolist(), LOW: low, HIGH: high}

    def reasons(self, votes: Votes, judged: Predictions) -> list[str]:
        """Return for every row why its label is sure or not, in plain words."""
        sure = None
        if judged.accepted is not None and judged.confidence is not None:
            sure = np.where(judged.accepted, -1, np.rint(100 * judged.confidence)).astype(np.intp)
        why = reasons(votes, judged.deciding, judged.best, sure)
        if self.text is not None:
            why = [reason.replace(KNOWN_ERRORS, TEXT_OR_ERRORS) for reason in why]
        before = UNLIKE_GOLD if self.unlike_gold else UNCALIBRATED if self.by_agreement else ""
        first = [before] * len(votes)
        if self.certificate is not None and self.by and not before:
            names, groups = votes.coded_groups(self.certificate.groups)
            of_group = {reason: self.certificate.why_review(reason) for reason in names} | dict.fromkeys(
                self.unlike_groups, UNLIKE_GOLD
            )
            first = np.array([of_group[reason] for reason in names], dtype=object)[groups].tolist()
        if not any(first):
            return why
        explained = zip(first, why, votes.silent.tolist(), strict=True)
        return [reason if silent or not before else f"{before}: {reason}" for before, reason, silent in explained]

    def judged(self, votes: Votes) -> Predictions:
        """Return scores, labels, probabilities and which rows are accepted, as arrays."""
        scores, log_probs = score(votes, self.weights), self.read(votes)
        probabilities = None if self.calibrator is None else self.calibrator.apply(scores, votes.labels, log_probs)
        best = self.shape.choose(scores if probabilities is None else probabilities, votes.labels)
        predictions = Predictions(scores, best, probabilities, self._accepted(votes, best, probabilities))
        if self.shape.kind == "number" and probabilities is not None:
            sure = self.shape.confidence(probabilities, best, votes.labels, near=True)
            return predictions._replace(confidence_above=sure)
        return predictions if self.shape.kind != "tree" else self._backed_off(votes, predictions)

    def _backed_off(self, votes: Votes, predictions: Predictions) -> Predictions:
        """Return verdicts on paths: rows whose label is not accepted are tried one level above it, and so on."""
        deepest, confidence, accepted = self.shape.levels, predictions.confidence, predictions.accepted
        level, certificate = np.full(len(votes), deepest), self.certificate
        if certificate is None or accepted is None or confidence is None or self.unlike_gold:
            return predictions._replace(level=level)
        for above in range(1, deepest):
            at, (names, codes) = deepest - above, self.shape.at(deepest - above, votes.labels)
            sure = self.shape.confidence(predictions.deciding, predictions.best, votes.labels, near=False, level=at)
            more = certificate.accepts(sure, codes[predictions.best], names, above) & ~accepted & ~votes.silent
            level, confidence = np.where(more, at, level), np.where(more, sure, confidence)
            accepted = accepted | more
        return predictions._replace(level=level, confidence_above=confidence, accepted=accepted)

    def right(self, labels: Sequence[str], judged: Predictions, rows: Sequence[int], labels_said: Codes) -> Mask:
        """Return whether the labels of some rows are right, as the promise counts it, given what a person said."""
        near = self.certificate is not None and self.certificate.promise.near
        best = judged.best[rows]
        if judged.level is None:
            return self.shape.right(best, labels_said, labels, near=near)
        by_level = [
            self.shape.right(best, labels_said, labels, near=False, level=at) for at in range(self.shape.levels + 1)
        ]
        return np.array(by_level)[judged.level[rows], np.arange(len(rows))]

    def familiar(self, votes: Votes) -> Floats | None:
        """Return the share of the n-grams of each text that are in a gold text too; None without a model of texts."""
        return None if self.text is None else self.text.familiar(votes.texts or ())

    def read(self, votes: Votes) -> Floats | None:
        """Return what the texts of the votes say, `[item, label]`; None if the model does not read texts."""
        if votes.text_log_probs is not None:
            return votes.text_log_probs
        if self.text is None:
            return self.shape.placed(votes).text_log_probs
        if votes.texts is None:
            raise MismatchError(
                "the model also reads texts, and these votes come without: give the texts, or fit again"
            )
        return self.shape.placed(
            replace(votes, text_log_probs=self.text.read(votes.texts, votes.labels))
        ).text_log_probs

    def _accepted(self, votes: Votes, best: Codes, probabilities: Floats | None) -> Mask | None:
        if not self.decided_by:
            return None
        if self.certificate is None or probabilities is None or self.unlike_gold:
            return np.zeros(len(votes), dtype=np.bool_)
        sure = probabilities[np.arange(len(votes)), best]
        if self.certificate.promise.near:
            sure = self.shape.confidence(probabilities, best, votes.labels, near=True)
        names, codes = votes.coded_groups(self.certificate.groups) if self.by else (votes.labels, best)
        eligible = ~votes.silent & ~self.differing(votes) & self.shape.eligible(sure, votes.unit_codes)
        return self.certificate.accepts(sure, codes, names) & eligible

    def decisions(self, votes: Votes, judged: Predictions) -> list[Decision | None]:
        """Return the decision about every row: without votes `review`, and None where no decisions were requested."""
        if judged.accepted is None:
            return ["review" if silent else None for silent in votes.silent.tolist()]
        good: Decision = "agree" if self.by_agreement else "accept"
        chosen = judged.accepted
        if self.by_agreement:  # two or more answers were given, and all are the label
            same = (votes.codes == judged.best[:, np.newaxis, np.newaxis, np.newaxis]) | (votes.codes < 0)
            chosen = same.all(axis=(1, 2, 3)) & ((votes.codes >= 0).sum(axis=(1, 2, 3)) >= LEAST_ANSWERS)
        return [good if agreed else "review" for agreed in chosen.tolist()]

    def facing(self, drift: Drift | None, on_drift: str) -> Model:
        """Return the model for texts that may differ from the gold rows: if so, none is accepted but by `accept`."""
        promises = self.certificate is not None and self.certificate.holds
        if drift is None or not drift.found or not promises or on_drift == "accept":
            return self
        return replace(self, unlike_gold=not drift.unlike, unlike_groups=drift.unlike)

    def with_coverage(self, votes: Votes) -> Model:
        """Return the model with its certificate's share of accepted rows, counted on these votes."""
        accepted = self.judged(votes).accepted
        if self.certificate is None or accepted is None:
            return self
        return replace(self, certificate=self.certificate.with_coverage(accepted))

    def flagged(self, *flags: Flag) -> Model:
        """Return the model with more flags."""
        details = self.weights.diagnostics
        details = replace(details, flags=(*details.flags, *flags))
        return replace(self, weights=replace(self.weights, diagnostics=details))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, which `from_plain` reads."""
        return {name: to_plain(getattr(self, name)) for name in STORED}


def _by_label(labels: Sequence[str], values: Floats, best: int, scores: Floats | None = None) -> dict[str, float]:
    """Return label → value; out of very many labels, only the best and those that have a score."""
    if len(labels) <= MANY_LABELS:
        return dict(zip(labels, values.tolist(), strict=True))
    kept = (values if scores is None else scores) > 0
    kept[best] = True
    places = np.flatnonzero(kept)[:MANY_LABELS] if kept.sum() < len(labels) else [best]
    return {labels[code]: float(values[code]) for code in places}


class Predictions(NamedTuple):
    """The judgement of a model on votes, as arrays."""

    scores: Floats  # PCS, `[item, label]`
    # code of the most probable label, on a scale of the median; without probabilities, the same of scores
    best: Codes
    probabilities: Floats | None  # from the calibrator, `[item, label]`; None when there is no calibrator
    accepted: Mask | None  # which labels are accepted; None when the model makes no decisions
    level: Integers | None = None  # in a tree, how many levels of the label are given; None for other labels
    # the probability of the label down to that level; of a number, that it is within the tolerance
    confidence_above: Floats | None = None

    @property
    def confidence(self) -> Floats | None:
        """The probability that the label is right; None when there is no calibrator."""
        if self.probabilities is None or self.confidence_above is not None:
            return self.confidence_above
        return np.asarray(self.probabilities[np.arange(len(self.best)), self.best])

    @property
    def deciding(self) -> Floats:
        """What decides the label, `[item, label]`: the probabilities, or the scores where there are none."""
        return self.scores if self.probabilities is None else self.probabilities
