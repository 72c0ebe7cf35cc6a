from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.core.events import FiledLabel
from pcs_annotator.core.identity import text_hash
from pcs_annotator.runs.draw_registry import append_events
from pcs_annotator.runs.drawing import MOST_ROWS_TO_LABEL
from pcs_annotator.runs.gold_labels import FromPeople, gold_of
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import LearnSettings
from pcs_annotator.tables.chunks import Columns, read_source
from pcs_annotator.verbs.fit import fit_run
from tests.builders import the
from tests.simulated import (
    QUICK,
    read_csv,
    run,
    simulated_config,
    simulated_models,
    simulated_run,
    truth_of,
    write_csv,
    write_texts,
)

pytestmark = pytest.mark.system  # whole runs, one after the other


def labelled(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{**row, "gold": truth_of(int(row["id"].removeprefix("t")))} for row in rows]


def chosen_otherwise(folder: Path) -> None:
    """Make a folder say that its rows were chosen for review, not at random."""
    drawn = folder / "draws.jsonl"
    drawn.write_text(drawn.read_text(encoding="utf-8").replace("at random", "for review"), encoding="utf-8")


def test_without_gold_random_rows_are_written(tmp_path: Path) -> None:
    result = simulated_run(tmp_path, rows=150, gold_rows=0)
    rows = read_csv(tmp_path / "run" / "to_label.csv")
    assert (the(result.to_label).rows, the(result.to_label).kind) == (30, "at random")
    assert {row["drawn"] for row in rows} == {"at random"}
    assert {row["gold"] for row in rows} == {""}
    assert len({row["id"] for row in rows}) == 30
    assert all(row["text"].startswith(f"Case {row['id'].removeprefix('t')} looks") for row in rows)


@pytest.mark.parametrize(("gold_rows", "kind"), [(0, "at random"), (30, "at random"), (100, "for review")])
def test_rows_to_label_have_each_text_once_and_none_that_has_gold(gold_rows: int, kind: str, tmp_path: Path) -> None:
    data = read_csv(write_texts(tmp_path / "data.csv", range(120), gold_rows))
    copies = [{"id": f"copy{row['id']}", "text": row["text"].upper(), "gold": ""} for row in data]
    config = simulated_config(replace(QUICK, max_error=None) if kind == "at random" else QUICK)
    request = RunRequest(
        data=write_csv(tmp_path / "twice.csv", [*data, *copies]), folder=tmp_path / "run", config=config, to_label=200
    )
    with simulated_models():
        result = run(request)
    rows = read_csv(tmp_path / "run" / "to_label.csv")
    assert result.to_label == (len(rows), kind)
    texts = [row["text"].casefold() for row in rows]
    assert len(set(texts)) == len(texts)
    assert not set(texts) & {row["text"].casefold() for row in data[:gold_rows]}
    if kind != "for review":
        assert len(rows) == 120 - gold_rows


def test_the_rows_of_a_run_without_gold_and_those_written_next_support_a_promise(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=150, gold_rows=0)
    folder = tmp_path / "run"
    given = write_csv(tmp_path / "given.csv", labelled(read_csv(folder / "to_label.csv")))
    taught = fit_run(folder, None, FromPeople(gold=given, to_label=60))
    certificate = the(taught.learned.model.certificate)
    assert (certificate.gold_rows, certificate.assumed_rows, certificate.holds) == (30, 0, False)
    assert (the(taught.to_label).rows, the(taught.to_label).kind) == (60, "at random")
    rows = read_csv(folder / "to_label.csv")
    assert not {row["id"] for row in rows} & {row["id"] for row in read_csv(given)}
    promised = fit_run(folder, None, FromPeople(gold=write_csv(given, labelled(rows))))
    certificate = the(promised.learned.model.certificate)
    assert (certificate.gold_rows, certificate.assumed_rows, certificate.holds) == (90, 0, True)


def test_with_a_promise_all_rows_left_for_review_are_written_the_least_certain_first(tmp_path: Path) -> None:
    result = simulated_run(tmp_path, rows=240, gold_rows=150)
    rows = read_csv(tmp_path / "run" / "to_label.csv")
    assert {row["drawn"] for row in rows} == {"for review"}
    by_id = {outcome.id: outcome for outcome in result.outcomes}
    wanted = {one.id for one in result.outcomes if one.decision == "review" and int(one.id[1:]) >= 150}
    assert {row["id"] for row in rows} == wanted
    confidence = [by_id[row["id"]].confidence or 0.0 for row in rows]
    assert confidence == sorted(confidence)


