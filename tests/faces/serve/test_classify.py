import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator.asking.engine.budget import LedgerSpending
from pcs_annotator.asking.ledger.lock import lock_ledger
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.runs import service as pipeline_serve
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.service import Service
from pcs_annotator.runs.settings import Config, Saving
from pcs_annotator.verbs.fit import fit_run
from tests.faces.serve.running import Running, running
from tests.postgres import PostgresServer
from tests.simulated import label, truth_of, write_texts
from tests.stub import StubProcess

TEXTS = [f"Case {row} looks {truth_of(row)}." for row in range(1000, 1020)]
SAMPLE = re.compile(r'[a-z_]+(\{([a-z]+="[^"\n]*",?)+\})? [0-9.e+-]+')


@pytest.mark.asyncio
async def test_labels_are_those_of_the_library(run: Path) -> None:
    async with running(run) as one:
        answer = (await one.classify(TEXTS))[1]
    data = write_texts(run.parent / "new.csv", range(1000, 1020))
    expected = label(RunRequest(data=data, folder=run, config=Config()), run.parent / "out.csv").outcomes
    for item, outcome in zip(answer["data"], expected, strict=True):
        assert (item["label"], item["decision"], item["reason"]) == (outcome.label, outcome.decision, outcome.reason)
        assert item["confidence"] == pytest.approx(outcome.confidence)
        assert item["num_classes"] == len(item["probs"]) == 2
        assert answer["labels"][item["probs"].index(max(item["probs"]))] == item["label"]
    assert [item["index"] for item in answer["data"]] == list(range(20))
    assert answer["usage"]["calls"] == sum(item["cost"]["calls"] for item in answer["data"]) > 20
    assert (
        answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"] > 0
    )
    assert answer["object"] == "list"


@pytest.mark.asyncio
async def test_a_text_that_is_known_costs_nothing(run: Path) -> None:
    async with running(run) as one:
        first, second = [(await one.classify(TEXTS[0]))[1] for _ in range(2)]
    assert first["usage"]["calls"] > 0
    assert second["usage"] == {
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "total_tokens": 0,
        "calls": 0,
        "known_already": first["usage"]["calls"],
    }
    assert second["data"][0]["label"] == first["data"][0]["label"]


@pytest.mark.asyncio
async def test_answers_have_what_a_client_calls_its_texts(run: Path) -> None:
    async with running(run) as one:
        sent: list[dict[str, Any]] = [
            {"custom_ids": ["a-1", None]},
            {"custom_id": "b"},
            {},
            {"custom_ids": ["a-1"]},
            {"custom_id": 7},
        ]
        answers = [await one.ask("POST", "/v1/classify", json={"input": TEXTS[:2], **more}) for more in sent]
    named = [[item.get("custom_id") for item in answer["data"]] for status, answer in answers[:3] if status == 200]
    assert named == [["a-1", None], ["b", "b"], [None, None]]
    assert [status for status, _ in answers[3:]] == [400, 400]
    assert "`custom_ids` must be a list of texts" in str(answers[3][1])


@pytest.mark.asyncio
async def test_copies_of_a_text_that_come_together_are_paid_for_once(stub_folder: Path, stub: StubProcess) -> None:
    stub.change(latency_s=0.1)
    async with running(stub_folder) as one:
        served = await asyncio.gather(*(one.classify(["The same text."] * 3) for _ in range(5)))
    assert [status for status, _ in served] == [200] * 5
    assert stub.stats().answered == 1


BAD_BODIES = [
    (b"{", 400, "not valid JSON"),
    (b"[1]", 400, "must be a JSON object, not a list"),
    (b"{}", 400, "`input` is missing"),
    (b'{"input": 1}', 400, "`input` must be a text"),
    (b'{"input": []}', 400, "one or more texts"),
    (b'{"input": ["a", null]}', 400, r"`input\[1\]` must be a text, not null"),
    (b'{"input": ["a", " "]}', 400, r"`input\[1\]` is empty"),
    (b'{"input": "a", "model": 3}', 400, "`model` must be a text"),
    (b'{"input": "a", "model": "other"}', 404, "this service has 'run'"),
    (b'{"input": "\\ud800"}', 400, "not valid JSON"),
    (b"[" * 100_000, 400, "not valid JSON"),
    (b'{"input": [%s]}' % b",".join([b'"a"'] * 101), 413, "101 texts in one request, at most 100"),
    (b'{"input": "%s"}' % (b"x" * 17 * 2**20), 413, "larger than 16 MiB"),
]


