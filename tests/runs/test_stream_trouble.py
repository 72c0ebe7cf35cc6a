"""What may go wrong with the texts that wait for people: a full disk, a lock, a clock, missing files, two services."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs import service as services
from pcs_annotator.runs import stream as streams
from pcs_annotator.runs.labeller import FittedRun, LoadOptions, open_fitted
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.service import Classified, Service
from pcs_annotator.runs.settings import Saving
from pcs_annotator.runs.stream import Stream
from pcs_annotator.tables.files import read_json, write_json
from tests.simulated import move_run, simulated_models, truth_of, write_texts

EVERYTHING = LoadOptions(saving=Saving(audit=1.0), environment={})


@pytest.fixture
def folder(promising_run: Path, tmp_path: Path) -> Iterator[Path]:
    with simulated_models():
        yield move_run(promising_run, tmp_path / "run")


async def classify(service: Service, rows: range) -> list[Classified]:
    """Label texts that the run does not have."""
    new = range(1000 + rows.start, 1000 + rows.stop)
    return await asyncio.gather(*(service.classify(f"Case {row} looks {truth_of(row)}.") for row in new))


def kept(folder: Path) -> list[str]:
    with Stream(RunFolder(folder).stream) as stream:
        found = stream.read(Run.open(folder).votes)
    return [] if found is None else [item.id for item in found.items]


def labelled(found: list[Classified]) -> set[str]:
    return {one.outcome.id for one in found if one.outcome is not None and one.error is None}


def test_a_full_disk_loses_nothing_that_was_acknowledged(folder: Path) -> None:
    async def served() -> tuple[list[Classified], list[Classified]]:
        async with Service(folder, EVERYTHING) as service:
            database = service._stream._database
            (pages,) = database.execute("PRAGMA page_count").fetchone()
            database.execute(f"PRAGMA max_page_count = {pages + 2}")
            some = [one for start in range(0, 200, 20) for one in await classify(service, range(start, start + 20))]
            database.execute(f"PRAGMA max_page_count = {2**30}")
            return some, await classify(service, range(200))

    full, later = asyncio.run(served())
    messages = {one.error.message for one in full if one.error is not None}
    assert len(messages) == 1
    assert "stream.db, where texts wait for review, cannot be used (database or disk is full): make room" in str(
        messages
    )
    assert 0 < len(labelled(full)) < 200
    assert labelled(full) <= set(kept(folder))
    assert not [one for one in later if one.error]
    assert len(kept(folder)) == 200


def test_a_file_that_another_process_holds_is_said_and_used_when_it_is_free(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(streams, "SECONDS_TO_WAIT", 0.1)

    async def served() -> list[Classified]:
        async with Service(folder, EVERYTHING) as service:
            with closing(sqlite3.connect(RunFolder(folder).stream)) as other:
                other.execute("BEGIN IMMEDIATE")
                held = await classify(service, range(20))
                assert service.trouble == services.TROUBLE["ledger_unavailable"]
            assert not [one for one in await classify(service, range(20)) if one.error]
            return held

    held = asyncio.run(served())
    assert {one.error and one.error.kind for one in held} == {"ledger_unavailable"}
    assert all(one.error and "another process holds it: stop that one" in one.error.message for one in held)
    assert len(kept(folder)) == 20
    data = write_texts(tmp_path / "new.csv", range(3000, 3010))
    command = ["label", str(data), "--run", str(folder), "-o", str(tmp_path / "out.csv"), "--audit", "1"]
    with closing(sqlite3.connect(RunFolder(folder).stream)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert main(command) == 2
    assert "another process holds it" in capsys.readouterr().err
    assert main(command) == 0
    assert len(kept(folder)) == 30


def test_a_clock_that_is_set_back_keeps_texts_and_what_is_known_about_drift(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def served(rows: range) -> list[Classified]:
        options = LoadOptions(saving=Saving(audit=1.0, keep_days=2), environment={})
        async with Service(folder, options) as service:
            return await classify(service, rows)

    asyncio.run(served(range(150)))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 10 * streams.DAY)
    assert len(labelled(asyncio.run(served(range(150, 300))))) == 150
    assert len(kept(folder)) == 300
    with Stream(RunFolder(folder).stream) as stream:
        assert stream.note("drift")["tests"][""]["looks"] == 2
    monkeypatch.setattr(time, "time", real)
    asyncio.run(served(range(300, 301)))
    assert len(kept(folder)) == 151  # the others are dated ten days ago


def test_files_of_a_model_that_are_deleted_by_hand_leave_the_service_with_what_it_has(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(services, "RETRY_SECONDS", 0.1)
    at = RunFolder(folder)
    said: list[str] = []

    async def served() -> None:
        async with Service(folder, EVERYTHING, said.append) as service:
            await classify(service, range(5))
            saved = at.model.read_bytes()
            at.model.unlink()
            for number in at.versions.iterdir():
                number.unlink()
            assert {one.version for one in await classify(service, range(5, 10))} == {"run@1"}
            while not service.outdated:
                await asyncio.sleep(0.01)
            at.model.write_bytes(saved)
            while service.outdated:
                assert not [one for one in await classify(service, range(10, 15)) if one.error]
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(served(), 60))
    assert "the earlier model stays in use" in said[0]
    assert len(kept(folder)) == 15


def test_two_services_keep_texts_in_one_stream(folder: Path) -> None:
    async def served() -> list[Classified]:
        async with Service(folder, EVERYTHING) as one, Service(folder, EVERYTHING) as other:
            found = await asyncio.gather(classify(one, range(220)), classify(other, range(180, 400)))
            return [*found[0], *found[1]]

    found = asyncio.run(served())
    assert not [one for one in found if one.error]
    assert len(labelled(found)) == len(kept(folder)) == 400
    with Stream(RunFolder(folder).stream) as stream:
        assert stream.note("drift")["tests"][""]["looks"] >= 1  # texts that are judged together are counted together
    assert not [one for one in asyncio.run(_again(folder)) if one.error]


def test_a_fit_that_ends_while_a_service_loads_is_loaded_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, opened = RunFolder(folder).model, list[int]()

    def open_slowly(recorded: Run, options: LoadOptions) -> FittedRun:
        fitted = open_fitted(recorded, options)
        if not opened:
            write_json(model, {**read_json(model), "number": 2})
        opened.append(fitted.version)
        return fitted

    async def served() -> str:
        async with Service(folder, EVERYTHING) as service:
            return service.version

    monkeypatch.setattr(services, "open_fitted", open_slowly)
    assert asyncio.run(served()) == "run@2"
    assert opened == [1, 2]


async def _again(folder: Path) -> list[Classified]:
    async with Service(folder, EVERYTHING) as service:
        return await classify(service, range(400, 410))


def test_tables_of_one_name_and_texts_of_one_id_are_all_kept_and_old_ones_go_in_pieces(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "PURGED_AT_ONCE", 7)
    data = tmp_path / "new.csv"
    for rows in (range(3000, 3020), range(4000, 4020), range(3000, 3020)):
        write_texts(data, rows)
        command = ["label", str(data), "--run", str(folder), "-o", str(tmp_path / f"{rows[0]}.csv"), "--replace"]
        assert main([*command, "--audit", "1"]) == 0
    ids = kept(folder)
    assert len(set(ids)) == len(ids) == 40
    with Stream(RunFolder(folder).stream) as stream:
        assert stream.purge(days=-1) == 40
        assert stream.counts()["texts"] == 0