def test_nothing_left_for_review_leaves_no_file_behind(tmp_path: Path) -> None:
    simulated_run(
        tmp_path,
        rows=60,
        gold_rows=30,
        learn=LearnSettings(optimiser="lr", text=False, folds=3, resamples=5, max_error=0.05),
    )
    folder = tmp_path / "run"
    assert (folder / "to_label.csv").exists()
    everything = write_csv(tmp_path / "mine.csv", [{"id": f"t{row}", "gold": truth_of(row)} for row in range(60)])
    result = fit_run(folder, None, FromPeople(gold=everything))
    assert the(result.to_label).rows == 0
    assert not (folder / "to_label.csv").exists()


def test_as_many_random_rows_are_drawn_as_the_promise_probably_needs_up_to_a_limit(tmp_path: Path) -> None:
    result = simulated_run(
        tmp_path, rows=400, gold_rows=80, learn=LearnSettings(optimiser="lr", text=False, folds=3, resamples=5)
    )
    certificate = the(result.learned.model.certificate)
    assert the(result.to_label).kind == "at random"
    assert the(result.to_label).rows == min(max(30, the(certificate.rows_needed).likely - 80), MOST_ROWS_TO_LABEL)


def test_gold_of_rows_that_are_no_longer_in_the_run_is_ignored(tmp_path: Path) -> None:
    result = simulated_run(tmp_path, rows=20, gold_rows=0)
    rows = [
        {"id": "t500", "gold": "good", "drawn": "at random"},
        {"id": "t1", "gold": "good", "drawn": "for review"},
        {"id": "t2", "gold": "bad", "drawn": "for review"},
        {"id": "t3", "gold": "bad", "drawn": "at random"},
    ]
    texts = {item.id: item.text for item in result.dataset.items}
    for row in rows:
        hashed = text_hash(texts.get(row["id"], ""))
        label = FiledLabel(
            id=row["id"],
            text_hash=hashed,
            label=row["gold"],
            chosen="at random" if row["drawn"] == "at random" else "for review",
        )
        append_events(result.folder.draws, [label])
    gold = gold_of(result.folder, result.dataset)
    assert [label for label in gold.labels if label] == ["good", "bad", "bad"]
    assert np.flatnonzero(gold.random_sample).tolist() == [3]
    assert not gold.assumed.any()


def test_rows_count_as_drawn_at_random_only_if_we_drew_them(tmp_path: Path) -> None:
    """Whatever the file says: for rows that were chosen otherwise, rows that a person added, and whole files."""
    simulated_run(tmp_path, rows=60, gold_rows=20, learn=replace(QUICK, max_error=None))
    folder = tmp_path / "run"
    rows = labelled(read_csv(folder / "to_label.csv"))
    drawn = {row["id"] for row in rows}
    added = next(f"t{row}" for row in range(20, 60) if f"t{row}" not in drawn)
    rows.append({"id": added, "text": "", "gold": "good", "drawn": "at random"})
    rows[0]["drawn"] = ""  # a person need not know why we drew it, but then neither do we
    result = fit_run(folder, {"max_error": 0.1}, FromPeople(gold=write_csv(tmp_path / "given.csv", rows)))
    assert result.random_sample is not None
    assert result.assumed is not None
    at_random = result.random_sample & ~result.assumed
    counted = {result.dataset.items[row].id for row in np.flatnonzero(at_random)}
    assert drawn - {rows[0]["id"]} <= counted
    assert added not in counted
    certificate = the(result.learned.model.certificate)
    assert (certificate.gold_rows, certificate.assumed_rows) == (20 + len(counted), 20)


def test_such_rows_support_no_promise_even_if_their_labels_come_with_the_data(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=60, gold_rows=0)
    chosen_otherwise(tmp_path / "run")
    chosen = {row["id"] for row in read_csv(tmp_path / "run" / "to_label.csv")}
    data = tmp_path / "data.csv"
    rows = [{**row, "gold": truth_of(int(row["id"][1:]))} for row in read_csv(data)]
    write_csv(data, rows)
    gold = gold_of(simulated_run(tmp_path, rows=60, gold_rows=60).folder, read_source(data, Columns()))
    assert {row["id"] for place, row in enumerate(rows) if not gold.random_sample[place]} == chosen
    assert (gold.assumed == gold.random_sample).all()
