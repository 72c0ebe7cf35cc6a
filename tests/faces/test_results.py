"""What Python shows of results, and what they become: few lines, data frames, charts."""

import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from inspect import getattr_static
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pcs_annotator
from pcs_annotator import LoadedRun, PCSClassifier, RunResult
from pcs_annotator.base.display import MOST_ROWS
from pcs_annotator.base.errors import ConfigError, GoldError, MissingPackage, TableError
from pcs_annotator.faces import python
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.book_result import BookResult
from tests.simulated import simulated_models, simulated_run, write_texts

pytestmark = pytest.mark.system  # whole runs, one after the other

MODELS = ["simulated:large@85", "simulated:middle@75", "simulated:small@65"]
MOST_LINES, MOST_CHARACTERS = 20, 2_000


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the functions of the Python face return."""
    folder = tmp_path_factory.mktemp("results")
    data = write_texts(folder / "data.csv", range(240), 150)
    with simulated_models():
        result = pcs_annotator.run(
            data,
            folder / "run",
            models=MODELS,
            labels=["good", "bad"],
            relations=["original", "frame"],
            optimiser="lr",
            max_error=0.1,
        )
        labelled = pcs_annotator.label(write_texts(folder / "new.csv", range(300, 340)), folder / "run")
    loaded = pcs_annotator.load_run(folder / "run")
    votes, gold = result.votes, result.dataset.gold
    quick: Any = {"repeats": 1, "resamples": 20}
    return {
        "run": result,
        "book": BookResult(book=Book(folder, {}, {}), results={"mood": result}),
        "load_run": loaded,
        "label": labelled,
        "outcomes": loaded.outcomes(),
        "estimate": pcs_annotator.estimate(folder / "run"),
        "compare": pcs_annotator.compare(folder / "run", f":model={MODELS[0]}", **quick),
        "evaluate": pcs_annotator.evaluate(votes, gold, ["lr", "majority"], **quick),
        "relation_values": pcs_annotator.relation_values(votes, gold, **quick),
        "votes": votes,
        "classifier": PCSClassifier.from_run(folder / "run"),
    }


def parts(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield a value, and what of our own it is made of."""
    yield name, value
    if depth:
        names = [one.name for one in fields(value)] if is_dataclass(value) else list(getattr(value, "_fields", ()))
        names += [one for one in dir(type(value)) if isinstance(getattr_static(type(value), one), property)]
        for one in names:
            found = getattr(value, one, None)
            if type(found).__module__.startswith("pcs_annotator"):
                yield from parts(f"{name}.{one}", found, depth - 1)


def test_nothing_that_users_get_shows_more_than_twenty_lines(results: dict[str, Any]) -> None:
    functions = {name for name in pcs_annotator.__all__ if hasattr(python, name) and name[0].islower()}
    assert functions - {"aevaluate", "alabel", "arun"} <= {*results}  # the others are the same, awaited
    seen = {name: repr(value) for key, value in results.items() for name, value in parts(key, value, 3)}
    assert len(seen) > 60
    long = {name: len(text) for name, text in seen.items() if len(text) > MOST_CHARACTERS or text.count("\n") >= 20}
    assert long == {}


FRAMES = {
    "run": ["id", "text", "gold", "pcs_label", "pcs_confidence", "pcs_decision", "pcs_reason"],
    "load_run": ["id", "text", "gold", "pcs_label", "pcs_confidence", "pcs_decision", "pcs_reason"],
    "label": ["id", "text", "gold", "pcs_label", "pcs_confidence", "pcs_decision", "pcs_reason"],
    "outcomes": ["id", "label", "confidence", "decision", "reason", "score_good", "score_bad"],
    "estimate": ["what", "name", "group", "corrected", "corrected_low", "corrected_high"],
    "compare": ["id", "text", "a", "a_confidence", "b", "b_confidence", "gold"],
    "evaluate": ["method", "calls_per_text", "accuracy", "accuracy_low", "accuracy_high"],
    "relation_values": ["relation", "covered", "calls_per_text", "per_question"],
}
ROWS = {"label": 40, "estimate": 2, "evaluate": 3, "relation_values": 1}


