from __future__ import annotations

import asyncio
import csv
import io
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from pcs_annotator.faces.serve import app
from pcs_annotator.pipeline.serve import Service
from tests.faces.serve.running import Running, running
from tests.simulated import truth_of
from tests.stub import StubProcess

CSV = {"Content-Type": "text/csv; charset=utf-8"}
ROWS = [(f"t{row}", f"Case {row} looks {truth_of(row)}.") for row in range(2000, 2030)]
FILE = "id,text\n" + "".join(f"{name},{text}\n" for name, text in ROWS)


@pytest.fixture(autouse=True)
def quick_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "PROGRESS_SECONDS", 0.02)


async def sent(one: Running, body: str = FILE, **headers: str) -> tuple[int, Any]:
    return await one.ask("POST", "/v1/jobs", data=body, headers={**CSV, **headers})


async def ended(one: Running, job: dict[str, Any]) -> dict[str, Any]:
    """Follow a job to its end, and return its last event."""
    _, stream = await one.ask("GET", job["events"])
    events = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: ")]
    found: dict[str, Any] = json.loads(events[-1])
    return found


def test_a_file_is_labelled_in_the_background(run: Path) -> None:
    async def served() -> None:
        async with running(run) as one:
            async with one.client.post("/v1/jobs", data=FILE, headers=CSV) as answer:
                job = await answer.json()
                assert (answer.status, answer.headers["Location"]) == (202, f"/v1/jobs/{job['id']}")
            last = await ended(one, job)
            assert (last["state"], last["rows"], last["done"], last["unlabelled"]) == ("finished", 30, 30, 0)
            assert last["calls"] > 30
            _, table = await one.ask("GET", job["result"])
            rows = list(csv.DictReader(io.StringIO(table)))
            assert [(row["id"], row["text"]) for row in rows] == ROWS
            _, direct = await one.classify([text for _, text in ROWS])
            assert [row["pcs_label"] for row in rows] == [item["label"] for item in direct["data"]]
            assert [float(row["pcs_confidence"]) for row in rows] == pytest.approx(
                [item["confidence"] for item in direct["data"]], abs=1e-6
            )
            assert (await one.ask("GET", "/v1/jobs"))[1]["data"][0]["id"] == job["id"]
            assert (await one.ask("DELETE", f"/v1/jobs/{job['id']}"))[0] == 204
            assert (await one.ask("GET", job["result"]))[0] == 404
            assert not list((run / "jobs").iterdir())

    asyncio.run(served())


def test_json_lines_and_named_columns(run: Path) -> None:
    lines = "\n".join(json.dumps({"what": text, "n": name}) for name, text in ROWS[:3])

    async def served() -> None:
        async with running(run) as one:
            headers = {"Content-Type": "application/x-ndjson"}
            _, job = await one.ask("POST", "/v1/jobs?text_column=what&id_column=n", data=lines, headers=headers)
            assert (await ended(one, job))["done"] == 3

    asyncio.run(served())


def test_files_that_cannot_be_read_say_why(run: Path) -> None:
    async def served() -> None:
        async with running(run) as one:
            _, job = await sent(one, "id,nothing,more\n1,2,3\n")
            last = await ended(one, job)
            assert last["state"] == "failed"
            assert "text" in last["message"]
            status, body = await one.ask("GET", job["result"])
            assert (status, body["error"]["message"]) == (409, last["message"])
            assert (await one.ask("POST", "/v1/jobs", data="x", headers={"Content-Type": "text/html"}))[0] == 415
            for path in ("/v1/jobs/none", "/v1/jobs/..%2f..%2frun.json/result", "/v1/jobs/%2e%2e/result"):
                assert (await one.ask("GET", path))[0] == 404

    asyncio.run(served())


def test_the_same_file_with_the_same_key_is_one_job(run: Path) -> None:
    async def served() -> None:
        async with running(run) as one:
            _, first = await sent(one, **{"Idempotency-Key": "k"})
            _, again = await sent(one, **{"Idempotency-Key": "k"})
            assert again["id"] == first["id"]
            assert (await sent(one, FILE + "more,text\n", **{"Idempotency-Key": "k"}))[0] == 422
            assert len(list((run / "jobs").iterdir())) == 1
            await ended(one, first)
        async with running(run) as one:
            _, after_restart = await sent(one, **{"Idempotency-Key": "k"})
            assert (after_restart["id"], after_restart["state"]) == (first["id"], "finished")

    asyncio.run(served())