def test_bad_bodies_get_a_sentence(run: Path) -> None:
    async def parts(body: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(body), 2**16):
            yield body[start : start + 2**16]

    async def served() -> None:
        async with running(run) as one:
            for body, status, message in BAD_BODIES:
                given, answer = await one.ask("POST", "/v1/classify", data=parts(body))
                assert given == status, message
                assert re.search(message, answer["error"]["message"])
                assert answer["error"]["request_id"]

    asyncio.run(served())


@pytest.mark.asyncio
async def test_other_requests_that_make_no_sense(run: Path) -> None:
    async with running(run, token="a-token-of-some-length") as one:
        assert (await one.ask("GET", "/health"))[0] == 200
        assert (await one.ask("GET", "/ready"))[0] == 200
        assert (await one.classify("a"))[0] == 401
        one.client.headers["Authorization"] = "Bearer a-token-of-some-length"
        assert (await one.classify("a"))[0] == 200
        assert (await one.ask("GET", "/v1/classify"))[0] == 405
        assert (await one.ask("GET", "/nowhere"))[1]["error"]["type"] == "not_found"
        assert (await one.ask("GET", "/health", headers={"Host": "evil.example"}))[0] == 403


@pytest.mark.asyncio
async def test_a_text_that_is_too_long_for_the_service_is_refused_with_the_limit_and_the_option(run: Path) -> None:
    async with running(run) as one:
        status, body = await one.classify(["Short.", "x" * 100_001])
        assert status == 413
        assert body["error"]["message"] == (
            "text 1 has 100,001 characters, at most 100,000 are taken: cut it, or start the service with a larger "
            "--max-text"
        )


def test_a_full_queue_says_when_to_come_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classify, gate = Service.classify, asyncio.Event()

    async def slow(self: Service, text: str, group: str | None) -> Any:
        await gate.wait()
        return await classify(self, text)

    monkeypatch.setattr(Service, "classify", slow)

    async def served() -> None:
        async with running(run, max_queue=5) as one:
            first = asyncio.create_task(one.classify(TEXTS[:4]))
            while not (await one.ask("GET", "/ready"))[1]["queued_texts"]:
                await asyncio.sleep(0.01)
            async with one.client.post("/v1/classify", json={"input": TEXTS[:2]}) as answer:
                assert answer.status == 429
                assert 1 <= int(answer.headers["Retry-After"]) <= 60
            gate.set()
            assert (await first)[0] == 200
            assert (await one.classify(TEXTS[:5]))[0] == 200

    asyncio.run(served())


@pytest.mark.asyncio
async def test_answers_that_come_too_late_are_kept(stub_folder: Path, stub: StubProcess) -> None:
    stub.change(latency_s=0.6)
    async with running(stub_folder, seconds=0.2) as one:
        status, body = await one.classify("A slow text.")
        assert (status, body["error"]["type"]) == (503, "unavailable")
        while (await one.ask("GET", "/ready"))[1]["queued_texts"]:
            await asyncio.sleep(0.05)
        assert (await one.classify("A slow text."))[1]["usage"]["known_already"] == 1


@pytest.mark.asyncio
async def test_a_stop_waits_for_what_is_paid_though_its_client_has_left(stub_folder: Path, stub: StubProcess) -> None:
    def calls() -> int:
        with Ledger(RunFolder(stub_folder).ledger) as ledger:
            return sum(bill.calls for bill in ledger.bills())

    before = calls()
    stub.change(latency_s=1.3)
    async with running(stub_folder, seconds=1) as one:
        assert (await one.classify("A last slow text."))[0] == 503
    assert calls() == before + 1


