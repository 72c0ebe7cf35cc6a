"""A run folder knows its data: other work in it is refused, or sets the old results aside."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import PcsWarning, RunResult
from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.events import FiledLabel
from pcs_annotator.faces import python as public
from pcs_annotator.runs.draw_registry import events_of
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest, default_folder
from pcs_annotator.runs.settings import AskSettings, Config, LearnSettings, RelationSettings, TaskSettings
from pcs_annotator.verbs.fit import fit_run, open_run
from tests.simulated import MODELS, read_csv, run, simulated_models, truth_of, write_csv, write_texts

pytestmark = pytest.mark.system  # whole runs, one after the other

QUICK = LearnSettings(optimiser="uniform", folds=3, resamples=0, max_error=None)
CONFIG = Config(
    task=TaskSettings(labels=("good", "bad")),
    ask=AskSettings(models=MODELS[:1]),
    relations=RelationSettings(use=("original",)),
    learn=QUICK,
)


@pytest.fixture(autouse=True)
def models() -> Iterator[None]:
    with simulated_models():
        yield


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "data.csv", range(20), gold_rows=8)  # too few to calibrate, which is quick


def made(data: Path, config: Config = CONFIG, **more: Any) -> RunResult:
    return run(RunRequest(data=data, folder=data.parent / "run", config=config, **more))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def renumbered(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Other texts under the same ids."""
    return [{**row, "text": row["text"].replace("Case", "Matter")} for row in rows]


OTHER = {
    "other texts": (renumbered, {}, CONFIG, r"20 of 20 rows have another text in data\.csv \('t0', .*10 more"),
    "fewer rows": (lambda rows: rows[5:], {}, CONFIG, r"for 20 rows, and 5 of them are missing now \('t0', "),
    "a limit": (lambda rows: rows, {"limit": 8}, CONFIG, r"12 of them are missing.*-o, leave out --limit"),
    "labels": (
        lambda rows: rows,
        {},
        replace(CONFIG, task=TaskSettings(labels=("good", "bad", "ugly"))),
        r"with other labels \(good, bad\)",
    ),
    "instruction": (
        lambda rows: rows,
        {},
        replace(CONFIG, task=TaskSettings(labels=("good", "bad"), instruction="Is it any good?")),
        "of another instruction",
    ),
}


@pytest.mark.parametrize("kind", OTHER)
def test_other_work_in_the_same_folder_is_refused_before_anything_is_changed_or_asked(kind: str, data: Path) -> None:
    change, options, config, complaint = OTHER[kind]
    made(data)
    before = files_of(data.parent / "run")
    write_csv(data, change(read_csv(data)))
    with pytest.raises(ConfigError, match=rf"{complaint}.*--replace"):
        made(data, config, **options)
    assert files_of(data.parent / "run") == before


@pytest.mark.parametrize("kind", ["other texts", "a limit"])
def test_replace_keeps_results_and_gold_together_under_a_dated_name_and_the_ledger_in_place(
    kind: str, data: Path
) -> None:
    change, options, config, _ = OTHER[kind]
    folder = data.parent / "run"
    made(data)
    mine = write_csv(data.parent / "mine.csv", [{"id": "t15", "gold": "good"}])
    fit_run(folder, None, FromPeople(gold=mine))
    before = files_of(folder)
    write_csv(data, change(read_csv(data)))
    said: list[str] = []
    found = made(data, config, replace=True, say=said.append, **options)
    (kept,) = folder.glob("earlier-20*")
    assert said == [f"the old results are kept in {kept}"]
    stays = ("ledger", "status")
    assert files_of(kept) == {name: content for name, content in before.items() if not name.startswith(stays)}
    assert {"labels.csv", "book.json", "draws.jsonl"} <= set(files_of(kept))
    assert sum(label is not None for label in found.dataset.gold) == 8
    assert found.tally.from_ledger == (0 if kind == "other texts" else 8)
    assert made(data, config, replace=True, **options).tally.calls == 0
    assert len(list(folder.glob("earlier-*"))) == 1


def test_rows_may_be_added_moved_and_get_gold_and_spreadsheets_may_change_line_ends(data: Path) -> None:
    first = read_csv(write_csv(data, [{**row, "text": f"{row['text']}\nIndeed. "} for row in read_csv(data)]))
    made(data)
    rows = [{**row, "text": row["text"].replace("\n", "\r\n").strip(), "gold": "good"} for row in reversed(first)]
    write_csv(data, [*rows, {"id": "new", "text": "Case 99 looks bad.", "gold": ""}])
    found = made(data)
    assert len(found.outcomes) == 21