@pytest.mark.slow
def test_jobs_go_on_after_a_restart(stub_folder: Path, stub: StubProcess) -> None:
    stub.change(latency_s=0.2)
    many = "text\n" + "".join(f"Text {row}.\n" for row in range(200))

    async def served() -> None:
        async with running(stub_folder) as one:
            _, job = await sent(one, many)
            while not (await one.ask("GET", f"/v1/jobs/{job['id']}"))[1]["done"]:
                await asyncio.sleep(0.02)
            assert (await one.ask("DELETE", f"/v1/jobs/{job['id']}"))[0] == 409
            assert (await one.ask("GET", job["result"]))[0] == 409
        assert 0 < stub.stats().answered < 200
        async with running(stub_folder) as one:
            last = await ended(one, job)
            assert (last["state"], last["done"], last["restarts"]) == ("finished", 200, 1)
        async with running(stub_folder) as one:
            assert (await one.ask("GET", job["result"]))[0] == 200

    asyncio.run(served())
    assert stub.stats().answered == stub.stats().questions == 200


def test_a_job_whose_model_is_down_is_given_up(stub_folder: Path, stub: StubProcess) -> None:
    stub.change(models=["another"])

    async def served() -> None:
        async with running(stub_folder) as one:
            _, job = await sent(one)
            last = await ended(one, job)
            assert last["state"] == "failed"
            assert "Send the file again to go on" in last["message"]
            stub.change(models=[])
            _, job = await sent(one)
            assert (await ended(one, job))["state"] == "finished"

    asyncio.run(served())


def test_an_upload_that_breaks_off_leaves_nothing(run: Path) -> None:
    async def half() -> AsyncIterator[bytes]:
        yield b"id,text\n"
        raise ConnectionError

    async def served() -> list[str]:
        async with running(run) as one:
            with pytest.raises((aiohttp.ClientError, ConnectionError)):
                await one.client.post("/v1/jobs", data=half(), headers=CSV)
            while not any(line.startswith("POST") for line in one.lines):
                await asyncio.sleep(0.02)
            assert (await one.ask("GET", "/v1/jobs"))[1]["data"] == []
            return one.lines

    assert any(line.startswith("POST /v1/jobs 400") for line in asyncio.run(served()))
    assert not list((run / "jobs").iterdir())


def test_a_result_that_was_deleted_by_hand_is_not_found(run: Path) -> None:
    async def served() -> None:
        async with running(run) as one:
            _, job = await sent(one)
            await ended(one, job)
            (run / "jobs" / job["id"] / "result.csv").unlink()
            assert (await one.ask("GET", job["result"]))[0] == 404
            assert (await sent(one, **{"Idempotency-Key": "a b"}))[0] == 400
            shutil.rmtree(run / "jobs")
            (run / "jobs").write_text("in the way")
            assert (await sent(one))[0] == 503

    asyncio.run(served())


def test_a_damaged_job_does_not_keep_the_service_from_starting(run: Path) -> None:
    for name, text in (("a", "{"), ("b", '{"id": "b", "what": 1}'), ("c", "[]")):
        (run / "jobs" / name).mkdir(parents=True)
        (run / "jobs" / name / "job.json").write_text(text)

    async def served() -> list[Any]:
        async with running(run) as one:
            return list((await one.ask("GET", "/v1/jobs"))[1]["data"])

    assert {job["state"] for job in asyncio.run(served())} == {"failed"}


def test_too_many_jobs_are_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()
    classify = Service.classify

    async def slow(self: Service, text: str) -> Any:
        await gate.wait()
        return await classify(self, text)

    monkeypatch.setattr(Service, "classify", slow)

    async def served() -> None:
        async with running(run) as one:
            statuses = [(await sent(one))[0] for _ in range(18)]
            assert statuses.count(202) in (16, 17)
            assert statuses[-1] == 429
            waiting = (await one.ask("GET", "/v1/jobs"))[1]["data"][0]
            assert (await one.ask("DELETE", f"/v1/jobs/{waiting['id']}"))[0] == 204
            gate.set()

    asyncio.run(served())
