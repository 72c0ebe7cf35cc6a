"""Why an item is easy or hard, in one short sentence."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.text import series, short_names
from pcs_annotator.core.arrays import CODE, Array, Codes, Floats, Integers
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import NOT_ASKED, Votes
from pcs_annotator.judging.score import row_parts

MAX_NAMED = 3
MOST_KNOWN = 1 << 17
UNDECIDED = -1
KNOWN_ERRORS = "but the models' known errors point to"
TEXT_OR_ERRORS = "but the text or the models' known errors point to"


def reasons(votes: Votes, scores: Floats, best: Codes, sure: Array | None = None) -> list[str]:
    """Return for each item the first reason that applies; `sure` is how often its label is right, in %, or −1."""
    original = votes.relations.index(ORIGINAL) if ORIGINAL in votes.relations else None
    names = short_names(votes.annotators), [*map(spoken, votes.relations)], votes.labels
    reason = lru_cache(MOST_KNOWN)(_Words(*names, original, votes.codes.shape[1:]).reason)  # many items are alike
    sure = np.full(len(best), UNDECIDED) if sure is None else sure
    sentences: list[str] = []
    for rows in row_parts(votes):
        codes, labels, values = votes.codes[rows], best[rows], scores[rows]
        top = values == values.max(axis=1, keepdims=True)
        several = np.flatnonzero(top.sum(axis=1) > 1).tolist()
        tied = {row: tuple(np.flatnonzero(top[row]).tolist()) for row in several}
        shares = _shares(votes, rows)[np.arange(len(labels)), labels]
        facts = zip(codes, labels.tolist(), shares.tolist(), sure[rows].tolist(), strict=True)
        sentences += [reason(row.tobytes(), *about, tied.get(at, ())) for at, (row, *about) in enumerate(facts)]
    return sentences


def spoken(relation: str) -> str:
    """Return the name of a relation as written in a sentence."""
    return relation.replace("-", " ")


def _shares(votes: Votes, rows: slice) -> Integers:
    """Return the mean share of every label in the graded answers, in per cent, `[item, label]`; 0 without them."""
    items, labels = len(votes.codes[rows]), len(votes.labels)
    if votes.grades is None:
        return np.zeros((items, labels), dtype=np.intp)
    grades = votes.grades[rows].reshape(items, -1, labels)
    total = grades.sum(axis=2, keepdims=True)
    shares = np.divide(grades, total, out=np.zeros_like(grades), where=total > 0)
    return np.rint(100 * shares.sum(axis=1) / np.maximum((total > 0).sum(axis=1), 1)).astype(np.intp)


def _voice(cell: Sequence[int]) -> int:
    """Return the label that a cell gave most often; `UNDECIDED` where there is none."""
    labels = [code for code in cell if code >= 0]
    if len({*labels}) < 2:
        return labels[0] if labels else UNDECIDED
    (first, most), (_, next_most) = Counter(labels).most_common(2)
    return first if most > next_most else UNDECIDED


class _Words(NamedTuple):
    """Turns the answers of models, `[model][relation][draw]`, into sentences."""

    models: Sequence[str]
    relations: Sequence[str]
    labels: Sequence[str]
    original: int | None  # position of the relation that leaves the text unchanged; None when there is none
    shape: tuple[int, ...]

    def reason(self, answered: bytes, best: int, share: int, sure: int, tied: tuple[int, ...]) -> str:
        codes = np.frombuffer(answered, dtype=CODE).reshape(self.shape).tolist()
        every = [code for model in codes for cell in model for code in cell]
        answers, asked = [code for code in every if code >= 0], len(every) - every.count(NOT_ASKED)
        total, ours, others, label = len(answers), answers.count(best), {*answers} - {best}, self.labels[best]
        only_other = self.labels[min(others)] if len(others) == 1 else ""
        say = "the only answer says" if total == 1 else f"{_every(total)} answers say"
        if not total:
            return "no model gave a usable answer" if asked else "no model has answered"
        if 2 * total < asked:
            return f"only {total} of {asked} questions {'was' if total == 1 else 'were'} answered"
        if tied:
            return f"{_listed([self.labels[code] for code in tied], 'labels')} are tied"
        if not ours:
            start = f"{say} {only_other}" if only_other else f"no answer says {label}"
            return f"{start}, {KNOWN_ERRORS} {label if only_other else 'it'}"
        if total > ours:
            changed = "" if self.original is None else self._changed(codes, self.original, best)
            return changed or self._minority(label, only_other, ours, total)
        probable = f", with a probability of {share} %{'' if total == 1 else ' on average'}" if share else ""
        right = f"; such labels are right in {sure} % of cases" if sure >= 0 else ""
        return f"{say} {label}{probable}{right}"

    def _changed(self, codes: list[list[list[int]]], original: int, best: int) -> str:
        """Most comparable models changed their answer, under the relation where that happened most; else `_denied`."""
        by_relation, voices = [], [[_voice(cell) for cell in model] for model in codes]
        for relation in range(len(self.relations)):
            both = [model for model, voice in enumerate(voices) if min(voice[original], voice[relation]) >= 0]
            by_relation.append((both, [model for model in both if voices[model][original] != voices[model][relation]]))
        # there are far fewer than a thousand models, so the number only breaks ties between equal shares
        shares = [len(changed) / max(len(both), 1) + len(changed) / 1e6 for both, changed in by_relation]
        worst = shares.index(max(shares))
        pairs, flips = map(len, by_relation[worst])
        if 2 * flips <= pairs:
            return self._denied(codes, original, best)
        if pairs == 1:
            return f"{self._model(by_relation[worst][1][0])} changed its answer under {self.relations[worst]}"
        comparable = "" if pairs == len(self.models) else "comparable "
        who = f"{flips} of {pairs}" if flips < pairs else _every(pairs)
        return f"{who} {comparable}models changed their answer under {self.relations[worst]}"

    def _denied(self, codes: list[list[list[int]]], original: int, best: int) -> str:
        """Some models give the original text a label other than the item's."""
        voice = [_voice(model[original]) for model in codes]
        speakers = {code: [m for m, label in enumerate(voice) if label == code] for code in sorted({*voice} - {-1})}
        # a model split between the label and another neither supports nor contradicts the label
        split = best not in speakers and any(best in model[original] for model in codes)
        if not speakers.keys() - {best} or split:
            return ""
        steady = all(len({code for cell in model for code in cell if code >= 0}) <= 1 for model in codes)
        steady_there = all(len({code for code in model[original] if code >= 0}) <= 1 for model in codes)
        verb = ("says", "say") if steady_there else ("most often says", "most often say")
        ours = speakers.pop(best, None)
        first, models = next(iter(speakers.items()))
        if ours is None:
            if sum(map(len, speakers.values())) > 1:
                return f"no model says {self.labels[best]} on the original text"
            return (
                f"{self._model(models[0])} {verb[0]} {self.labels[first]} on the original text, not {self.labels[best]}"
            )
        parts = [f"{self._who(others)} {self.labels[code]}" for code, others in speakers.items()]
        parts[0] = f"{self._who(models)} {verb[len(models) > 1]} {self.labels[first]}"
        rest = "the others" if len(ours) > 1 and UNDECIDED not in voice else self._who(ours)
        return f"{'' if steady else 'on the original text '}{', '.join(parts)}, {rest} {self.labels[best]}"

    def _minority(self, label: str, only_other: str, ours: int, total: int) -> str:
        against = total - ours
        if 2 * ours <= total:
            return f"only {ours} of {total} answers {_say(ours)} {label}"
        if only_other:
            return f"{against} of {total} answers {_say(against)} {only_other}"
        return f"{against} of {total} answers do not say {label}"

    def _model(self, model: int) -> str:
        return self.models[model] if len(self.models) > 1 else "the model"

    def _who(self, models: list[int]) -> str:
        return _listed([self._model(model) for model in models], "models")


def _listed(names: Sequence[str], plural: str) -> str:
    return f"{len(names)} {plural}" if len(names) > MAX_NAMED else series(names)


def _every(count: int) -> str:
    return "both" if count == 2 else f"all {count}"


def _say(count: int) -> str:
    return "says" if count == 1 else "say"