@pytest.mark.asyncio
async def test_one_text_too_many_characters_does_not_spoil_the_others(stub_folder: Path, stub: StubProcess) -> None:
    stub.change(max_chars=2000)
    async with running(stub_folder) as one:
        status, body = await one.classify(["Short.", "Long. " * 1000, "Short, too."])
    assert status == 200
    assert [item["label"] is not None for item in body["data"]] == [True, False, True]
    bad = body["data"][1]
    assert (bad["error"]["kind"], bad["decision"]) == ("unanswerable", "review")
    assert "no model gave a usable answer" in bad["reason"]


@pytest.mark.asyncio
async def test_a_model_that_is_down_is_asked_again_by_the_next_request(stub_folder: Path, stub: StubProcess) -> None:
    async with running(stub_folder) as one:
        stub.change(models=["another"])
        status, body = await one.classify(["A text.", "Another one."])
        assert status == 503
        assert "one" in body["error"]["message"]  # the model
        stub.change(models=[])
        assert (await one.classify("A text."))[0] == 200
        assert 'pcs_texts_total{result="model_unavailable"} 2' in (await one.ask("GET", "/metrics"))[1]


@pytest.mark.asyncio
async def test_a_service_whose_models_do_not_answer_is_not_ready_until_they_may(
    stub_folder: Path, stub: StubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(stub_folder) as one:
        assert (await one.ask("GET", "/ready"))[1] | {"model": ""} == {
            "status": "ready",
            "reason": "",
            "model": "",
            "outdated": "",
            "queued_texts": 0,
        }
        stub.change(models=["another"])
        assert (await one.classify("A text."))[0] == 503
        status, ready = await one.ask("GET", "/ready")
        assert (status, ready["status"]) == (503, "not ready")
        assert ready["reason"] == "the models do not answer"
        assert (await one.ask("GET", "/health"))[0] == 200
        with monkeypatch.context() as patch:  # whoever is not ready gets no texts, which alone could tell
            patch.setattr(pipeline_serve, "TROUBLE_SECONDS", 0.0)
            assert (await one.ask("GET", "/ready"))[0] == 200
        assert (await one.ask("GET", "/ready"))[0] == 503
        stub.change(models=[])
        assert (await one.classify("A text."))[0] == 200
        assert (await one.ask("GET", "/ready"))[0] == 200


@pytest.mark.asyncio
async def test_a_service_that_answers_too_late_is_not_ready(stub_folder: Path, stub: StubProcess) -> None:
    stub.change(latency_s=0.6)
    async with running(stub_folder, seconds=0.2) as one:
        assert (await one.classify("Another slow text."))[0] == 503
        status, ready = await one.ask("GET", "/ready")
        assert (status, ready["reason"]) == (503, "texts are not answered in time")


@pytest.mark.asyncio
async def test_a_service_without_its_ledger_is_not_ready(stub_folder: Path, stub: StubProcess) -> None:
    async with running(stub_folder) as one:
        (stub_folder / "ledger.db").rename(stub_folder / "moved.db")
        status, ready = await one.ask("GET", "/ready")
        assert (status, ready["reason"]) == (503, "the ledger cannot be used")
        assert str(stub_folder) not in str(ready)
        (stub_folder / "moved.db").rename(stub_folder / "ledger.db")
        assert (await one.ask("GET", "/ready"))[0] == 200


@pytest.mark.asyncio
async def test_a_service_without_budget_is_not_ready_though_it_knows_some_texts(
    stub_folder: Path, stub: StubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_serve, "TROUBLE_SECONDS", 0.0)
    async with running(stub_folder, saving=Saving(max_calls=1)) as one:
        assert (await one.classify("Text a."))[0] == 200
        assert (await one.ask("GET", "/ready"))[0] == 200
        assert (await one.classify("Text b."))[0] == 503
        assert (await one.classify("Text a."))[0] == 200
        status, ready = await one.ask("GET", "/ready")
        assert (status, ready["reason"]) == (503, "the budget is spent: only texts that are known get a label")


@pytest.mark.asyncio
async def test_the_budget_is_shared_by_all_requests(stub_folder: Path, stub: StubProcess) -> None:
    async with running(stub_folder, saving=Saving(max_calls=3)) as one:
        answers = await asyncio.gather(*(one.classify(f"Text {number}.") for number in range(6)))
        assert sorted(status for status, _ in answers) == [200] * 3 + [503] * 3
        assert "budget" in next(body for status, body in answers if status == 503)["error"]["message"]
        status, body = await one.classify(["Text 0.", "A new text."])
        assert (status, body["data"][1]["error"]["kind"]) == (200, "budget_reached")
    assert stub.stats().answered == 3


@pytest.mark.asyncio
async def test_two_services_together_keep_to_the_budget(stub_folder: Path, stub: StubProcess) -> None:
    def paid() -> float:
        with Ledger(RunFolder(stub_folder).ledger) as ledger:
            return LedgerSpending(ledger, lambda _, sent, got: (sent + got) / 1e6).now().usd

    before = paid()
    saving = Saving(budget_usd=before + 0.012, prices={f"{stub.url}#one": (1.0, 1.0)})
    async with running(stub_folder, saving=saving) as one, running(stub_folder, saving=saving) as two:
        # one text at a time, so that no call is in flight when the next one is made
        served = {(await (one, two)[number % 2].classify(f"Text {number}."))[0] for number in range(400)}
    assert served == {200, 503}
    assert 0.9 * 0.012 < paid() - before <= 0.012


@pytest.mark.asyncio
async def test_metrics_are_in_the_format_of_prometheus(run: Path) -> None:
    async with running(run) as one:
        await one.classify(TEXTS[:3])
        await one.ask("GET", "/nowhere")
        served = str((await one.ask("GET", "/metrics"))[1])
    lines = served.splitlines()
    assert [line for line in lines if not line.startswith("#") and not SAMPLE.fullmatch(line)] == []
    assert 'pcs_requests_total{route="/v1/classify",status="200"} 1' in lines
    assert 'pcs_requests_total{route="unknown",status="404"} 1' in lines
    assert 'pcs_request_duration_seconds_count{route="/v1/classify"} 1' in lines
    assert sum(int(line.split()[-1]) for line in lines if line.startswith("pcs_texts_total")) == 3


def test_texts_unlike_those_of_the_run_are_noticed(run: Path) -> None:
    async def served(truths: list[str]) -> tuple[Any, str]:
        async with running(run) as one:
            for start in range(0, 100, 50):
                texts = [f"Case {5000 + start + n} looks {truths[n % len(truths)]}." for n in range(50)]
                _, last = await one.classify(texts)
                await one.classify(texts)  # copies count once
            _, last = await one.classify(texts[:1])
            return last, (await one.ask("GET", "/metrics"))[1]

    last, metrics = asyncio.run(served(["good", "bad"]))
    assert "warning" not in last
    assert last["data"][0]["decision"] == "accept"
    assert "pcs_drift 0" in metrics
    last, metrics = asyncio.run(served(["good"]))
    assert next(iter(last)) == "warning"
    assert last["warning"].startswith("these texts differ from the gold rows")
    assert "pcs run TEXTS.csv" in last["warning"]
    assert last["data"][0]["decision"] == "review"
    assert last["data"][0]["reason"].startswith("these texts differ from the gold rows")
    assert "pcs_drift 1" in metrics


@pytest.mark.asyncio
async def test_a_new_fit_is_taken_over_without_a_restart(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_serve, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(pipeline_serve, "RETRY_SECONDS", 0.2)
    async with running(run) as one:
        before = one.service.version
        assert (await one.classify(TEXTS[0]))[1]["model"] == before
        await asyncio.to_thread(fit_run, run, {"max_error": 0.2})
        while one.service.version == before:
            assert (await one.classify(TEXTS[1]))[0] == 200
            await asyncio.sleep(0.02)
        assert (await one.classify(TEXTS[0]))[1]["model"] == one.service.version
        (run / "variables/label/model.json").write_text("{")
        while not (ready := (await one.ask("GET", "/ready"))[1])["outdated"]:
            await asyncio.sleep(0.02)
        assert ready["outdated"] == "the run has changed and cannot be loaded: the log of the service says why"
        assert any("variables/label/model.json" in line for line in one.lines)
        assert (await one.classify(TEXTS[2]))[0] == 200
        assert any("the run has changed" in line for line in one.lines)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ZeroDivisionError("SECRET")])
