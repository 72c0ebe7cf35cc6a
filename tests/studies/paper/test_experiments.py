import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.result_table import Content, Experiment, Figure, ResultTable, number_of
from pcs_annotator.judging.baselines import LogProb, ZeroShot
from pcs_annotator.judging.evaluate.methods import Method
from pcs_annotator.judging.evaluate.scored import NO_CONFIDENCE_AUROC, EvaluationOptions, adjusted, cell_of, hard_scores
from pcs_annotator.judging.fit_weights import optimisers
from pcs_annotator.judging.heldout import Splits, cross_fit
from pcs_annotator.judging.metrics.figures import auroc, auroc_confidence
from pcs_annotator.judging.metrics.significance import p_value_text
from pcs_annotator.studies.paper.research_questions import EXPERIMENTS, NOT_RECORDED
from pcs_annotator.studies.paper.study import Replication, Settings, compared
from pcs_annotator.tables.vote_tables import read_vote_table
from tests.builders import simulated_votes, the
from tests.judging.evaluate.graded import graded_votes
from tests.judging.evaluate.test_methods import FirstVote
from tests.judging.strategies import coded

pytestmark = pytest.mark.system

SETTINGS = Settings(how=EvaluationOptions(repeats=1, resamples=20), sizes=(10, 20, 40), draws=3)
MODELS = ["llama-3-8b", "mistral-7b", "gemma-2-9b"]
PAPERS_SINGLE = [0.82, 0.70, 0.87, 0.62, 0.72, 0.80, 0.88, 0.86, 0.86]  # PCS of one model on the paper's three sets


def panel(items: int = 80, names: list[str] | None = None, seed: int = 0) -> tuple[Votes, Codes]:
    names = names or MODELS
    votes, gold = simulated_votes([0.75, 0.6, 0.85, 0.7][: len(names)], items=items, seed=seed)
    return replace(votes, annotators=names), coded(votes, gold)


def only_first_graded(votes: Votes) -> Votes:
    """Votes in which only the first model gave log-probabilities."""
    grades = the(votes.grades).copy()
    grades[:, 1:] = np.nan
    return replace(votes, grades=grades)


def run(name: str, sets: Mapping[str, tuple[Votes, Codes]], settings: Settings = SETTINGS) -> Experiment:
    return EXPERIMENTS[name](Replication.of(sets, settings))


def column(table: ResultTable, name: str) -> list[Content]:
    place = list(table.columns).index(name)
    return [row[place] for row in table.rows]


def noted(table: ResultTable, words: str) -> bool:
    return any(words in note for note in table.notes)


@pytest.fixture(scope="module")
def paper_sets(shared_data: Path) -> dict[str, tuple[Votes, Codes]]:
    sets = {}
    for name, rows in (("sentiment", 405), ("gossipcop", 393), ("politifact", 135)):
        votes, gold = read_vote_table(shared_data / "simulated" / f"{name}.csv.gz")
        sets[name] = (votes.take(slice(rows)), coded(votes, [label or "" for label in gold])[:rows])
    return sets


def test_nine_single_models_come_near_the_papers_figures(paper_sets: dict[str, tuple[Votes, Codes]]) -> None:
    table = run("rq1", paper_sets).tables[0]
    ours = [number_of(cell) or 0 for cell in column(table, "PCS")]
    assert ours == pytest.approx(PAPERS_SINGLE, abs=0.07)


def test_twelve_combinations_and_the_test_of_them(paper_sets: dict[str, tuple[Votes, Codes]]) -> None:
    experiment = run("rq3", paper_sets)
    table = experiment.tables[0]
    assert len(table.rows) == len(experiment.pairs) == 12
    ((name, improvement),) = table.summary
    assert name == "PCS against MV: average relative improvement"
    assert improvement.startswith("+")
    assert improvement.endswith(", p < 0.001 ***")