def test_other_models_relations_and_settings_are_no_other_work(data: Path) -> None:
    made(data)
    config = replace(CONFIG, ask=AskSettings(models=MODELS), relations=RelationSettings(use=("original", "frame")))
    assert made(data, replace(config, learn=replace(QUICK, max_error=0.2))).tally.from_ledger == 20


def test_what_was_interrupted_before_it_had_results_may_be_something_else(data: Path) -> None:
    made(data)
    for name in ("labels.csv", "variables/label/model.json"):
        (data.parent / "run" / name).unlink()
    assert len(made(data, limit=5).outcomes) == 5


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("news.csv", "news"),
        ("news.train.csv", "news.train"),
        ("news.test.csv.gz", "news.test"),
        ("v1.2.PARQUET", "v1.2"),
        (".news.csv", ".news"),
        (".csv", ".csv"),
        ("fakenewsnet:somebody/set.v2", "set.v2"),
    ],
)
def test_the_default_folder_has_the_whole_name_of_the_file(name: str, folder: str) -> None:
    assert default_folder(Path("data") / name) == Path("runs") / folder


def test_gold_belongs_to_a_text(data: Path) -> None:
    """Labels of people are not used for another text under the same id."""
    folder = data.parent / "run"
    made(data)
    mine = write_csv(data.parent / "mine.csv", [{"id": f"t{row}", "gold": "good"} for row in (13, 14, 15)])
    fit_run(folder, None, FromPeople(gold=mine))
    (folder / "labels.csv").unlink()
    log = (folder / "draws.jsonl").read_bytes()
    rows = read_csv(data)
    write_csv(data, [*rows[:14], *renumbered(rows[14:])])
    (folder / "draws.jsonl").unlink()  # without results and gold, the folder may be used for other data
    made(data)
    (folder / "draws.jsonl").write_bytes(log)
    with pytest.warns(match=r"draws\.jsonl: labels given for other texts are not used: 2 \('t14', 't15'\)"):
        found = fit_run(folder)
    assert list(found.dataset.gold[12:]) == [None, "good", *[None] * 6]


def test_a_file_filled_in_for_other_texts_is_not_used_for_these(data: Path) -> None:
    folder = data.parent / "run"
    made(data)
    rows = [{**row, "gold": "good"} for row in read_csv(folder / "to_label.csv")]
    mine = data.parent / "mine.csv"
    rows[0]["text"] = rows[0]["text"].replace(" ", "\r\n") + " "
    write_csv(mine, [rows[0], *renumbered(rows[1:])])
    with pytest.warns(match=rf"mine\.csv: labels given for other texts.*{len(rows) - 1} \("):
        found = fit_run(folder, None, FromPeople(gold=mine))
    assert sum(label is not None for label in found.dataset.gold) == 9
    with pytest.raises(GoldError, match=r"mine\.csv: all .* other texts"):
        fit_run(folder, None, FromPeople(gold=write_csv(mine, renumbered(rows))))


def other(label: str) -> str:
    return {"good": "bad", "bad": "good"}[label]


def test_equal_texts_with_different_gold_are_listed_and_accepted_on_request(data: Path) -> None:
    rows = [{**row, "gold": truth_of(place)} for place, row in enumerate(read_csv(data))]
    twins = [{**row, "id": f"twin {row['id']}", "gold": other(row["gold"])} for row in rows[:12]]
    write_csv(data, [*rows, *twins])
    with pytest.raises(GoldError) as refused:
        made(data)
    message = str(refused.value)
    assert re.match(r"data\.csv, rows 2 and 22 have the same text but the gold labels '\w+' and '\w+'", message)
    assert "rows 3 and 23, 4 and 24, " in message
    assert ", and 1 more (24 rows in all)" in message
    assert "--gold-wins" in message
    assert not (data.parent / "run" / "ledger.db").exists()
    found = made(data, gold_wins=True)
    assert [found.dataset.gold[row] for row in (0, 20)] == [rows[0]["gold"], other(rows[0]["gold"])]
    assert "these 24 rows are not learned from: 't0', " in found.learned.model.weights.diagnostics.flags[-1].detail
    assert found.learned.model.weights.diagnostics.gold_rows == 8


