"""How many passages of each type texts have on average, corrected for wrong ones and missed ones."""

from collections.abc import Sequence

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.arrays import CODE, Floats
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.core.passages import VALUE, YES
from pcs_annotator.runs.passage_run import PassageRun
from pcs_annotator.runs.sharing import expected_labels
from pcs_annotator.studies.estimating.answers import EstimateQuestion
from pcs_annotator.studies.estimating.evidence import LabelEvidence, drawn_sample


def count_evidence(recorded: PassageRun, question: EstimateQuestion) -> dict[str, LabelEvidence]:
    """Return type → what is known about how many passages of it every text has; its labels are the numbers."""
    if question.of or question.values or question.formula or question.probability:
        raise ConfigError("passages are counted: leave --of, --values, --formula and --probability out")
    votes, texts = recorded.votes, recorded.of_texts
    gold = gold_codes(votes, recorded.gold.labels)
    expected = expected_labels(votes, gold, recorded.settings, recorded.texts, recorded.shape)
    if expected is None:
        raise GoldError(f"{recorded.folder.home} has too little gold to learn from: mark more texts with pcs gold")
    yes = votes.labels.index(YES)
    counts = {}
    for name in recorded.config.task.labels:
        marked = [None if some is None else sum(each.type == name for each in some) for some in recorded.marked]
        rows = [row for row, passage in enumerate(recorded.candidates.passages) if passage.type == name]
        by_text = [recorded.candidates.rows[row] for row in rows]
        most = max([*np.bincount(by_text, minlength=1).tolist(), *(some or 0 for some in marked)])
        most = min(most, 1) if name == VALUE else most
        codes = np.array([UNLABELLED if some is None else some for some in marked], dtype=CODE)
        held_out = _numbers(expected.held_out[rows, yes], by_text, len(codes), most)
        sample, notes = drawn_sample(texts, codes, len(codes))
        table = texts.dataset.table
        counts[name] = LabelEvidence(
            labels=tuple(str(number) for number in range(most + 1)),
            table=table,
            columns=table.column_names,
            expected=held_out,
            held_out=held_out[sample.rows],
            sample=sample,
            notes=notes,
            said=held_out.argmax(axis=1),
        )
    return counts


def _numbers(chances: Floats, texts: Sequence[int], rows: int, most: int) -> Floats:
    """Return the probability of every number of passages, `[text, number]`, if candidates are right independently."""
    numbers = np.zeros((rows, most + 1))
    numbers[:, 0] = 1.0
    for text, chance in zip(texts, chances.tolist(), strict=True):
        more = np.append(0.0, numbers[text, :-1])
        more[-1] += numbers[text, -1]
        numbers[text] = (1 - chance) * numbers[text] + chance * more
    return numbers
