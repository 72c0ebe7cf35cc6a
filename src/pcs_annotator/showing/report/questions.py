"""What each question adds, and which answers are missing."""

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

from pcs_annotator.base.errors import UserError
from pcs_annotator.base.text import capital, counted, short_names
from pcs_annotator.core.arrays import CODE
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.core.result_table import Figure
from pcs_annotator.core.votes import ABSTAINED, Votes
from pcs_annotator.core.weights import Share, Weights
from pcs_annotator.judging.early_stop import Spending
from pcs_annotator.judging.evaluate.relation_value import ADVICE, RelationValues, points, relation_values
from pcs_annotator.judging.evaluate.scored import EvaluationOptions
from pcs_annotator.judging.metrics.coefficients import flips_by
from pcs_annotator.judging.text_model import TextModel
from pcs_annotator.runs.learn import Learned, counted_once
from pcs_annotator.runs.recorded_votes import written_by_model
from pcs_annotator.runs.run_result import SILENCES
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import DASH, count, percent
from pcs_annotator.showing.report.view import View

MOST_REASONS = 8
RESAMPLES = 300
LEARN_NOTHING = ("uniform", "majority")
STABILITY = "Ranges of weights are stability ranges: where 95 % of fits on resampled gold rows put the weight."
HINTS = {
    "weight": "How much its answers count; weights of models sum to 1, as do those of relations; the dashed line is "
    "an equal weight for all. With little gold, weights stay close to equal.",
    "answered": "Of a model: questions with a usable answer. Of a relation: texts to which it applied.",
    "changed": "Answers with another label than the same model gave to the original question about the original text. "
    "A graded answer counts as the label that was answered.",
    "adds": "Points of class AUROC that the relation adds beside the original where it applies, on gold rows that the "
    "fit did not see, with 95 % intervals. Gains of several relations do not add up.",
    "new texts": "Questions that are put to the model, or texts for which the relation is needed, when pcs label stops "
    "as soon as no open answer can change the label. Measured on the recorded answers.",
    "advice": "Drop if the interval of what it adds ends below one point, else keep if that is above 0 after "
    "adjustment for the number of relations (Holm). pcs relations value FOLDER uses more splits and resamples.",
}
_Part = tuple[Mapping[str, Share | None], Mapping[str, Mapping[str, b.Cell]]]
"""Of models or relations: their weights, and a cell of each for the columns that they have."""


def silences(view: View) -> b.Folded | None:
    """Return why rewrites and answers are missing; None if none is."""
    result = view.result
    unlisted = "a label that the server did not list may have more than 1 %; it was given the most that it can have"
    missing: list[b.Block] = [
        *(reasons(f"Why {what}", result.silences[kind]) for kind, what in SILENCES.items()),
        reasons("Why answers are labels without probabilities", result.hard),
        b.note(f"In {counted(result.bounded, 'answer')}, {unlisted}.") if result.bounded else None,
        reasons("Failed calls, repeated by the next run", result.tally.failed),
    ]
    return b.Folded("Missing rewrites and answers, and why", missing) if any(missing) else None


def reasons(title: str, counts: Mapping[str, int], most: int = MOST_REASONS) -> b.Group | None:
    """Return why something happened, the most frequent reasons first; None if it did not."""
    if not counts:
        return None
    top = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    items: list[b.Words] = [
        (b.Styled(count(times), "count"), " ", b.Styled(reason, "plain", own=True)) for reason, times in top[:most]
    ]
    if rest := sum(times for _, times in top[most:]):
        items.append((b.Styled(count(rest), "count"), " for other reasons"))
    return b.titled(title, b.Bullets(items, "reasons"))


def questions(view: View) -> b.Section | None:
    """Return what every model and every relation adds; None if nobody was asked."""
    if not len(view.result.votes):
        return None
    try:
        values = _valued(view)
        added = b.text(values.conclusions[-1], kind="verdict")
    except UserError as error:
        values, added = None, b.note(f"What relations add is not known: {str(error).rstrip('.')}.")
    section = weights(view.result.learned, view.result.votes, values)
    learned, table, *more = section.blocks
    return b.section("questions", section.title, learned, table, added, *more, silences(view))


def weights(learned: Learned, votes: Votes, values: RelationValues | None = None) -> b.Section:
    """Return models and relations with their weights and what is known about their answers."""
    models, relations = learned.model.weights.shares(votes)
    short = dict(zip(votes.annotators, short_names(votes.annotators), strict=True))
    cells = {short[name]: cell for name, cell in _of_models(votes, learned.spending).items()}
    models = {short[name]: share for name, share in models.items()}
    of_relations = _of_relations(votes, learned.spending, values)
    parts: dict[str, _Part] = {"Models": (models, cells), "Relations": (relations, of_relations)}
    evidence = about_evidence(learned.model.weights)
    ranges = any(share and share.interval for share in (*models.values(), *relations.values()))
    return b.section(
        "weights",
        "What each question adds",
        b.text(capital(f"{about_weights(learned.model.weights)}.")),
        _table(parts),
        *_texts(learned.model.text),
        _saved(learned.spending),
        b.note(" ".join(filter(None, [STABILITY if ranges else "", evidence]))) if ranges or evidence else None,
    )


def about_weights(weights: Weights) -> str:
    """Return how weights came about: learned, and from what, or why not."""
    diagnostics = weights.diagnostics
    if not diagnostics.gold_rows:
        return "there are no gold labels, so all votes count the same"
    if diagnostics.nothing_learned:
        return f"nothing was learned: {diagnostics.nothing_learned}"
    if diagnostics.optimiser in LEARN_NOTHING:
        return f"the weights are fixed, because {diagnostics.optimiser} learns nothing"
    rows = counted(diagnostics.gold_rows, "gold row")
    return f"weights learned from {rows} by {diagnostics.optimiser or 'a custom optimiser'}"


