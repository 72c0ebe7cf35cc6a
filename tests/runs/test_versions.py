import asyncio
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from pcs_annotator import Votes, Weights
from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.faces.cli.main import pcs
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.runs.fits import list_versions, numbers, promises_less
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.runs.labeller import LoadOptions
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.service import Service
from pcs_annotator.runs.settings import Config, Saving
from pcs_annotator.verbs.fit import fit_run, open_run, use_version
from tests.builders import the
from tests.made_once import made_once
from tests.simulated import audited, label, move_run, read_csv, simulated_models, truth_of, write_csv, write_texts


@pytest.fixture
def folder(promising_run: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """A run with two versions: the second learned from 40 more gold rows."""

    def make(folder: Path) -> None:
        more = write_csv(folder / "more.csv", [{"id": f"t{row}", "gold": truth_of(row)} for row in range(150, 190)])
        fit_run(move_run(promising_run, folder / "run"), None, FromPeople(gold=more))

    return move_run(made_once(tmp_path_factory, "two-versions", make) / "run", tmp_path / "run")


def model_of(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "variables/label/model.json").read_text())
    return found


def test_every_fit_is_a_version_and_the_same_fit_is_the_same_one(folder: Path) -> None:
    first, second = list_versions(RunFolder(folder))
    assert (first.number, first.gold_rows, first.in_use) == (1, 150, False)
    assert (second.number, second.gold_rows, second.in_use) == (2, 190, True)
    assert first.fit_id != second.fit_id
    assert the(first.accuracy_interval).low < (first.accuracy or 0.0) < the(first.accuracy_interval).high
    fit_run(folder)
    assert numbers(RunFolder(folder)) == [1, 2]


def test_versions_have_what_audits_found_and_what_was_paid_until_then(folder: Path) -> None:
    audited(folder, lambda place: place != 0, rows=10)
    fit_run(folder)
    run = Run.open(folder)
    *_, last = list_versions(run.folder, run.config)
    assert (last.wrong, last.audited, last.error) == (1, 10, 0.1)
    assert last.error_interval is not None
    assert last.calls == len(run.votes) * run.votes.codes.shape[1] * run.votes.codes.shape[2]
    assert list_versions(run.folder)[0].calls is None
    run.folder.ledger.unlink()
    assert list_versions(run.folder, run.config)[0].calls is None


def test_going_back_brings_back_labels_model_promise_and_what_is_asked(folder: Path) -> None:
    labels, model = (folder / "labels.csv").read_bytes(), model_of(folder)
    result = use_version(folder, 1)
    assert (folder / "labels.csv").read_bytes() != labels
    assert model_of(folder)["number"] == 1
    certificate = the(result.only.certificate)
    assert certificate.holds
    assert certificate.gold_rows == 150
    # what a service learns for stopping early is from the same gold rows
    assert sum(label is not None for label in Run.open(folder).gold.labels) == 190
    assert sum(label is not None for label in Run.open(folder).as_fitted().gold.labels) == 150
    use_version(folder, 2)
    assert (folder / "labels.csv").read_bytes() == labels
    assert model_of(folder) == model


@pytest.mark.system
def test_another_version_reaches_a_service_that_gets_no_text(folder: Path) -> None:
    async def served() -> str:
        with simulated_models():
            async with Service(folder, LoadOptions(environment={})) as service:
                assert service.version == "run@2"
                await asyncio.to_thread(use_version, folder, 1)
                async with asyncio.timeout(60):
                    while service.version == "run@2":
                        await asyncio.sleep(0.05)
                return service.version

    assert asyncio.run(served()) == "run@1"


def test_a_version_that_was_deleted_or_damaged_is_named(folder: Path) -> None:
    (folder / "variables/label/models" / "1.json").write_text("{")
    with pytest.raises(TableError, match="use another version"):
        use_version(folder, 1)
    (folder / "variables/label/models" / "1.json").unlink()
    with pytest.raises(ConfigError, match="no version 1: there are"):
        use_version(folder, 1)
    assert model_of(folder)["number"] == 2
    fit_run(folder, {"optimiser": "uniform"})
    assert numbers(RunFolder(folder)) == [2, 3]  # a number is not given twice while a later one is there


def test_the_commands(folder: Path) -> None:
    listed = CliRunner().invoke(pcs, ["versions", str(folder)])
    assert listed.exit_code == 0
    assert "in use" in listed.output
    used = CliRunner().invoke(pcs, ["versions", str(folder), "--use", "1", "--json"])
    assert used.exit_code == 0, used.output
    assert json.loads(used.output)["version"] == 1
    found = json.loads(CliRunner().invoke(pcs, ["versions", str(folder), "--json"]).output)["versions"]
    assert [one["in_use"] for one in found] == [True, False]
    assert open_run(folder).learned.model.gold_rows == 150


def test_labels_of_later_texts_name_the_version_that_made_them(folder: Path, tmp_path: Path) -> None:
    texts, out = write_texts(tmp_path / "new.csv", range(1000, 1005)), tmp_path / "out.csv"
    with simulated_models():
        label(RunRequest(data=texts, folder=folder, config=Config()), out, Saving())
        assert {row["pcs_version"] for row in read_csv(out)} == {"2"}
        use_version(folder, 1)
        label(RunRequest(data=texts, folder=folder, config=Config()), again := tmp_path / "again.csv", Saving())
        assert {row["pcs_version"] for row in read_csv(again)} == {"1"}


def test_a_model_promises_less_if_it_promises_nothing_or_nothing_for_a_group_or_accepts_fewer_rows() -> None:
    def with_promise(accepted: float, *groups: str) -> Model:
        promise = Promise(max_error=0.1, by="language")
        thresholds = dict.fromkeys(groups, 0.9)
        certificate = Certificate(promise=promise, gold_rows=90, thresholds=thresholds, accepted_share=accepted)
        return replace(bare, certificate=certificate)

    votes = Votes(
        codes=np.zeros((1, 1, 1, 1), np.int8), ids=["1"], annotators=["m"], relations=["o"], labels=["a", "b"]
    )
    bare = Model(weights=Weights.uniform(votes), calibrator=None)
    used = with_promise(0.5, "de", "en")
    assert promises_less(bare, used)
    assert promises_less(with_promise(0.0), used)
    assert promises_less(with_promise(0.6, "en"), used)
    assert promises_less(with_promise(0.4, "de", "en"), used)
    assert not promises_less(with_promise(0.5, "de", "en", "fr"), used)
    assert not promises_less(bare, with_promise(0.0))
    assert not promises_less(bare, bare)
