"""All rows of a run as arrays: the same as what a run says about every row, and quick to find."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.parquet import read_table, write_table

from pcs_annotator import PcsWarning
from pcs_annotator.base.errors import ConfigError, LabelError, TableError
from pcs_annotator.core.events import FiledLabel, Verdict
from pcs_annotator.core.identity import text_hash
from pcs_annotator.reviewing.run_rows import DECISIONS, Rows, asked_questions
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.draw_registry import append_events
from pcs_annotator.runs.settings import Config, RelationSettings, TaskSettings
from pcs_annotator.verbs.fit import fit_run, open_run
from tests.reviewing.reviewing import judge
from tests.simulated import simulated_models, simulated_run


def rows_of(run: Path) -> Rows:
    return Rows.read(run)


def with_columns(run: Path) -> Path:
    """Add columns of the user's own to the rows of a run."""
    table = read_table(run / "items.parquet")
    topics = pa.array([("Sport ", "money", None)[row % 3] for row in range(len(table))])
    table = table.append_column("topic", topics).append_column("likes", pa.array(np.arange(len(table)) % 5))
    write_table(table, run / "items.parquet")
    return run


def test_rows_say_what_the_run_says(run: Path) -> None:
    rows, result = rows_of(run), open_run(run)
    for place, expected in enumerate(result.outcomes):
        assert rows.outcome(place) == expected
        assert rows.text(place) == result.dataset.items[place].text
        assert DECISIONS[rows.judgement.decision[place]] == (expected.decision or "none")
        assert rows.labels[rows.judgement.label[place]] == expected.label
        assert rows.judgement.certainty[place] == expected.confidence
    gold = [None if code < 0 else rows.labels[code] for code in rows.gold]
    assert gold == list(result.dataset.gold)


@pytest.fixture
def coded(tmp_path: Path) -> Path:
    """Return a run with gold of two people, who differ on the first row."""
    simulated_run(tmp_path, rows=60, gold_rows=20, coders=("anna", "ben"))
    return tmp_path / "run"


def test_gold_of_several_coders_is_the_same_as_in_a_fit_and_no_column_to_show(coded: Path) -> None:
    rows, result = rows_of(coded), open_run(coded)
    gold = [None if code < 0 else rows.labels[code] for code in rows.data_gold]
    assert gold == list(result.dataset.gold)
    assert sum(label is not None for label in gold) == 19
    assert rows.gold.tolist() == rows.data_gold.tolist()
    assert rows.own_columns == []
    assert rows.columns(0) == {}


def test_random_verdicts_beside_gold_of_several_coders_support_a_promise(coded: Path) -> None:
    with Review.open(coded, ReviewOptions(refit_every=0, seed=1)) as review:
        assert review.progress("ann").queues["random"] == (0, 41)
        seen = [judge(review, "random", "good").id for _ in range(5)]
    verdicts = fit_run(coded).verdicts
    assert verdicts.counts["at_random"] == 5
    assert not {f"t{row}" for row in range(1, 20)} & set(seen)