def test_zero_shot_is_hard_and_pcs_is_shown_both_ways() -> None:
    votes, gold = panel()
    table = run("rq1", {"mine": (votes, gold)}).tables[0]
    assert list(table.columns) == [
        "Dataset", "LLM", "Zero-shot", "PCS hard", "PCS", "PCS equal weights", "Self-consistency"
    ]  # fmt: skip
    assert column(table, "Self-consistency") == [None] * 3
    assert noted(table, "--draws 5")
    for name in ("Zero-shot", "PCS hard", "PCS"):
        assert all(isinstance(cell, Figure) and cell.interval for cell in column(table, name))


@pytest.mark.parametrize("name", ["rq1", "rq3", "rq4"])
def test_a_second_table_has_the_confidence_auroc_of_the_same_results(name: str) -> None:
    votes, truth = simulated_votes([0.5, 0.45], items=80)
    votes, gold = replace(votes, annotators=["a@0", "b@0"]), coded(votes, truth)
    sets = {"mine": (votes, gold), "few": (votes.take(slice(3)), gold[:3])}
    first, *_, table = run(name, sets).tables
    assert table.name == f"{name}-confidence"
    assert "(confidence AUROC)" in table.title
    assert [row[:2] for row in table.rows] == [row[:2] for row in first.rows]
    assert "PCS hard" not in table.columns
    *shown, of_too_few = column(table, "PCS")
    panel_shown = votes.select(annotators=["a@0"]) if name == "rq1" else votes
    fit = cross_fit(optimisers.create("lr"), panel_shown, gold, Splits())
    expected = auroc_confidence(fit.probabilities, gold)
    assert any(number_of(cell) == pytest.approx(expected) for cell in shown)
    assert of_too_few is None
    assert noted(table, "right labels against wrong ones")
    assert noted(table, "few: ")


def test_a_confidence_auroc_that_is_undefined_is_a_dash_with_a_note() -> None:
    votes, gold = panel(names=["a"])
    perfect = replace(votes, codes=np.broadcast_to(gold[:, np.newaxis, np.newaxis, np.newaxis], votes.codes.shape))
    table = run("rq1", {"mine": (perfect, gold)}).tables[1]
    assert [list(row) for row in table.rows] == [["mine", "a", None, None, None, None]]
    assert noted(table, NO_CONFIDENCE_AUROC)
    assert noted(run("rq2", {"mine": (perfect, gold)}).tables[0], NO_CONFIDENCE_AUROC)


def test_self_consistency_with_as_many_calls_where_draws_are_recorded() -> None:
    votes, gold = panel(names=["a"])
    again = np.full((*votes.codes.shape[:3], 5), -2, dtype=np.int8)
    again[..., 0] = votes.codes[..., 0]
    again[:, :, 0, 1:] = votes.codes[:, :, 1:2, 0]
    table = run("rq1", {"mine": (replace(votes, codes=again), gold)}).tables[0]
    assert isinstance(column(table, "Self-consistency")[0], Figure)


def test_baselines_that_are_not_recorded_get_a_row() -> None:
    table = run("rq2", {"gossipcop": panel()}, replace(SETTINGS, baselines=[FirstVote()])).tables[0]
    gemma = [row for row in table.rows if row[1] == "gemma-2-9b"]
    assert [row[2] for row in gemma] == ["PCS", "first-vote", "1s-top-2", "2s-top-2", "ling-1s", "spuq"]
    assert [row[3] for row in gemma[:2]] == [4, 2]
    assert [row[7] for row in gemma[2:]] == [NOT_RECORDED] * 4
    assert list(table.columns)[4:6] == ["Class AUROC", "Confidence AUROC"]
    assert all(isinstance(row[4], Figure) for row in gemma[:2])
    assert isinstance(gemma[1][5], Figure)
    assert gemma[2][4:6] == [None, None]
    assert noted(table, "spuq is not recorded: no such baseline was given")