def test_gold_of_people_that_differs_from_that_of_the_data_is_refused_or_wins(data: Path) -> None:
    folder = data.parent / "run"
    made(data)
    mine = write_csv(data.parent / "mine.csv", [{"id": f"t{row}", "gold": other(truth_of(row))} for row in (0, 5, 15)])
    pair = f"'t0' ('{other(truth_of(0))}', '{truth_of(0)}')"
    with pytest.raises(
        GoldError, match=re.escape(f"mine.csv and data.csv give different gold labels to 2 rows: {pair}")
    ):
        fit_run(folder, None, FromPeople(gold=mine))
    assert events_of(RunFolder(folder), FiledLabel) == []
    accepted = fit_run(folder, None, FromPeople(gold=mine, gold_wins=True))
    assert accepted.dataset.gold[0] == fit_run(folder).dataset.gold[0] == other(truth_of(0))
    # what was accepted once does not stop other labels
    fit_run(folder, None, FromPeople(gold=write_csv(mine, [{"id": "t16", "gold": "good"}])))
    with pytest.raises(GoldError, match=r"draws\.jsonl and data\.csv give different gold labels to 2 rows"):
        made(data)
    assert made(data, gold_wins=True).dataset.gold[0] == other(truth_of(0))


def test_a_file_that_labels_a_row_twice_differently_is_refused(data: Path) -> None:
    made(data)
    rows = [{"id": "t15", "gold": "good"}, {"id": "t15", "gold": "GOOD"}, {"id": "t15", "gold": "bad"}]
    people = FromPeople(gold=write_csv(data.parent / "mine.csv", rows))
    with pytest.raises(GoldError, match=r"mine\.csv, rows 3 and 4 give 't15' the gold labels 'good' and 'bad'"):
        fit_run(data.parent / "run", None, people)
    assert fit_run(data.parent / "run", None, replace(people, gold_wins=True)).dataset.gold[15] == "bad"


def test_settings_of_the_last_fit_are_kept_by_the_next_runs_unless_given_anew(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    folder = data.parent / "run"
    made(data)
    fit_run(folder, {"max_error": 0.2, "resamples": 0})

    def learned(**given: Any) -> LearnSettings:
        found = public.run(data, folder, models=MODELS[:1], labels=["good", "bad"], optimiser="uniform", **given)
        assert found.config.learn == open_run(folder).config.learn
        return found.config.learn

    for _ in range(2):
        with pytest.warns(match=r"as in the last pcs fit of .*run: max_error = 0\.2, resamples = 0"):
            assert learned().max_error == 0.2
    Path("pcs.toml").write_text("[learn]\nfolds = 4\n")
    with pytest.warns(match=r"as in the last pcs fit"):
        assert (learned(config="pcs.toml").max_error, learned(config="pcs.toml").folds) == (0.2, 4)
    Path("pcs.toml").write_text("[learn]\nmax_error = 0.3\n")
    with pytest.warns(match=r"run: resamples = 0; pcs"):
        assert learned(config="pcs.toml").max_error == 0.3
    with pytest.warns(match=r"run: resamples = 0; pcs"):  # what a file or an option overrode is not kept any longer
        assert (learned().max_error, learned(max_error=0.1).max_error) == (0.05, 0.1)


def test_what_a_person_filled_in_is_not_overwritten_before_it_was_read(data: Path) -> None:
    folder = data.parent / "run"
    made(data)
    rows = [{**row, "gold": "good"} for row in read_csv(folder / "to_label.csv")]
    write_csv(folder / "to_label.csv", rows)
    with pytest.warns(match=r"to_label\.csv was filled in but not read: it is kept as to_label-20.*\.csv"):
        made(data)
    (kept,) = folder.glob("to_label-20*.csv")
    assert read_csv(kept) == rows
    fit_run(folder, None, FromPeople(gold=kept))
    write_csv(folder / "to_label.csv", rows)  # now its labels are known
    fit_run(folder)
    assert len(list(folder.glob("to_label-20*.csv"))) == 1
    (folder / "to_label.csv").write_text("id,text\n")
    with pytest.warns(match=r"to_label\.csv was filled in"):
        fit_run(folder)


def test_a_bug_in_the_report_loses_nothing_of_the_run(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(result: RunResult) -> str:
        raise IndexError("list index out of range")

    monkeypatch.setattr("pcs_annotator.showing.report.page.render", broken)
    with pytest.warns(PcsWarning, match=r"no report, because of a bug in pcs \(IndexError in test_run\.py, line \d+\)"):
        result = made(data)
    assert len(read_csv(result.folder.labels)) == 20
    assert not result.folder.report.exists()
