import gzip
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import fsspec
import numpy as np
import pyarrow as pa
import pytest

from pcs_annotator import PcsWarning, load_run
from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.runs import run_table
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Config, LearnSettings, Saving
from pcs_annotator.tables.find import table_place
from pcs_annotator.verbs.fit import fit_run
from pcs_annotator.verbs.label import Labelled, default_out
from tests.builders import the
from tests.simulated import (
    MODELS,
    audited,
    copy_run,
    label,
    read_csv,
    simulated_models,
    simulated_run,
    truth_of,
    write_texts,
)

pytestmark = pytest.mark.system

NEW = range(1000, 1100)
PRICES = {MODELS[0]: [10.0, 10.0], MODELS[1]: [1.0, 1.0], MODELS[2]: [1.0, 1.0]}


@pytest.fixture
def folder(promising_run: Path, tmp_path: Path) -> Iterator[Path]:
    """A run whose promise holds, with its models at hand."""
    copy_run(promising_run, tmp_path / "run")
    with simulated_models():
        yield tmp_path / "run"


@pytest.fixture(scope="module")
def revoked(promising_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose promise an audit revokes."""
    folder = tmp_path_factory.mktemp("revoked") / "run"
    copy_run(promising_run, folder)
    audited(folder, lambda place: False, rows=40)
    fit_run(folder)
    return folder


def request(folder: Path, rows: Sequence[int] = NEW, truths: Sequence[str] = ()) -> RunRequest:
    data = write_texts(folder.parent / "new.csv", rows, truths=truths)
    return RunRequest(data=data, folder=folder, config=Config())


def labelled(folder: Path, **saving: object) -> Labelled:
    (folder / "ledger.db").unlink(missing_ok=True)
    (folder.parent / "out.csv").unlink(missing_ok=True)
    return label(request(folder), folder.parent / "out.csv", Saving(**saving))  # type: ignore[arg-type]  # some of many


def labels_of(found: Labelled) -> list[str | None]:
    return [outcome.label for outcome in found.outcomes]


def test_labels_are_those_of_asking_everything_for_fewer_calls(folder: Path) -> None:
    everything, fewer = labelled(folder, ask="all"), labelled(folder)
    assert labels_of(fewer) == labels_of(everything)
    assert everything.tally.calls == 6 * len(NEW)
    assert fewer.tally.calls < 0.8 * everything.tally.calls
    assert fewer.tally.calls == fewer.tally.questions
    assert fewer.tally.spared == everything.tally.calls - fewer.tally.calls
    assert (everything.frugal is None, fewer.frugal is None) == (True, False)
    assert [row["pcs_label"] for row in read_csv(folder.parent / "out.csv")] == labels_of(fewer)


@pytest.mark.parametrize(("optimiser", "graded"), [("lr", MODELS[:1]), ("auto", MODELS)])
def test_graded_answers_give_the_labels_of_asking_everything(
    optimiser: str, graded: Sequence[str], tmp_path: Path
) -> None:
    learn = LearnSettings(optimiser=optimiser, folds=3, resamples=0, max_error=0.1)
    simulated_run(tmp_path, rows=120, gold_rows=100, learn=learn, graded=graded)
    with simulated_models(graded):
        everything, fewer = labelled(tmp_path / "run", ask="all"), labelled(tmp_path / "run")
    assert labels_of(fewer) == labels_of(everything)
    assert fewer.tally.calls <= everything.tally.calls
    for found in (everything, fewer):
        asked = found.votes.codes >= 0
        given = np.isin(found.votes.annotators, graded)[:, np.newaxis, np.newaxis]
        np.testing.assert_array_equal(~np.isnan(the(found.votes.grades)[..., 0]), asked & given)
        assert all(one.confidence is not None for one in found.outcomes)


def test_models_that_learned_to_grade_since_the_run_are_asked_as_they_were(folder: Path) -> None:
    before = labelled(folder)
    with simulated_models(graded=MODELS):
        after = labelled(folder)
    assert after.votes.grades is None
    assert labels_of(after) == labels_of(before)


def test_both_ways_the_promise_is_about_the_new_texts(folder: Path) -> None:
    for found in (labelled(folder, ask="all"), labelled(folder)):
        certificate = the(found.model.certificate)
        assert certificate.holds
        accepted = [outcome for outcome in found.outcomes if outcome.decision == "accept"]
        assert certificate.review_rows == len(NEW) - len(accepted)
        wrong = [outcome for outcome in accepted if outcome.label != truth_of(int(outcome.id[1:]))]
        assert len(wrong) <= 0.1 * len(accepted)


def test_labelling_with_fewer_questions_is_a_test_of_its_own_that_is_made_once(folder: Path) -> None:
    fit_run(folder)
    path = folder / "levels.json"
    known = json.loads(path.read_text())
    known["label"]["tests"][0]["used"] = 0.05
    path.write_text(json.dumps(known))
    for _ in range(2):
        found = the(labelled(folder).model.certificate)
        assert [found.spent, found.level] == pytest.approx([0.05, 0.1 / 6])
        assert [test["claim"] for test in json.loads(path.read_text())["label"]["tests"]] == ["promise", "promise"]
    assert labelled(folder, ask="all").model.certificate is not None
    assert len(json.loads(path.read_text())["label"]["tests"]) == 2


def test_calls_are_limited_and_paid_answers_are_kept(folder: Path) -> None:
    short = labelled(folder, max_calls=50)
    assert short.tally.calls == 50
    assert short.tally.failed["budget reached"]
    rest = label(request(folder), None)
    assert rest.tally.from_ledger == 50
    assert rest.unlabelled == 0
    assert labels_of(rest) == labels_of(labelled(folder, ask="all"))


def test_dollars_are_limited_where_prices_are_known(folder: Path) -> None:
    with pytest.raises(ConfigError, match="price of simulated:large@85"):
        labelled(folder, budget_usd=0.1)


@pytest.mark.parametrize("ask", ["all", "needed"])
def test_a_promise_made_by_another_version_does_not_hold_for_new_texts(
    ask: Literal["all", "needed"], folder: Path
) -> None:
    model = json.loads((folder / "variables/label/model.json").read_text())
    model["certificate"]["fingerprint"]["version"] = "0.0.0"
    (folder / "variables/label/model.json").write_text(json.dumps(model))
    found = labelled(folder, ask=ask)
    assert the(found.model.certificate).why_not.startswith("version changed")
    assert {outcome.decision for outcome in found.outcomes} == {"review"}


@pytest.mark.parametrize("saving", [{"ask": "all"}, {}])
def test_a_revoked_promise_does_not_hold_for_new_texts_either(
    saving: dict[str, object], revoked: Path, tmp_path: Path
) -> None:
    shutil.copytree(revoked, tmp_path / "run")
    with simulated_models():
        found = labelled(tmp_path / "run", **saving)
    assert not the(found.model.certificate).holds
    assert {outcome.decision for outcome in found.outcomes} == {"review"}


@pytest.mark.parametrize("ask", ["all", "needed"])
def test_nothing_is_accepted_of_texts_of_another_kind_unless_that_is_wanted(
    ask: Literal["all", "needed"], folder: Path
) -> None:
    shifted = request(folder, range(2000, 2150), ["good"] * 150)
    with pytest.warns(PcsWarning, match="^these texts differ from the gold rows the promise was made on: .*for review"):
        found = label(shifted, folder.parent / "others.csv", Saving(ask=ask))
    assert found.counts.decisions == {"review": 150}
    assert all(one.reason.startswith("these texts differ from the gold rows") for one in found.outcomes)
    assert the(found.model.certificate).review_rows == 150
    with pytest.warns(PcsWarning, match="may not hold for them"):
        wanted = label(shifted, folder.parent / "wanted.csv", Saving(ask=ask, on_drift="accept"))
    assert wanted.counts.decisions["accept"] > 50
    with pytest.raises(ConfigError, match="on_drift is 'never', must be one of 'review', 'accept'"):
        Saving(on_drift="never")  # type: ignore[arg-type]  # what a type checker refuses too


def test_nothing_is_accepted_of_a_large_table_of_another_kind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_table, "IN_MEMORY_ROWS", 50)
    out = folder.parent / "others.csv"
    shifted = request(folder, range(2000, 2150), ["good"] * 150)
    with pytest.warns(PcsWarning, match="^these texts differ from the gold rows the promise was made on: .*for review"):
        found = label(shifted, out)
    assert found.counts.decisions == {"review": 150}
    rows = read_csv(out)
    assert {row["pcs_decision"] for row in rows} == {"review"}
    assert all(row["pcs_reason"].startswith("these texts differ from the gold rows") for row in rows)


def test_a_run_that_programs_call_accepts_nothing_from_the_alarm_on(folder: Path) -> None:
    rows = read_csv(write_texts(folder.parent / "new.csv", range(2000, 2300), truths=["good"] * 300))
    table = pa.table({"id": [row["id"] for row in rows], "text": [row["text"] for row in rows]})
    with load_run(folder) as loaded, pytest.warns(PcsWarning, match="^these texts differ from the gold rows"):
        _, after = loaded.label_table(table), loaded.label_table(table)
    assert set(after["pcs_decision"].to_pylist()) == {"review"}


def test_without_gold_everything_is_asked_and_nothing_is_accepted(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=40, gold_rows=0)
    with simulated_models():
        found = labelled(tmp_path / "run")
    assert found.frugal is None
    assert found.tally.calls == 6 * len(NEW)
    assert {outcome.decision for outcome in found.outcomes} == {"agree", "review"}
    assert found.model.decided_by == "agreement"
    assert all(outcome.reason.startswith("uncalibrated") for outcome in found.outcomes)


def test_a_file_that_exists_is_not_overwritten_and_nothing_is_asked(folder: Path) -> None:
    out = folder.parent / "out.csv"
    label(request(folder, range(1000, 1010)), out)
    before = out.read_bytes()
    calls = (folder / "ledger.db").stat().st_mtime_ns
    with pytest.raises(TableError, match=r"out\.csv exists: .*--replace"):
        label(request(folder, range(1000, 1020)), out)
    assert out.read_bytes() == before
    assert (folder / "ledger.db").stat().st_mtime_ns == calls
    said: list[str] = []
    label(replace(request(folder, range(1000, 1020)), limit=5, replace=True, say=said.append), out)
    assert len(read_csv(out)) == 5
    (kept,) = folder.parent.glob("out-20*.csv")
    assert said == [f"{out} is kept as {kept}"]
    assert kept.read_bytes() == before


def test_texts_may_be_at_an_address(folder: Path, tmp_path: Path) -> None:
    system = fsspec.filesystem("memory")
    asked = request(folder, range(1000, 1020))
    system.pipe("/bucket/new.csv", Path(asked.data).read_bytes())
    asked = replace(asked, data="memory://bucket/new.csv")
    out = tmp_path / "out.jsonl.gz"
    assert len(labels_of(label(asked, out))) == 20
    rows = [json.loads(line) for line in gzip.decompress(out.read_bytes()).splitlines()]
    assert [row["pcs_label"] for row in rows] == labels_of(label(asked, None))
    system.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    ("data", "out"),
    [
        ("a/news.test.csv.gz", "a/news.test-labels.csv"),
        ("news.jsonl.zst", "news-labels.csv"),
        (".x", ".x-labels.csv"),
        ("a/parts/*.parquet", "a/parts-labels.csv"),
        ("a/parts/**/part-?.csv", "a/parts-labels.csv"),
        ("*.csv", "tables-labels.csv"),
        ("s3://bucket/a/news.parquet", "news-labels.csv"),
        ("s3://bucket/a/*.parquet", "a-labels.csv"),
    ],
)
def test_labels_are_written_beside_the_texts_under_their_whole_name(data: str, out: str) -> None:
    assert default_out(table_place(data)) == Path(out)


@pytest.mark.parametrize("name", ["out.ods", "out.doc", "out.parquet.gz"])
def test_a_kind_of_file_that_is_not_written_is_refused_before_any_call(name: str, folder: Path) -> None:
    with pytest.raises(TableError, match=rf"{name} cannot be written: use \.csv or \.tsv or \.jsonl or \.parquet"):
        label(request(folder), folder.parent / name)
    assert not (folder.parent / name).exists()
