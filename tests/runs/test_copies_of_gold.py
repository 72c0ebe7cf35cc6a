"""Rows whose text stands in a gold row, too: in a run, in new tables, in a service, and in what is left for people."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator import load_run, run
from pcs_annotator.core.outcome import COPY_OF_GOLD, Outcome
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.labeller import LoadOptions
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.service import Service
from pcs_annotator.runs.settings import Config, Saving
from pcs_annotator.runs.stream import Stream
from pcs_annotator.verbs.fit import open_run
from tests.made_once import made_once
from tests.simulated import copy_run, label, read_csv, simulated_config, simulated_models, truth_of, write_csv
from tests.simulated import run as simulated

ROWS, GOLD = 320, 200
WRONG = (3, 6, 9)  # gold rows about which people say something else than the models
OTHER = {"good": "bad", "bad": "good"}
EVERYTHING = Saving(audit=1.0)


def text(row: int) -> str:
    return f"Case {row} looks {truth_of(row)}."


def gold(row: int) -> str:
    return OTHER[truth_of(row)] if row in WRONG else truth_of(row)


def copy_of(row: int) -> str:
    return f" {text(row).upper().replace('LOOKS GOOD', 'looks good').replace('LOOKS BAD', 'looks bad')} "


def make(folder: Path) -> None:
    rows = [{"text": text(row), "gold": gold(row) if row < GOLD else ""} for row in range(ROWS)]
    copies = [{"text": copy_of(row), "gold": ""} for row in range(30)]
    data = write_csv(folder / "data.csv", [*rows, *copies])
    with simulated_models():
        simulated(RunRequest(data=data, folder=folder / "run", config=simulated_config()))


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Path]:
    with simulated_models():
        yield copy_run(made_once(tmp_path_factory, "copies-of-gold", make) / "run", tmp_path / "run")


def new_texts(folder: Path) -> Path:
    rows = [copy_of(row) for row in range(30)] + [text(row) for row in range(1000, 1030)]
    return write_csv(folder / "new.csv", [{"id": f"n{row}", "text": words} for row, words in enumerate(rows)])


def test_a_copy_in_the_table_has_golds_label_and_is_for_nobody(folder: Path) -> None:
    rows, result = read_csv(folder / "labels.csv"), open_run(folder)
    copies = rows[ROWS:]
    assert [row["pcs_final_label"] for row in rows[:GOLD]] == [row["gold"] for row in rows[:GOLD]]
    assert [row["pcs_final_label"] for row in copies] == [gold(row) for row in range(30)]
    assert {row["pcs_reason"] for row in copies} == {COPY_OF_GOLD}
    # the models' own label, and what they are sure of, stay
    assert [row["pcs_label"] for row in copies] == [outcome.label for outcome in result.outcomes[ROWS:]]
    assert any(copies[row]["pcs_label"] != copies[row]["pcs_final_label"] for row in WRONG)
    # decisions are about what the models say, so that accepted labels can be compared with gold
    assert [row["pcs_decision"] for row in rows] == [outcome.decision for outcome in result.outcomes]
    waiting = [row for row in rows if row["pcs_decision"] == "review" and not row["gold"]]
    waiting = [row for row in waiting if row["pcs_reason"] != COPY_OF_GOLD]
    assert result.counts.to_review == len(waiting) > 0
    with Review.open(folder, ReviewOptions(refit_every=0)) as review:
        assert review.progress("Ana").queues["doubtful"].left == len(waiting)


def test_all_faces_give_a_copy_golds_label(folder: Path) -> None:
    data, out = new_texts(folder.parent), folder.parent / "out.csv"
    labelled = label(RunRequest(data=data, folder=folder, config=Config()), out, EVERYTHING)
    rows = read_csv(out)
    expected = [gold(row) for row in range(30)]
    assert [row["pcs_final_label"] for row in rows[:30]] == expected
    assert {row["pcs_reason"] for row in rows[:30]} == {COPY_OF_GOLD}
    assert [row["pcs_final_label"] for row in rows[30:]] == [row["pcs_label"] for row in rows[30:]]
    assert [outcome.label for outcome in labelled.outcomes[:30]] == expected
    assert labelled.counts.to_review == sum(row["pcs_decision"] == "review" for row in rows[30:])
    with Stream(RunFolder(folder).stream) as stream:
        kept = stream.read(open_run(folder).votes)
    assert kept is not None
    assert {item.id for item in kept.items} == {f"new.csv:n{row}" for row in range(30, 60)}

    with load_run(folder) as loaded:
        outcomes = loaded.label(data)
        table = loaded.label_table({"text": [copy_of(0), text(1000)]})
    assert [outcome.label for outcome in outcomes[:30]] == expected
    assert outcomes[0] == replace(outcomes[0], decision="accept", reason=COPY_OF_GOLD)
    assert outcomes[0].confidence == outcomes[0].probabilities[expected[0]]
    assert table["pcs_final_label"].to_pylist() == [expected[0], outcomes[30].label]
    assert table.schema == loaded.label_schema(table.select(["text"]).schema)

    async def served() -> list[Outcome | None]:
        async with Service(folder, LoadOptions(saving=EVERYTHING, environment={})) as service:
            found = await asyncio.gather(*(service.classify(copy_of(row)) for row in range(30)))
            assert service.waiting["texts"] == 30
        return [classified.outcome for classified in found]

    assert [outcome and outcome.label for outcome in asyncio.run(served())] == expected


def test_copies_change_nothing_about_model_and_promise(folder: Path) -> None:
    data = new_texts(folder.parent)
    labelled = label(RunRequest(data=data, folder=folder, config=Config()), None, Saving(ask="all"))
    certificate, accepted = labelled.model.certificate, labelled.model.judged(labelled.votes).accepted
    assert certificate is not None
    assert accepted is not None
    assert certificate.accepted_share == accepted.mean()
    assert labelled.counts.decisions["accept"] == accepted.sum()
    assert labelled.counts.settled == (~accepted[:30]).sum()
    assert "gold_labels" not in labelled.model.to_dict()


def test_what_gold_contradicts_stays_for_people(tmp_path: Path) -> None:
    rows = [{"id": str(row), "text": text(row), "gold": truth_of(row)} for row in range(60)]
    contradictory = [{"id": f"other {row}", "text": copy_of(row), "gold": OTHER[truth_of(row)]} for row in range(2)]
    most = [{"id": "third", "text": f"{copy_of(1)} ", "gold": truth_of(1)}]
    copies = [{"id": f"copy {row}", "text": f"  {text(row)}", "gold": ""} for row in range(2)]
    data = write_csv(tmp_path / "data.csv", [*rows, *contradictory, *most, *copies])
    with simulated_models():
        request = RunRequest(data=data, folder=tmp_path / "run", config=simulated_config(), gold_wins=True)
        result = simulated(request)
    labels = {row["id"]: row for row in read_csv(tmp_path / "run" / "labels.csv")}
    assert labels["copy 0"]["pcs_final_label"] == labels["copy 0"]["pcs_label"]
    assert labels["copy 0"]["pcs_reason"] != COPY_OF_GOLD
    assert labels["copy 1"]["pcs_final_label"] == truth_of(1)
    assert labels["copy 1"]["pcs_reason"] == COPY_OF_GOLD
    waiting = [name for name, row in labels.items() if row["pcs_decision"] == "review" and name.startswith("copy")]
    assert result.counts.to_review == len(waiting) - 1  # gold settles the other one


@pytest.mark.filterwarnings("ignore:the votes say nothing")
def test_a_run_without_gold_has_no_final_label(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "data.csv", [{"text": f"Case {row}."} for row in range(3)])
    run(data, labels=["good", "bad"], models=["scripted:hash"], relations=["original"], out=tmp_path / "run")
    assert "pcs_final_label" not in read_csv(tmp_path / "run" / "labels.csv")[0]
    with load_run(tmp_path / "run") as loaded:
        assert "pcs_final_label" not in loaded.label_table(["Case 1."]).column_names