def test_real_baselines_skip_what_was_not_asked() -> None:
    from pcs_annotator.judging.baselines import baselines

    known = [baselines.create(name) for name in ("spuq", "majority-vote", "1s-top-k", "ling-1s")]
    votes, gold = panel(names=["a", "b"])
    codes = votes.codes.copy()
    codes[:, 1, 1:] = -2
    sets = {"mine": (replace(votes, codes=codes), gold)}
    table = run("rq2", sets, replace(SETTINGS, baselines=known)).tables[0]
    assert [row[2] for row in table.rows if row[1] == "a"] == ["PCS", "spuq", "2s-top-2", "1s-top-k", "ling-1s"]
    spuq_of_b = next(row for row in table.rows if row[1] == "b" and row[2] == "spuq")
    assert spuq_of_b[4] is None
    assert noted(table, "ling-1s is not recorded")
    assert not noted(table, "majority-vote")


def test_one_graded_question_is_among_the_baselines_where_there_are_grades() -> None:
    known: list[Method] = [LogProb(), "scaled logprob", ZeroShot()]
    votes, gold = graded_votes([1.5, 0.5], items=80)
    mixed = only_first_graded(votes)
    table = run("rq2", {"mine": (mixed, gold)}, replace(SETTINGS, baselines=known)).tables[0]
    needed = {(row[1], row[2]): row[4] for row in table.rows if row[3] is not None}
    assert needed == {
        ("model-0", "PCS"): "yes",
        ("model-0", "logprob"): "yes",
        ("model-0", "scaled logprob"): "yes",
        ("model-0", "zero-shot"): "no",
        ("model-1", "PCS"): "no",
        ("model-1", "zero-shot"): "no",
    }
    assert table.columns[4] == "Log-probs"
    assert {row[3] for row in table.rows if row[2] in ("logprob", "scaled logprob")} == {1}
    assert all(number_of(table.rows[row][column]) is not None for row, column in table.best)
    assert noted(table, "Log-probs: ")
    assert noted(table, "logprob is not recorded")


def test_figures_of_labels_are_the_same_for_hard_and_for_graded_votes() -> None:
    votes, gold = graded_votes([1.5, 0.5], items=80, relations=3)
    graded, hard = ({"mine": (one, gold)} for one in (votes, votes.hard()))
    for name, places in (("rq1", (2,)), ("rq3", (2,)), ("rq4", (2, 3, 4))):
        ours, theirs = (run(name, sets).tables[0] for sets in (graded, hard))
        for place in places:
            assert [row[place] for row in ours.rows] == [row[place] for row in theirs.rows], name
        pcs = [number_of(one) or 0 for one in column(ours, "PCS")]
        assert all(one > (number_of(other) or 0) for one, other in zip(pcs, column(theirs, "PCS"), strict=True)), name


def test_the_hard_figure_of_pcs_is_of_the_most_probable_label() -> None:
    votes, gold = graded_votes([1.5], items=80)
    settings = replace(SETTINGS, optimiser="auto")
    [bench] = Replication.of({"mine": (votes, gold)}, settings).benches
    scored = bench.on_cells("auto", ["model-0"])
    [probabilities] = [
        cross_fit(optimisers.create("auto"), votes, gold, Splits(seed=seed)).probabilities for seed in (0,)
    ]
    assert scored.hard().auroc.value == pytest.approx(auroc(hard_scores(probabilities, votes.labels), gold))
    table = run("rq1", {"mine": (votes, gold)}, settings).tables[0]
    assert column(table, "PCS hard") == [cell_of(scored.hard().auroc)]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_takes_mixed_votes(name: str) -> None:
    votes, gold = graded_votes([1.5, 0.5], items=60)
    asked = np.ones((2, 2, 1), dtype=np.bool_)
    asked[1, 1] = False
    mixed = replace(only_first_graded(votes).only(asked), annotators=["a@0", "b@0"])
    for table in run(name, {"mine": (mixed, gold)}).tables:
        values = [number_of(cell) for row in table.rows for cell in row]
        assert any(value is not None for value in values)