@pytest.mark.asyncio
async def test_a_new_fit_that_cannot_be_loaded_is_said_and_tried_again(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    monkeypatch.setattr(pipeline_serve, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(pipeline_serve, "RETRY_SECONDS", 0.0)

    def fail(*_: object) -> None:
        raise error

    async with running(run) as one:
        before = one.service.version
        with monkeypatch.context() as patch:
            patch.setattr(pipeline_serve, "open_fitted", fail)
            await asyncio.to_thread(fit_run, run, {"max_error": 0.2})
            while not (ready := (await one.ask("GET", "/ready"))[1])["outdated"]:
                await asyncio.sleep(0.02)
            for _ in range(3):
                await one.ask("GET", "/ready")
                await asyncio.sleep(0.02)
        assert (ready["model"], str(run) in str(ready)) == (before, False)
        assert len([line for line in one.lines if "cannot be loaded" in line]) == 1
        while (ready := (await one.ask("GET", "/ready"))[1])["outdated"]:  # nothing in the folder changes
            await asyncio.sleep(0.02)
        assert ready["model"] != before
        assert "SECRET" not in str(one.lines)
    assert caplog.text == ""  # no traceback


@pytest.mark.asyncio
async def test_a_replaced_ledger_is_an_error_and_no_loss(run: Path) -> None:
    async with running(run) as one:
        await one.classify(TEXTS[0])
        (run / "ledger.db").rename(run / "other.db")
        (run / "ledger.db").write_bytes(b"")
        status, body = await one.classify(TEXTS[1])
    assert status == 503
    assert "start the service again" in body["error"]["message"]


@pytest.mark.asyncio
async def test_a_bug_in_judging_is_reported_without_the_text(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcs_annotator.core.votes.Votes.joined", lambda parts: 1 / 0)
    async with running(run) as one:
        status, body, lines = *(await one.classify("Case SECRET looks good.")), one.lines
    assert (status, body["error"]["type"]) == (500, "internal_error")
    assert any(line.startswith("ZeroDivisionError at") for line in lines)
    assert "SECRET" not in "".join(lines)


@pytest.mark.asyncio
async def test_other_commands_need_not_wait_under_constant_load(stub_folder: Path, stub: StubProcess) -> None:
    stub.change(latency_s=0.02)
    had_turn = asyncio.Event()

    async def client(one: Running, number: int) -> None:
        for text in itertools.count():
            assert (await one.classify(f"Text {text} of client {number}."))[0] == 200
            if had_turn.is_set():
                return

    def other_command() -> None:
        with lock_ledger(RunFolder(stub_folder).ledger, say=lambda line: None):
            pass

    async with running(stub_folder) as one:
        clients = [asyncio.create_task(client(one, number)) for number in range(8)]
        await asyncio.sleep(0.3)
        await asyncio.wait_for(asyncio.to_thread(other_command), 60)
        had_turn.set()
        await asyncio.gather(*clients)


@pytest.mark.asyncio
async def test_services_that_share_a_ledger_on_a_server_ask_at_once_and_pay_once(
    stub_folder: Path, stub: StubProcess, postgres: PostgresServer
) -> None:
    address = postgres.new_ledger()
    stub.change(latency_s=0.2)
    async with running(stub_folder, ledger=address) as one, running(stub_folder, ledger=address) as other:
        answers = await asyncio.gather(*(service.classify(TEXTS) for service in (one, other)))
    served = [body["usage"]["calls"] for _, body in answers]
    assert sum(served) == stub.stats().answered == len(TEXTS)