def test_variants_of_every_row_are_shown_from_a_file_of_several_groups(run: Path) -> None:
    path = run / "variables/label/variants.parquet"
    table = read_table(path)
    write_table(table, path, row_group_size=7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pcs_annotator.tables.vote_files.ROWS_IN_MEMORY", 3)
        rows = rows_of(run)
        shown = [one.text for place in range(len(rows)) for one in rows.rewrites.of(place)]
    assert len(shown) == len(rows) == 60
    assert shown == table["text"].to_pylist()


def test_details_of_a_row(run: Path) -> None:
    rows = rows_of(with_columns(run))
    place = rows.place("t7")
    assert rows.columns(place) == {"topic": "money", "likes": "2"}
    assert rows.columns(2) == {"likes": "2"}
    [variant] = rows.rewrites.of(place)
    assert variant.relation == "frame"
    assert variant.text is not None
    assert rows.text(place).rstrip(".").lower() in variant.text.lower()
    assert "frame" not in rows.questions
    assert [(one.annotator, one.relation) for one in rows.votes_on(place)] == [
        (annotator, relation) for annotator in rows.run.votes.annotators for relation in ("original", "frame")
    ]


def test_questions_are_shown_as_they_were_asked() -> None:
    task = TaskSettings(labels=("good", "bad"), instruction="Is it good, bad?")
    use = ("original", "frame", "order", "layout", "wording", "no-longer-known")
    with pytest.warns(PcsWarning, match="what no-longer-known asked is not shown: .*no-longer-known"):
        found = asked_questions(Config(task=task, relations=RelationSettings(use=use)))
    assert sorted(found) == ["layout", "order", "wording"]
    assert "- bad\n- good" in found["order"]
    assert found["layout"].startswith("One message")
    assert "This is what has to be decided" in found["wording"]


def test_a_run_without_a_fit_has_equal_weights(run: Path) -> None:
    (run / "variables/label/model.json").unlink()
    rows = rows_of(run)
    assert not rows.judgement.fitted
    assert {DECISIONS[code] for code in rows.judgement.decision} <= {"agree", "review"}
    assert rows.outcome(0).confidence is None
    fit_run(run)
    assert rows.refitted().judgement.fitted


def test_labels_that_people_gave_in_a_file_are_gold(run: Path) -> None:
    rows = rows_of(run)
    same, other = rows.places["t30"], rows.places["t31"]
    filed = [
        FiledLabel(id="t30", label="Bad", text_hash=rows.text_hash(same)),
        FiledLabel(id="t31", label="bad", text_hash=text_hash("another text")),
        FiledLabel(id="gone", label="bad", text_hash="h"),
    ]
    append_events(run / "draws.jsonl", filed)
    with pytest.warns(PcsWarning, match=r"draws.jsonl: labels given for other texts are not used: 1 \('t31'\)"):
        rows = rows.refitted()
    assert rows.labels[rows.gold[same]] == "bad"
    assert rows.gold[other] == -1
    assert rows.data_gold[same] == -1


def damaged(run: Path) -> Path:
    (run / "items.parquet").write_bytes((run / "items.parquet").read_bytes()[:200])
    return run


def other_model(run: Path) -> Path:
    path = run / "variables/label/model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "labels": ["yes", "no"]}))
    return run


def other_gold(run: Path) -> Path:
    table = read_table(run / "items.parquet")
    write_table(table.set_column(2, "gold", pa.array(["ugly"] * len(table))), run / "items.parquet")
    return run


def without(*names: str) -> Callable[[Path], Path]:
    def remove(run: Path) -> Path:
        for name in names:
            (run / name).unlink()
        return run

    return remove


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (without("book.json"), ConfigError, "is not a run folder"),
        (without("items.parquet"), TableError, "has no items.parquet: repeat pcs run, which writes it"),
        (
            without("variables/label/votes.parquet", "ledger.db"),
            TableError,
            "has no answers yet: pcs run asks for them",
        ),
        (damaged, TableError, "cannot be read"),
        (other_model, TableError, r"was fitted with other labels \(yes, no\): pcs fit makes it again"),
        (other_gold, LabelError, "'ugly' is not one of the labels"),
    ],
)
def test_folders_that_cannot_be_reviewed(
    run: Path, spoil: Callable[[Path], Path], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        rows_of(spoil(run))


def test_votes_are_taken_from_the_ledger_after_a_stop(run: Path) -> None:
    expected = rows_of(run)
    (run / "variables/label/votes.parquet").unlink()
    with simulated_models():
        again = rows_of(run)
    np.testing.assert_array_equal(again.run.votes.codes, expected.run.votes.codes)


def test_a_promise_is_void_if_votes_have_changed_since(run: Path, tmp_path: Path) -> None:
    model = json.loads((run / "variables/label/model.json").read_text())
    assert model["certificate"] is not None
    shutil.copy(run / "variables/label/votes.parquet", tmp_path / "votes.parquet")
    table = read_table(run / "variables/label/votes.parquet")
    write_table(table.set_column(4, "label", pa.array(["good"] * len(table))), run / "variables/label/votes.parquet")
    certificate = rows_of(run).judgement.model.certificate
    assert certificate is not None
    assert "votes changed since this promise was made" in certificate.why_not


# ── the log ──


def test_verdicts_on_other_texts_rows_and_labels_are_not_used(run: Path) -> None:
    rows = rows_of(run)
    good = Verdict(
        number=1,
        id="t25",
        text_hash=rows.text_hash(rows.places["t25"]),
        label="good",
        reviewer="ann",
        at="2026-01-01",
        queue="chosen",
    )
    other = [
        replace(good, number=2, id="t26", text_hash=text_hash("as it was before")),
        replace(good, number=3, id="gone"),
        replace(good, number=4, label="ugly"),
    ]
    append_events(rows.run.folder.draws, [good, *other])
    with (run / "draws.jsonl").open("ab") as file:
        file.write(b'{"kind": "verd')  # the process was killed here
    record = rows.run.review()
    assert list(record.verdicts) == [rows.places["t25"]]
    assert record.decided[rows.places["t25"]] == 0
    assert record.last == 4
    said = "\n".join(record.notes)
    assert "verdicts on texts that have changed are not used: 1 ('t26')" in said
    assert "draws and verdicts on rows that the run does not have are not used: 1 ('gone')" in said
    assert "verdicts with other labels than those of the run are not used: 1 ('t25')" in said
    assert "the last line was cut off" in said