def test_a_model_without_votes_has_no_row_among_baselines() -> None:
    votes, gold = panel(names=["a", "b"])
    codes = votes.codes.copy()
    codes[:, 1] = -1
    table = run("rq2", {"mine": (replace(votes, codes=codes), gold)}).tables[0]
    assert {row[1] for row in table.rows} == {"a"}
    assert noted(table, "b never gave a label")


def test_all_combinations_of_four_models() -> None:
    table = run("rq3", {"mine": panel(names=["a", "b", "c", "d"])}).tables[0]
    assert len(table.rows) == 6 + 4 + 1


def test_many_models_are_combined_in_pairs_and_all_together() -> None:
    votes, gold = panel(names=["a"])
    codes = np.repeat(votes.codes, 8, axis=1)
    table = run("rq3", {"mine": (replace(votes, codes=codes, annotators=list("abcdefgh")), gold)}).tables[0]
    assert len(table.rows) == 28 + 1


def test_one_model_alone_has_no_combinations() -> None:
    table = run("rq3", {"mine": panel(names=["a"])}).tables[0]
    assert list(table.rows) == []
    assert noted(table, "mine: one model")
    assert [value for _, value in table.summary] == ["–, no test"]


def test_each_relation_none_and_all() -> None:
    table, tests, _ = run("rq4", {"gossipcop": panel()}).tables
    assert list(table.columns)[2:] == ["No MR", "voice", "double-negation", "synonym", "PCS"]
    assert table.rows[-1][1] == "llama-3-8b + mistral-7b + gemma-2-9b (MV)"
    assert len(tests.rows) == 10
    assert tests.rows[0][:2] == ["PCS vs No MR", 4]
    assert [row[0] for row in tests.rows[4:7]] == ["No MR vs voice", "No MR vs synonym", "No MR vs double-negation"]


def test_a_relation_that_one_dataset_lacks_is_a_dash_with_a_note() -> None:
    votes, gold = panel(names=["a", "b"])
    votes = replace(votes, relations=["original", "irony", "double-negation", "synonym"])
    table, tests, _ = run(
        "rq4", {"one": (votes.select(annotators=["a"]), gold), "two": (votes.without(relation="irony"), gold)}
    ).tables
    assert [row[3] is None for row in table.rows] == [False, True, True, True]
    assert [note for note in table.notes if "irony" in note] == ["two: irony is not recorded."]
    assert next(row for row in tests.rows if row[0] == "PCS vs irony")[1] == 1


def test_baselines_are_tested_together() -> None:
    table = run("rq2", {"mine": panel()}, replace(SETTINGS, baselines=[FirstVote()])).tables[0]
    [bench] = Replication.of({"mine": panel()}, SETTINGS).benches
    alone = [
        compared([bench.on_cells("lr", [name])], [bench.score(FirstVote(), bench.votes.select(annotators=[name]))])
        for name in MODELS
    ]
    expected = [p_value_text(p_value or 0) for p_value in adjusted([one.test for one in alone])]
    assert [row[6] for row in table.rows if row[2] == "first-vote"] == expected


def test_overlapping_combinations_are_not_taken_as_independent() -> None:
    # a relation that differs from the unchanged text on a few rows by chance, in the same way for every model
    votes, gold = panel(items=200, names=["a", "b", "c"])
    codes = np.repeat(votes.codes[:, :1], 3, axis=1)
    [bench] = Replication.of({"mine": (replace(votes, codes=codes), gold)}, SETTINGS).benches
    panels = [["a"], ["b"], ["c"], ["a", "b"], ["a", "b", "c"]]
    one, many = (
        compared(
            [bench.on_cells("uniform", models, ["original"]) for models in chosen],
            [bench.on_cells("uniform", models, ["voice"]) for models in chosen],
        )
        for chosen in (panels[:1], panels)
    )
    assert the(many.test).p_value == pytest.approx(the(one.test).p_value)  # the same votes five times say nothing new