@pytest.mark.parametrize("name", FRAMES)
def test_results_become_data_frames(name: str, results: dict[str, Any]) -> None:
    pandas, polars = results[name].to_pandas(), results[name].to_polars()
    wanted = FRAMES[name]
    assert list(pandas.columns)[: len(wanted)] == wanted
    assert polars.columns == list(pandas.columns)
    assert len(pandas) == len(polars) == ROWS.get(name, 240)


def test_the_rows_of_a_run_are_those_of_its_file_of_labels(results: dict[str, Any]) -> None:
    run: RunResult = results["run"]
    frame = run.to_polars()
    assert frame.columns == pl.read_csv(run.folder.labels).columns
    assert frame["pcs_label"].to_list() == [one.label for one in run.outcomes]
    assert frame["pcs_confidence"].to_list() == pytest.approx([one.confidence for one in run.outcomes], abs=1e-6)
    assert (frame["gold"] != "").sum() == 150


def test_a_long_result_shows_its_first_rows_and_how_to_get_the_others(results: dict[str, Any]) -> None:
    shown = repr(results["compare"])
    assert shown.count("\n") == MOST_ROWS + 2
    assert shown.splitlines()[-1] == "… 230 more rows: to_pandas(), to_polars()"
    assert max(map(len, shown.splitlines()[1:])) <= 100
    assert "more rows" not in repr(results["estimate"])
    assert "<table" in results["compare"]._repr_html_()
    assert "the first of 240" in results["compare"]._repr_html_()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(package: str, results: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=f"pip install {package}"):
        getattr(results["run"], f"to_{package}")()


@pytest.mark.parametrize("kind", ["risk", "calibration", "roc", "confusion"])
def test_a_run_draws_its_charts(kind: str, results: dict[str, Any], tmp_path: Path) -> None:
    chart = results["run"].plot(kind)
    assert chart._repr_html_().startswith("<svg")
    assert chart.save(tmp_path / "chart.svg").read_text(encoding="utf-8") == chart.svg
    loaded: LoadedRun = results["load_run"]
    assert loaded.plot(kind) == chart
    with pytest.raises(TableError, match=r"\.svg"):
        chart.save(tmp_path / "chart.png")


def test_the_confusion_chart_has_every_count(results: dict[str, Any]) -> None:
    found = results["run"].learned.against_gold
    svg = results["run"].plot("confusion").svg
    assert all(f">{int(times):,} (" in svg for times in found.table[:-1].ravel())
    right = int(found.table[0, 0] + found.table[1, 1])
    assert f"{right} of 150 gold rows got their gold label" in svg


def test_a_chart_that_cannot_be_drawn_says_why(results: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no chart 'risks'; there are risk, calibration, roc and confusion"):
        results["run"].plot("risks")
    without = simulated_run(tmp_path, rows=12, gold_rows=0)
    with pytest.raises(ConfigError, match="load_run"):
        without.plot()
    for kind in ("risk", "confusion"):
        with pytest.raises(GoldError, match=f"no chart of {kind}.*pcs review"):
            pcs_annotator.load_run(without.folder.path).plot(kind)


def test_a_classifier_from_a_run_pays_for_nothing_that_the_run_has_paid_for(tmp_path: Path) -> None:
    run = simulated_run(tmp_path, rows=40, gold_rows=40)
    classifier = PCSClassifier.from_run(run.folder.path)
    texts = [item.text for item in run.dataset.items]
    with simulated_models():
        classifier.fit(texts, run.dataset.gold)
        assert classifier.settings is not None
        assert classifier.settings.tally.calls == 0
        assert list(classifier.classes_) == ["bad", "good"]
        other = PCSClassifier.from_run(run.folder.path, optimiser="uniform", ledger=tmp_path / "other.db")
        assert other.optimiser == "uniform"
        other.fit(texts[:2], run.dataset.gold[:2])
    assert other.settings is not None
    assert other.settings.tally.calls == 2 * len(MODELS) * 2
