"""How good weighed candidates are on public texts with gold passages, against every single question.

    python -m benchmarks.passages_quality FOLDER

The folder has a file `<set>.jsonl` for each set (id, text, gold) and `answers.jsonl` with the replies of real models
(set, id, question, draw, model, reply). Half of the texts of a set are gold; figures are of the other half, which
nothing was learned from, and candidates are chosen at a confidence of .5.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pcs_annotator.asking.annotators.extraction import read_quotations
from pcs_annotator.core.arrays import CODE
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.core.passages import NO, YES, Extraction, Passage
from pcs_annotator.core.placing import Places
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import ABSTAINED, NOT_ASKED, Votes
from pcs_annotator.judging.evaluate.passage_figures import GoldPassages, PassageFigures, best_cut, passage_figures
from pcs_annotator.judging.heldout import HeldOut, Judged
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.runs.learn import KnownRows, learn
from pcs_annotator.runs.quotations import MOST_PLACES, NOWHERE, Quoted, candidates_in, windows_of
from pcs_annotator.runs.settings import LearnSettings

SPLITS = 3


def main(folder: Path) -> None:
    """Print a line for every set, and the mean over them."""
    replies = defaultdict[str, list[Mapping[str, Any]]](list)
    for line in (folder / "answers.jsonl").open(encoding="utf-8"):
        reply = json.loads(line)
        replies[reply["set"]].append(reply)
    print("set       quotations  in the text  best question     F1  weighed F1  gain  AUROC")
    for name in sorted(replies):
        figures, placed, quoted = set_figures(folder, name, replies[name])
        best = [max(each.questions, key=lambda question: question.f1) for each in figures]
        usual = max({question.name for question in best}, key=[question.name for question in best].count)
        single, weighed = np.mean([each.f1 for each in best]), np.mean([each.weighed.f1 for each in figures])
        area = np.mean([each.auroc or np.nan for each in figures])
        print(
            f"{name:9} {quoted:10,}  {placed / quoted:10.1%}  {usual[-22:]:14} {single:6.3f}  {weighed:10.3f} "
            f"{100 * (weighed - single):5.1f}  {area:.3f}"
        )


def set_figures(folder: Path, name: str, replies: Sequence[Mapping[str, Any]]) -> tuple[list[PassageFigures], int, int]:
    """Return figures of a set for several splits, and how many quotations there are, and are in their text."""
    rows = [json.loads(line) for line in (folder / f"{name}.jsonl").open(encoding="utf-8")]
    items = [Item(id=str(row["id"]), text=row["text"]) for row in rows]
    gold = [[Passage(each["start"], each["end"], each["type"]) for each in row["gold"]] for row in rows]
    extraction = Extraction(tuple(sorted({passage.type for some in gold for passage in some})))
    votes, quoted = votes_on(items, replies, extraction)
    found = candidates_in(items, windows_of(items), quoted, votes, extraction)
    figures = [split_figures(found.votes, found.passages, found.rows, gold, extraction, seed) for seed in range(SPLITS)]
    return figures, found.quotations - found.nowhere, found.quotations


def votes_on(
    items: Sequence[Item], replies: Sequence[Mapping[str, Any]], extraction: Extraction
) -> tuple[Votes, list[Quoted]]:
    """Return which questions were answered, and what the replies quote."""
    places, quoted = {item.id: Places(item.text) for item in items}, list[Quoted]()
    models = sorted({reply["model"] for reply in replies})
    questions = sorted({(reply["question"], reply["draw"]) for reply in replies})
    names = [question if draw == 1 else f"{question} {draw}" for question, draw in questions]
    codes = np.full((len(items), len(models), len(questions), 1), NOT_ASKED, dtype=CODE)
    row_of = {item.id: row for row, item in enumerate(items)}
    for reply in replies:
        row, column = row_of[str(reply["id"])], questions.index((reply["question"], reply["draw"]))
        said = read_quotations(reply["reply"], extraction)
        codes[row, models.index(reply["model"]), column] = ABSTAINED if isinstance(said, str) else 0
        for type_, quotation, _ in () if isinstance(said, str) else said:
            spans = places[str(reply["id"])].all_of(quotation)[:MOST_PLACES] or [(NOWHERE, NOWHERE)]
            about = row, reply["model"], names[column], 0, type_, quotation, ""
            quoted += [Quoted(*about, start, end) for start, end in spans]
    ids = [item.id for item in items]
    made = Votes(codes=codes, ids=ids, annotators=models, relations=names, labels=("answered", "silent"))
    return made, quoted


def split_figures(  # what there is to know
    votes: Votes,
    passages: Sequence[Passage],
    texts: Sequence[int],
    gold: Sequence[Sequence[Passage]],
    extraction: Extraction,
    seed: int,
) -> PassageFigures:
    """Learn from half of the texts, and return figures of the others."""
    shuffled = np.random.default_rng(seed).permutation(len(gold))
    learned_from = {*shuffled[: len(gold) // 2].tolist()}
    right = [
        YES if extraction.right(passage, gold[text]) else NO for passage, text in zip(passages, texts, strict=True)
    ]
    known = [label if text in learned_from else None for label, text in zip(right, texts, strict=True)]
    shape = LabelShape.of("passages", votes.labels)
    settings = LearnSettings(max_error=0.2, resamples=0)
    learned = learn(votes, known, settings, KnownRows(texts=votes.texts, shape=shape))
    model, trial = learned.model, learned.trial
    assert trial is not None
    cut = cut_of(trial, votes, passages, texts, gold, extraction)
    judged = model.judged(votes)
    assert judged.confidence is not None
    others = np.array([row for row, text in enumerate(texts) if text not in learned_from])
    kept = Judged(
        judged.confidence[others],
        judged.best[others],
        np.array(gold_codes(votes, right))[others] == votes.labels.index(YES),
        np.array(texts)[others],
    )
    meant = [
        [at for at, passage in enumerate(gold[texts[row]]) if extraction.match(passages[row], passage)]
        for row in others.tolist()
    ]
    counts = np.array([-1 if text in learned_from else len(some) for text, some in enumerate(gold)])
    about = GoldPassages(counts, [True] * len(gold), meant)
    certificate = model.certificate
    return passage_figures(votes.take(others), kept, np.ones(len(others), dtype=np.bool_), about, certificate, cut)


def cut_of(  # what there is to know
    trial: HeldOut,
    votes: Votes,
    passages: Sequence[Passage],
    texts: Sequence[int],
    gold: Sequence[Sequence[Passage]],
    extraction: Extraction,
) -> float:
    """Return the best cut for the texts that were learned from, by fits that did not see them."""
    places = {name: row for row, name in enumerate(votes.ids)}
    rows = [places[name] for name in trial.ids]
    judged = trial.judged._replace(units=np.array([texts[row] for row in rows]))
    there = {texts[row] for row in rows}
    counts = np.array([len(some) if text in there else -1 for text, some in enumerate(gold)])
    meant = [
        [at for at, passage in enumerate(gold[texts[row]]) if extraction.match(passages[row], passage)] for row in rows
    ]
    return best_cut(judged, np.ones(len(rows), dtype=np.bool_), GoldPassages(counts, [True] * len(gold), meant))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