def test_a_cell_that_was_never_answered_is_a_dash_with_a_note() -> None:
    votes, gold = panel(names=["a", "b"])
    codes = votes.codes.copy()
    codes[:, 1, :2] = -2
    sets = {"mine": (replace(votes, codes=codes), gold)}
    table = run("rq4", sets).tables[0]
    assert table.rows[1][2] is table.rows[1][3] is None
    assert noted(table, "mine: b has no votes on original, voice.")
    table = run("rq1", sets).tables[0]
    assert table.rows[1][2] is None
    assert isinstance(table.rows[1][4], Figure)


def test_many_gaps_are_counted_not_listed() -> None:
    votes, gold = panel(names=["a"])
    codes = np.repeat(votes.codes, 12, axis=1)
    codes[:, 1:, 0] = -2
    study = Replication.of({"mine": (replace(votes, codes=codes, annotators=list("abcdefghijkl")), gold)}, SETTINGS)
    assert len(study.trouble()) == 9
    assert study.trouble()[-1] == "… and 3 more gaps like these."


def test_more_gold_does_not_hurt_on_average_and_bands_enclose_the_line() -> None:
    experiment = run("size", {"gossipcop": panel(items=200)}, replace(SETTINGS, draws=8))
    learned, equal = experiment.curves
    assert (learned.dataset, learned.method, learned.x) == ("gossipcop", "lr", (10, 20, 40))
    assert learned.y[-1] > learned.y[0] - 0.02
    assert len(set(equal.y)) == 1
    for curve in experiment.curves:
        assert all(low <= high for low, high in zip(curve.low, curve.high, strict=True))
    assert experiment.tables[0].summary[0][1].endswith("gold rows")


def test_a_learning_curve_needs_rows_of_both_classes() -> None:
    votes, gold = panel(items=12, names=["a"])
    notes = run("size", {"mine": (votes, gold)}, replace(SETTINGS, sizes=(10,))).tables[0].notes
    assert any("12 rows are too few for a learning curve" in note for note in notes)
    rare = np.zeros_like(gold)
    rare[0] = 1
    table = run("size", {"mine": (votes, rare)}, replace(SETTINGS, sizes=(5,))).tables[0]
    assert noted(table, "mine: too few rows of the rarer class")


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("trouble", ["three rows", "one class", "no relation", "no votes"])
def test_bad_data_gives_notes_and_dashes(name: str, trouble: str) -> None:
    votes, gold = panel(names=["a", "b"])
    bad = {
        "three rows": (votes.take(slice(3)), gold[:3]),
        "one class": (votes, np.zeros_like(gold)),
        "no relation": (votes.select(relations=[]), gold),
        "no votes": (replace(votes, codes=np.full_like(votes.codes, -2)), gold),
    }[trouble]
    for table in run(name, {"bad": bad}).tables:
        for row in table.rows:
            assert all(not isinstance(cell, float) or math.isfinite(cell) for cell in row)
        if table.name != "rq4-tests":
            assert noted(table, "bad: ")
            assert trouble == "no votes" or ["bad", *[None] * (len(table.columns) - 1)] in table.rows


def test_no_datasets_at_all_give_empty_tables() -> None:
    for name in EXPERIMENTS:
        assert list(run(name, {}).tables[0].rows) == []


def test_experiments_share_one_study() -> None:
    study = Replication.of({"mine": panel(items=40, names=["a", "b"])}, SETTINGS)
    assert [experiment(study).name for experiment in EXPERIMENTS.values()] == list(EXPERIMENTS)


def test_panels_that_questions_share_are_scored_once() -> None:
    study = Replication.of({"mine": panel()}, SETTINGS)
    first = study.benches[0].on_cells("lr", ["gemma-2-9b"])
    assert study.benches[0].on_cells("lr", ["gemma-2-9b"]) is first
    assert first.measured is first.measured
    assert study.benches[0].on_cells("lr", ["gemma-2-9b"], hard=True) is not first


def test_pcs_can_be_restricted_to_some_relations() -> None:
    study = Replication.of({"mine": panel()}, replace(SETTINGS, relations=("original", "voice", "elsewhere")))
    assert study.benches[0].plain.relations == ("original", "voice")
    assert len(study.benches[0].votes.relations) == 4
