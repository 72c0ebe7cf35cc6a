"""Whole runs whose answers are numbers in a range."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pcs_annotator as pcs
from pcs_annotator.asking.annotators.reply import read_number
from pcs_annotator.base.errors import ConfigError, LabelError
from pcs_annotator.core.numbers import nearest_step, number_in, steps_of
from pcs_annotator.faces.cli.main import main
from pcs_annotator.faces.review.forms import Visit
from pcs_annotator.faces.review.item import item_view
from pcs_annotator.faces.review.variable_form import form_view
from pcs_annotator.judging.calibrate import Calibrator, fit_numbers
from pcs_annotator.judging.evaluate.agreement import Resampling
from pcs_annotator.judging.evaluate.held_out_figures import MEDIAN, compare_numbers, numbers_against_gold
from pcs_annotator.judging.fit_model import labelled_rows
from pcs_annotator.judging.heldout import Splits, run_trial
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.judging.metrics.significance import WIDENING
from pcs_annotator.judging.optimisers.simple import Distance
from pcs_annotator.reviewing.book_review import BookReview
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import Given
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.opened import Run
from pcs_annotator.studies.estimating.answering import estimate_all
from pcs_annotator.studies.estimating.answers import EstimateQuestion
from pcs_annotator.studies.finishing import Terms, finish
from pcs_annotator.verbs.fit import open_run
from tests.builders import the
from tests.made_once import made_once
from tests.simulated import copy_run, few_resamples, read_csv, write_csv
from tests.stub.behaviour import pick

QUICK: Any = {"relations": ["original", "wording"], "text": False, "kind": "number", "labels": ["0..100"]}


def guess(number: int, most: int) -> Callable[[str], str]:
    """Return a model that is off by up to so much, in either direction."""

    def answers(question: str) -> str:
        row, age = re.findall(r"Person (\d+) is (\d+)", question)[-1]
        said = int(age) + pick(2 * most + 1, row, str(number)) - most
        return f"<label>{min(max(said, 0), 100)} years</label>"

    answers.__name__ = f"guess_{number}"
    return answers


def people(path: Path, rows: int = 160, gold: int = 120) -> Path:
    found = []
    for row in range(rows):
        age = 10 + pick(80, "age", str(row))
        text = f"Person {row} is {age} years old."
        found.append({"id": f"p{row}", "text": text, "gold": str(age) if row < gold else ""})
    return write_csv(path, found)


def make_numbers(folder: Path) -> None:
    models = [guess(number, most) for number, most in enumerate((2, 5, 12))]
    how: Any = {"config": few_resamples(folder), "tolerance": 4, "max_error": 0.1, **QUICK}
    pcs.run(people(folder / "data.csv"), folder / "run", models=models, **how)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    return copy_run(made_once(tmp_path_factory, "numbers", make_numbers) / "run", tmp_path / "run")


def test_rows_without_a_number_have_none_in_a_naive_mean(tmp_path: Path) -> None:
    def sometimes(question: str) -> str:
        row = int(re.findall(r"Person (\d+)", question)[-1])
        return guess(0, 5)(question) if row % 2 else "I cannot tell."

    pcs.run(people(tmp_path / "data.csv"), tmp_path / "run", models=[sometimes], max_error=None, **QUICK)
    said = [float(row["pcs_label"]) for row in read_csv(tmp_path / "run" / "labels.csv") if row["pcs_label"]]
    found = pcs.estimate(tmp_path / "run")
    assert len(said) == 80
    assert found.lines[0].naive.value == pytest.approx(np.mean(said))
    assert "80 of 160 rows have no machine label: naive leaves them out" in found.notes


def test_a_run_finds_a_number_with_an_interval_and_a_promise(folder: Path) -> None:
    rows = read_csv(folder / "labels.csv")
    truth = [int(re.findall(r"is (\d+)", row["text"])[0]) for row in rows]
    inside = [float(row["pcs_low"]) <= age <= float(row["pcs_high"]) for row, age in zip(rows, truth, strict=True)]
    off = [abs(float(row["pcs_label"]) - age) for row, age in zip(rows, truth, strict=True)]
    assert sum(inside) >= 0.85 * len(rows)
    assert sum(off) < 2.5 * len(rows)
    assert all(0 <= float(row["pcs_confidence"]) <= 1 for row in rows)
    assert {row["pcs_decision"] for row in rows} <= {"accept", "review"}
    result = open_run(folder)
    weights = result.learned.model.weights.by_annotator
    assert list(weights.values()) == sorted(weights.values(), reverse=True)
    found = the(result.learned.against_gold)
    assert found.figures["error"].value < 2.5
    assert found.figures["correlation"].value > 0.98
    assert "off by more than 4" in (folder / "report.html").read_text()
    assert "Mean absolute error" in (folder / "report.html").read_text()


def test_new_texts_get_numbers_too(folder: Path, tmp_path: Path) -> None:
    models = [guess(number, most) for number, most in enumerate((2, 5, 12))]
    with pcs.load_run(folder, models=models) as run:
        one = run.label("Person 777 is 33 years old.")
        assert one.label is not None
        assert abs(float(one.label) - 33) < 8
        assert float(one.details["pcs_low"]) <= float(one.label) <= float(one.details["pcs_high"])
        table = run.label_table({"text": ["Person 778 is 71 years old."]})
    assert {"pcs_label", "pcs_confidence", "pcs_low", "pcs_high"} <= {*table.column_names}
    [mean] = pcs.estimate(folder).lines
    truth = [int(age) for age in re.findall(r"is (\d+) years", (folder / "labels.csv").read_text())]
    assert the(mean.corrected.interval).low <= sum(truth) / len(truth) <= the(mean.corrected.interval).high


def test_a_number_may_be_a_variable_of_a_codebook(tmp_path: Path) -> None:
    data = people(tmp_path / "data.csv", 60, 40)
    text = data.read_text().replace("gold", "age", 1)
    data.write_text(text)
    (tmp_path / "pcs.toml").write_text(
        '[variables.age]\nlabels = ["0..100"]\nkind = "number"\n[variables.tone]\nlabels = ["kind", "rude"]\n'
    )
    own = guess(0, 3)

    def both(question: str) -> str:
        said = "kind" if pick(2, question[-200:]) else "rude"
        return f"<label>{said}</label>" if "rude" in question else own(question)

    how: Any = {"models": [both], "relations": ["original", "order"], "text": False}
    pcs.run(data, tmp_path / "book", config=tmp_path / "pcs.toml", **how)
    rows = read_csv(tmp_path / "book" / "labels.csv")
    assert abs(float(rows[50]["pcs_age"]) - int(re.findall(r"is (\d+)", rows[50]["text"])[0])) <= 8
    assert {"pcs_age_low", "pcs_age_high", "pcs_age_confidence", "pcs_tone"} <= rows[0].keys()
    book = Book.open(tmp_path / "book")
    with BookReview.open(book) as review:
        page = str(form_view(review.show("p50", "ann"), Visit("ann", "doubtful")))
    assert re.search(r'<input[^>]*type="number"[^>]*name="age"[^>]*max="100"', page)
    estimates = estimate_all(tmp_path / "book", EstimateQuestion())
    assert [(one.kind, [line.name for line in one.lines]) for one in estimates.values()] == [("mean", ["age"])]


def test_the_review_page_has_a_field_for_the_number(folder: Path) -> None:
    with Review.open(folder) as review:
        shown = review.show("p130", "ann")
        page = str(item_view(shown, Visit("ann", "doubtful"), {}))
        assert re.search(r'<input[^>]*type="number"[^>]*name="label"', page)
        how: Any = {"queue": "chosen", "lease": shown.lease, "version": shown.version}
        given = Given(id="p130", label="44", reviewer="ann", **how)
        assert review.submit(given).label == "44"


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("<label>42</label>", "42"),
        ("I would say <label>about 41.6 years</label>", "42"),
        ('{"label": 17}', "17"),
        ("<think>20 or 30?</think> 25", "25"),
        ("<label>20-30</label>", None),
        ("<label>20 to 30</label>", None),
        ("<label>400</label>", None),
        ("<label>-3</label>", None),
        ("<label>unknown</label>", None),
        ("between 20 and 30", None),
        ("", None),
    ],
)
def test_a_reply_states_one_number_or_is_silent(reply: str, label: str | None) -> None:
    found = read_number(reply, steps_of(["0..100"]))
    assert found.label == label
    assert bool(found.reason) == (label is None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,200", 1200),
        ("1 200,5", 1200.5),
        ("1.200.000", 1200000),
        ("1,2,3", None),
        ("7.", 7),
        ("12.5", 12.5),
        ("3,5 %", 3.5),
        ("−7", -7),
        ("$1,250,000.75", 1250000.75),
        ("2.5 million euros", 2.5e6),
        ("1'000 CHF", 1000),
        ("7 (seven), so 7", 7),
        ("Covid-19 cases", None),
        ("5 of 10", None),
    ],
)
def test_thousands_decimals_and_units_are_read(text: str, value: float | None) -> None:
    assert number_in(text) == value


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"labels": []}, "a number needs its range"),
        ({"labels": ["few", "many"]}, "a number needs its range"),
        ({"labels": ["0..100000"]}, "too many"),
        ({"labels": ["0..1:0.3"]}, "no whole number of steps"),
        ({"labels": ["10..0"]}, "no whole number of steps"),
        ({"labels": ["0..20"]}, "row 2, column gold"),
        ({"relations": ["original", "order"]}, "is not chosen from a list"),
        ({"candidates": 5}, "candidates cannot be chosen"),
    ],
)
def test_what_cannot_be_done_with_numbers_is_said(given: dict[str, Any], says: str, tmp_path: Path) -> None:
    more = {**QUICK, "models": [guess(0, 1)], **given}
    candidates = more.pop("candidates", None)
    config = tmp_path / "pcs.toml"
    config.write_text("" if candidates is None else f"[task]\ncandidates = {candidates}\n")
    with pytest.raises((ConfigError, LabelError), match=says):
        pcs.run(people(tmp_path / "data.csv", 60, 60), tmp_path / "run", config=config, **more)


def test_labels_that_are_words_have_no_distance() -> None:
    with pytest.raises(LabelError, match="not numbers"):
        nearest_step(3, ("few", "many"))


def test_probabilities_are_not_asked_for_with_numbers(tmp_path: Path) -> None:
    models = [pcs.Annotator(guess(0, 1), elicitation="ling-1s"), guess(1, 2)]
    with pytest.raises(ConfigError, match="ask it for a label only"):
        pcs.run(people(tmp_path / "data.csv", 30, 20), tmp_path / "run", models=models, **QUICK)


def test_commands_say_how_far_numbers_are_off(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(folder)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "numbers are off by" in said
    assert "no better than one label" not in said
    assert main(["estimate", str(folder)]) == 0
    assert "Mean of the numbers" in " ".join(capsys.readouterr().out.split())


def test_methods_are_compared_by_how_far_numbers_are_off(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(folder), "--json", "--resamples", "50", "--out", str(folder / "tables")]) == 0
    told = json.loads(capsys.readouterr().out)
    methods = told["methods"]
    assert next(iter(methods)) == "auto"
    assert {*methods} == {"auto", MEDIAN, "guess_0", "guess_1", "guess_2"}
    errors = [one["error"]["value"] for one in methods.values()]
    assert errors[1:] == sorted(errors[1:])
    assert errors[0] < min(methods[name]["error"]["value"] for name in ("guess_1", "guess_2", MEDIAN))
    reported = the(open_run(folder).learned.against_gold)
    for name in ("error", "correlation"):
        assert methods["auto"][name]["value"] == pytest.approx(reported.figures[name].value)
    for one in methods.values():
        assert one["covered"]["value"] >= 0.84
        assert one["width"]["interval"][0] <= one["width"]["value"] <= one["width"]["interval"][1]
        assert one["error"]["n"] == 120
    assert methods["auto"]["covered"]["value"] <= 0.98
    assert methods["auto"]["width"]["value"] < methods["guess_2"]["width"]["value"]
    assert {Path(one).name for one in told["files"]} == {"numbers.md", "numbers.csv", "numbers.tex"}
    assert main(["evaluate", str(folder), "--resamples", "20"]) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 15
    assert max(map(len, shown.splitlines())) <= 80
    assert "auto is off by" in " ".join(shown.split())
    assert main(["evaluate", str(folder), "--methods", "lr,majority"]) == 2
    assert "compared with the models and their median" in " ".join(capsys.readouterr().err.split())


def test_numbers_need_gold_that_differs_to_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pcs.run(people(tmp_path / "data.csv", 20, 5), tmp_path / "run", models=[guess(0, 2)], **QUICK)
    assert main(["evaluate", str(tmp_path / "run")]) == 2
    assert "too little gold" in capsys.readouterr().err


def test_a_model_that_never_answers_is_left_out_of_the_comparison() -> None:
    labels, rng = steps_of(["0..20"]), np.random.default_rng(1)
    gold = rng.integers(3, 18, 60).astype(np.int16)
    codes = np.stack([gold + rng.integers(-2, 3, 60), gold, np.full(60, -1)], axis=1)[:, :, np.newaxis, np.newaxis]
    votes = pcs.Votes(
        codes=codes.astype(np.int16),
        ids=[f"{row:02}" for row in range(60)],
        annotators=["noisy", "right", "silent"],
        relations=["original"],
        labels=labels,
    )
    shape, splits = LabelShape.of("number", labels), Splits(calibration="number")
    rows, truth = labelled_rows(votes, gold)
    trial = the(run_trial(Distance(), rows, truth, splits, shape=shape))
    found = compare_numbers(rows, trial, splits, Resampling(20), "pcs")
    assert [*found] == ["pcs", "right", *[name for name in found if name in (MEDIAN, "noisy")]]
    assert found["right"]["error"].value == found["right"]["width"].value == 0
    same = trial._replace(gold=np.full_like(trial.gold, 5))
    assert not compare_numbers(rows, same, splits, Resampling(20), "pcs")


def test_few_gold_rows_and_silent_models_leave_the_median(tmp_path: Path) -> None:
    found = pcs.run(people(tmp_path / "data.csv", 20, 5), tmp_path / "run", models=[guess(0, 2), guess(1, 3)], **QUICK)
    assert all(one.confidence is None and one.label for one in found.outcomes)
    assert found.learned.against_gold is None


def test_numbers_without_variety_have_no_figures() -> None:
    how = Resampling(20)
    found = numbers_against_gold(np.array([3, -1]), np.array([3, 3]), ("0", "1", "2", "3"), how)
    assert not found.figures
    assert found.n == 2


@pytest.mark.parametrize("wild", [False, True])
def test_errors_follow_the_spread_of_the_answers_if_they_do(wild: bool) -> None:
    rng = np.random.default_rng(3)
    labels = steps_of(["0..200"])
    truth, hard = rng.integers(60, 140, 400), rng.choice([1.0, 15.0], 400)
    answers = np.clip(truth[:, None] + hard[:, None] * rng.normal(0, 1, (400, 5)), 0, 200).round().astype(int)
    answers[:, 4] = np.where(rng.random(400) < 0.3, rng.integers(0, 200, 400), answers[:, 4]) if wild else answers[:, 4]
    scores = np.stack([np.bincount(row, minlength=201) / 5 for row in answers])
    model = fit_numbers(scores, truth.astype(np.int16), labels)
    assert model.mean is not wild, "wild answers move a mean, not a median"
    found = model.distribution(scores, labels)
    assert found.sum(axis=1) == pytest.approx(1)
    spread = np.sqrt((found * np.arange(201) ** 2).sum(axis=1) - (found @ np.arange(201)) ** 2)
    assert spread[hard > 1].mean() > 2 * spread[hard <= 1].mean()
    again = Calibrator.from_dict(Calibrator(method="number", numbers=model).to_dict())
    assert np.array_equal(again.apply(scores, labels), found)


def test_finish_labels_with_the_run_s_model_of_numbers(folder: Path) -> None:
    finish(folder, 0.02, Terms(error="distance"))
    machine = json.loads((folder / "finish.json").read_text())["by_machine"]
    rows = {row["id"]: row for row in read_csv(folder / "labels.csv")}
    off = [abs(float(label) - int(re.findall(r"is (\d+)", rows[name]["text"])[0])) for name, label in machine.items()]
    assert len(off) > 20
    assert np.mean(off) < 2.5
    labels = Run.open(folder).votes.labels
    step = float(labels[1]) - float(labels[0])
    assert all(abs(float(label) - float(rows[name]["pcs_label"])) <= step for name, label in machine.items())


def test_intervals_of_numbers_are_as_wide_as_their_note_says() -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(50, size=200)
    given, labels = np.clip(gold + rng.integers(-5, 6, size=200), 0, 49), tuple(map(str, range(50)))
    found = [numbers_against_gold(given, gold, labels, Resampling(200, widening=by)).figures for by in (1.0, WIDENING)]
    for name in ("error", "mean_error"):
        plain, wide = (one[name].interval for one in found)
        assert (wide.high - wide.low) / (plain.high - plain.low) == pytest.approx(WIDENING)
    assert numbers_against_gold(given, gold, labels, Resampling(200)).figures == found[1]