def about_evidence(weights: Weights) -> str:
    """Return what the weights are a summary of; empty if they are all that was learned."""
    if weights.evidence is None:
        return ""
    if weights.evidence.reads != "mean log-odds":
        return "What is learned is also which labels each model confuses; the weights are a summary of that."
    averaged = "The log-odds of a model's answers are averaged, so its questions count the same."
    diagnostics = weights.diagnostics
    if not diagnostics.gold_rows or diagnostics.nothing_learned or diagnostics.optimiser in LEARN_NOTHING:
        return averaged
    return (
        f"{averaged} The optimiser learns a scale per model and label, and an offset per label, which corrects for "
        "favourite labels; the weights are a summary of that."
    )


def _texts(model: TextModel | None) -> Iterator[b.Block]:
    if model is not None:
        alone = f"A model of the texts joins the votes; alone, it is right on {percent(model.accuracy, 1)} of gold rows"
        yield b.text(f"{alone}, each read by a model that did not see it.", kind="verdict")
        telling = [(label, b.name(", ".join(words))) for label, words in model.words.items() if words]
        yield b.Folded("Words that speak for each label", [b.KeyValues(telling)]) if telling else None


def _saved(spending: Spending | None) -> b.Block:
    if spending is None:
        return None
    why = "pcs label stops when no open answer can change the label"
    return b.text(f"A new text needs {percent(spending.questions, 1)} of all questions: {why}.", kind="verdict")


def _table(parts: Mapping[str, _Part]) -> b.Table:
    """Return a line per model and per relation; columns that would be empty are left out."""
    lines = [line for _, cells in parts.values() for line in cells.values()]
    shown = [name for name in HINTS if name == "weight" or any(line.get(name) for line in lines)]
    columns = [b.Column("Asked"), *(b.Column(name, "number", HINTS[name]) for name in shown)]
    columns.insert(2, b.Column("", "chart"))
    rows: list[b.Row] = []
    for title, (shares, cells) in parts.items():
        rows.append([b.Styled(title, "bold"), *[""] * (len(columns) - 1)])
        for name, share, level in _levels(shares):
            weight, cells_of_name = share and Figure(share.weight, share.interval), cells.get(name, {})
            rows.append([b.name(name), weight, level, *(cells_of_name.get(key, "") for key in shown[1:])])
    return b.Table(columns=columns, rows=rows, kind="asked", label="Models and relations")


def _levels(shares: Mapping[str, Share | None]) -> Iterator[tuple[str, Share | None, b.Cell]]:
    """Yield name, weight and bar, the heaviest first; without votes there is no weight, and no bar but the reason."""
    weighted = {name: share for name, share in shares.items() if share is not None}
    ends = [share.interval.high for share in weighted.values() if share.interval]
    top = min(1.0, max([*(share.weight for share in weighted.values()), *ends], default=1.0) * 1.06) or 1.0
    equal = 1 / max(len(weighted), 1)
    for name, share in sorted(weighted.items(), key=lambda pair: -pair[1].weight):
        yield name, share, b.Spot(share.weight, share.interval, 0, max(top, equal), equal, "level")
    yield from ((name, None, b.Styled("cast no votes", "small")) for name in shares if name not in weighted)


def _of_models(votes: Votes, spending: Spending | None) -> dict[str, dict[str, b.Cell]]:
    changed = _changed("annotator", votes)
    cells: dict[str, dict[str, b.Cell]] = {}
    for index, name in enumerate(votes.annotators):
        answered, silent = int(np.sum(votes.codes[:, index] >= 0)), int(np.sum(votes.codes[:, index] == ABSTAINED))
        cells[name] = {"answered": percent(answered, answered + silent), "changed": changed.get(name, "")}
    for name, share in spending.by_annotator.items() if spending is not None else ():
        cells[name]["new texts"] = percent(share, 1)
    return cells


def _of_relations(
    votes: Votes, spending: Spending | None, values: RelationValues | None
) -> dict[str, dict[str, b.Cell]]:
    changed = _changed("relation", votes)
    answered = (votes.codes >= 0).any(axis=(1, 3)).sum(axis=0).tolist()
    cells: dict[str, dict[str, b.Cell]] = {
        name: {"answered": percent(times, len(votes)), "changed": changed.get(name, "")}
        for name, times in zip(votes.relations, answered, strict=True)
    }
    for name, share in spending.by_relation.items() if spending is not None else ():
        cells[name]["new texts"] = percent(share, 1)
    for value in values.relations if values is not None else ():
        cells[value.relation] |= {"adds": points(value.per_question) or DASH, "advice": ADVICE[value.advice]}
    return cells


def _changed(kind: Literal["annotator", "relation"], votes: Votes) -> dict[str, str]:
    return {name: percent(entry.changed, entry.pairs) for name, entry in flips_by(kind, votes).items()}


def _valued(view: View) -> RelationValues:
    result = view.result
    codes = gold_codes(result.votes, view.gold)
    distinct = counted_once(result.votes, codes, [item.text for item in result.dataset.items]).distinct
    gold = np.where(distinct, codes, UNLABELLED).astype(CODE)
    written = written_by_model(result.votes.relations, result.config.relations)
    learn = result.config.learn
    # one split and few resamples, because every report is written with them; the command takes more time
    quick = EvaluationOptions(folds=learn.folds, seed=learn.seed, repeats=1, resamples=RESAMPLES, rewritten=written)
    return relation_values(result.votes, gold, quick, name=view.data_name)
