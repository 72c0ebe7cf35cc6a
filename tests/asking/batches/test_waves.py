"""Asking in batches: the same votes at half the price, whatever becomes of a batch."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from pcs_annotator import ABSTAINED, NOT_ASKED, PcsWarning, PromptedRelation, RelationOptions
from pcs_annotator.asking.batches import batch, waves
from pcs_annotator.asking.batches.batch import write_batches
from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.call import Patience
from pcs_annotator.base.errors import AccessDenied, ConfigError, Interrupted, ModelError, ServerTrouble, TableError
from pcs_annotator.models.batch_apis import BatchApi
from tests.asking.stubbed import stubbed
from tests.runs.asking_in_batches import KEY, MODELS, Desk, MajorityOfThree, texts
from tests.stub import Behaviour

pytestmark = [pytest.mark.system, pytest.mark.enable_socket]


def at_desk(**behaviour: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Return a decorator for tests that ask a stub with this behaviour in batches."""
    return stubbed(Behaviour(key=KEY, **behaviour), Desk)


@pytest.mark.parametrize("provider", MODELS)
@at_desk()
async def test_a_batch_gives_the_votes_of_live_calls_at_half_their_price(desk: Desk, provider: str) -> None:
    live = Desk(desk.stub, desk.folder / "live")
    expected = await live.ask(texts(60), [MODELS[provider]], live=True)
    desk.stub.reset()
    votes = await desk.ask(texts(60), [MODELS[provider]])
    assert votes.codes.tolist() == expected.codes.tolist()
    assert (desk.tally.calls, desk.tally.from_ledger, desk.tally.rows) == (60, 0, 60)
    (bill,), (full,) = desk.bills, live.bills
    assert bill.usd == pytest.approx((full.usd or 0.0) / 2)
    assert (bill.calls, bill.input_tokens, bill.purpose) == (full.calls, full.input_tokens, full.purpose)
    stats = desk.stub.stats()
    assert (stats.answered, stats.asked_again) == (60, 0)
    (record,) = desk.records
    assert (record.end, record.answered, record.keys) == ("done", 60, [])
    assert record.usd == pytest.approx(bill.usd)


def elsewhere(desk: Desk) -> Desk:
    """Return a desk with another ledger."""
    return Desk(desk.stub, desk.folder / "live")


async def stopped_while_waiting(desk: Desk, *asked: Any) -> None:
    """Submit a batch that takes long, and stop."""
    desk.stub.change(batch_s=3600.0)
    asking = asyncio.create_task(desk.ask(*asked))
    while not any(record.id for record in desk.records):
        await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.wait([asking])
    desk.stub.change(batch_s=0.0)


@at_desk()
async def test_answers_are_joined_by_id_and_strange_or_repeated_ones_left_out(desk: Desk) -> None:
    expected = await elsewhere(desk).ask(texts(60), live=True)
    for ids, words in (("unknown", "2 results have IDs that were not asked for"), ("repeated", "2 come twice")):
        again = Desk(desk.stub, desk.folder / ids)
        desk.stub.change(batch_ids=ids)
        with pytest.warns(PcsWarning, match=words):
            votes = await again.ask(texts(60))
        assert votes.codes.tolist() == expected.codes.tolist()
        assert again.bills[0].calls == 60


@pytest.mark.parametrize("provider", ["openai", "groq", "anthropic"])
@at_desk(batch_end="expired", batch_done=0.2, batch_faults=1)
async def test_of_an_expired_batch_the_finished_part_is_kept_and_the_rest_submitted_again(
    desk: Desk, provider: str
) -> None:
    votes = await desk.ask(texts(250), [MODELS[provider]])
    assert votes.codes.min() >= 0
    first, second = desk.records
    assert (first.end, first.answered, second.end, second.answered) == ("expired", 50, "done", 200)
    assert any("50 of 250 requests were answered, and are kept" in said for said in desk.said)
    stats = desk.stub.stats()
    assert (stats.answered, stats.asked_again, desk.tally.calls) == (250, 0, 250)


@pytest.mark.parametrize("provider", ["openai", "groq", "anthropic"])
@at_desk(batch_end="cancelled", batch_faults=1)
async def test_a_cancelled_batch_stops_the_run_and_the_next_one_goes_on(desk: Desk, provider: str) -> None:
    with pytest.raises(Interrupted, match=r"batch_1 of .*; 100 of 200 requests were answered, and are kept"):
        await desk.ask(texts(200), [MODELS[provider]])
    assert desk.bills[0].calls == 100
    votes = await desk.ask(texts(200), [MODELS[provider]])
    assert votes.codes.min() >= 0
    assert desk.tally.calls == 100
    assert desk.stub.stats().asked_again == 0


@at_desk(batch_end="failed")
async def test_a_batch_that_fails_as_a_whole_is_an_error_with_the_servers_reason(desk: Desk) -> None:
    with pytest.raises(ModelError, match="batch_1 of openai:gpt-4o-mini failed: invalid_json_line Line 1"):
        await desk.ask(texts(60))
    desk.stub.change(batch_end="completed")
    assert (await desk.ask(texts(60))).codes.min() >= 0


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@at_desk(filter_word="number 1")
async def test_refused_texts_are_in_the_error_file_and_are_not_asked_again(desk: Desk, provider: str) -> None:
    votes = await desk.ask(texts(60), [MODELS[provider]])
    silent = (votes.codes == ABSTAINED).ravel()
    assert silent.sum() == sum("number 1" in item.text for item in texts(60))
    assert desk.tally.refused == silent.sum()
    assert desk.stub.stats().requests == 60


@at_desk(filter_word="Text number")
async def test_a_completed_batch_may_have_no_output_file_at_all(desk: Desk) -> None:
    votes = await desk.ask(texts(60))
    assert (votes.codes == ABSTAINED).all()
    assert desk.stub.stats().requests == 60
    (record,) = desk.records
    assert (record.end, record.answered) == ("done", 0)


@at_desk(share_500=0.3)
async def test_requests_that_failed_are_asked_again_the_small_rest_live(desk: Desk) -> None:
    votes = await desk.ask(texts(250), patience=Patience(first_wait=0.01))
    assert votes.codes.min() >= 0
    first, second = desk.records
    assert first.answered == 250 - second.requests
    assert 0 < second.requests - second.answered <= 50
    assert desk.stub.stats().answered == 250
    assert desk.stub.stats().asked_again == 0


@at_desk(share_500=1)
async def test_batches_that_bring_nothing_end_the_run_with_the_reason(desk: Desk) -> None:
    with pytest.raises(ModelError, match=r"bring no answers \(.*The server had an error"):
        await desk.ask(texts(60))


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@at_desk(batch_tokens=60_000, batch_s=0.1)
async def test_a_full_quota_is_waited_for_and_batches_are_made_smaller(desk: Desk, provider: str) -> None:
    votes = await desk.ask(texts(500), [MODELS[provider]])
    assert votes.codes.min() >= 0
    stats = desk.stub.stats()
    assert (stats.answered, stats.asked_again) == (500, 0)
    sizes = [record.requests for record in desk.records]
    assert sum(sizes) == 500
    assert max(sizes) < 500


@at_desk(batch_drop=True)
async def test_a_broken_download_is_repeated_and_pays_for_nothing_twice(desk: Desk) -> None:
    with pytest.warns(PcsWarning, match="trying again"):
        await desk.ask(texts(700))
    (bill,) = desk.bills
    assert (bill.calls, desk.stub.stats().answered, desk.tally.calls) == (700, 700, 700)


@at_desk()
async def test_a_budget_counts_batches_at_half_price_and_is_not_passed(desk: Desk) -> None:
    whole = elsewhere(desk)
    await whole.ask(texts(100), live=True)
    budget = 0.35 * (whole.bills[0].usd or 0.0)
    votes = await desk.ask(texts(100), budget=Budget(usd=budget))
    (bill,) = desk.bills
    assert bill.usd is not None
    assert 0.6 * budget < bill.usd <= budget
    assert desk.tally.failed["budget reached"] == (votes.codes == NOT_ASKED).sum()
    assert 40 < bill.calls < 80


@at_desk()
async def test_graded_answers_come_in_batches_too(desk: Desk) -> None:
    expected = await elsewhere(desk).ask(texts(60), live=True, answers="graded")
    votes = await desk.ask(texts(60), answers="graded")
    assert votes.grades is not None
    assert votes.grades.tolist() == expected.grades.tolist()  # type: ignore[union-attr]  # live ones are graded


@at_desk(logprobs="refused")
async def test_a_model_that_refuses_log_probabilities_gives_hard_answers_in_the_next_wave(desk: Desk) -> None:
    with pytest.warns(PcsWarning, match="gives no log-probabilities"):
        votes = await desk.ask(texts(60), answers="auto")
    assert (votes.grades is None, votes.codes.min() >= 0) == (True, True)
    assert [record.answered for record in desk.records] == [0, 60]


@at_desk()
async def test_rewrites_are_a_wave_before_the_questions_about_them(desk: Desk) -> None:
    given: dict[str, Any] = {
        "relations": ("original", PromptedRelation("formal", "Rewrite the text: formally.")),
        "rewriter": "openai:gpt-4o",
        "choosing": RelationOptions(checked=False),
    }
    expected = await elsewhere(desk).ask(texts(80), live=True, **given)
    votes = await desk.ask(texts(80), **given)
    assert votes.codes.tolist() == expected.codes.tolist()
    purposes = [(record.model, record.purpose, record.answered) for record in desk.records]
    assert sorted(purposes[:2]) == [("openai:gpt-4o", "rewrite", 80), ("openai:gpt-4o-mini", "label", 80)]
    assert purposes[2:] == [("openai:gpt-4o-mini", "label", (votes.codes[:, :, 1] >= 0).sum())]


@at_desk()
async def test_models_without_a_batch_api_are_asked_live_beside_the_others(desk: Desk) -> None:
    votes = await desk.ask(texts(60), [MODELS["openai"], f"{desk.stub.url}#other"])
    assert votes.codes.min() >= 0
    assert {record.model: record.answered for record in desk.records} == {"openai:gpt-4o-mini": 60}
    with pytest.raises(ConfigError, match="no model here has a batch API: use models of anthropic, azure, groq"):
        await desk.ask(texts(60), [f"{desk.stub.url}#other"])


@at_desk(latency_s=0.01)
async def test_a_limit_that_batches_use_up_is_not_waited_for_by_live_calls(desk: Desk) -> None:
    async with asyncio.timeout(60):
        votes = await desk.ask(texts(60), [MODELS["openai"], f"{desk.stub.url}#other"], budget=Budget(calls=70))
    assert desk.tally.failed["budget reached"] == (votes.codes == NOT_ASKED).sum() == 50


@at_desk()
async def test_a_model_that_can_never_be_asked_is_reported_before_a_batch_is_paid_for(desk: Desk) -> None:
    desk.stub.change(models=("gpt-4o-mini",))
    with pytest.raises(AccessDenied, match="has no model 'other'"):
        await desk.ask(texts(60), [MODELS["openai"], f"{desk.stub.url}#other"])
    assert desk.records == []


@at_desk()
async def test_a_wrong_key_ends_the_run_and_says_which(desk: Desk) -> None:
    desk.stub.change(key="another")
    with pytest.raises(AccessDenied, match="check OPENAI_API_KEY"):
        await desk.ask(texts(60))


@at_desk()
async def test_a_batch_that_the_provider_no_longer_has_is_asked_again(desk: Desk) -> None:
    await stopped_while_waiting(desk, texts(60))
    desk.stub.batches.batches.clear()
    with pytest.warns(PcsWarning, match="batch_1 of openai:gpt-4o-mini is lost"):
        votes = await desk.ask(texts(60))
    assert votes.codes.min() >= 0


@pytest.mark.parametrize("provider", ["openai", "groq", "anthropic"])
@at_desk()
async def test_a_batch_whose_id_was_lost_is_found_again(desk: Desk, provider: str) -> None:
    """Killed after the server started the batch, and before its ID was written down."""
    await stopped_while_waiting(desk, texts(60), [MODELS[provider]])
    (record,) = desk.records
    write_batches(desk.folder / "batches.json", [replace(record, id="")])
    votes = await desk.ask(texts(60), [MODELS[provider]])
    assert votes.codes.min() >= 0
    assert desk.stub.stats().requests == 60
    assert [record.answered for record in desk.records] == [60]


@at_desk()
async def test_a_batch_that_was_never_started_is_submitted_again(desk: Desk) -> None:
    await stopped_while_waiting(desk, texts(60))
    (record,) = desk.records
    desk.stub.batches.batches.clear()
    write_batches(desk.folder / "batches.json", [replace(record, id="")])
    assert (await desk.ask(texts(60))).codes.min() >= 0
    assert desk.stub.stats().requests == 60


@at_desk()
async def test_batches_of_models_that_are_no_longer_asked_are_still_collected(desk: Desk) -> None:
    await stopped_while_waiting(desk, texts(60), ["openai:gpt-4o"])
    await desk.ask(texts(60))
    assert {bill.model: bill.calls for bill in desk.bills} == {"openai:gpt-4o": 60, "openai:gpt-4o-mini": 60}


@pytest.mark.parametrize("text", ["{", '{"batches": [{"id": 3}]}', '{"batches": 7}'])
@at_desk()
async def test_a_damaged_record_of_batches_is_an_error_that_names_the_file(desk: Desk, text: str) -> None:
    (desk.folder / "batches.json").write_text(text, encoding="utf-8")
    with pytest.raises(TableError, match=r"batches\.json .*remove it, if you can do without the answers"):
        await desk.ask(texts(60))


@at_desk(labels=("good", "bad"))
async def test_only_what_labels_still_need_is_asked_in_later_waves(desk: Desk) -> None:
    """With a strategy, every wave asks what the next step of each text needs."""
    models = [MODELS["openai"], "openai:gpt-4o", MODELS["groq"]]
    everything = await elsewhere(desk).ask(texts(200), models, live=True)
    desk.stub.reset()
    votes = await desk.ask(texts(200), models, strategy=MajorityOfThree())
    first, second = everything.codes[:, :2, 0, 0].T
    agree = first == second
    assert (votes.codes[:, :2] == everything.codes[:, :2]).all()
    assert ((votes.codes[:, 2, 0, 0] == NOT_ASKED) == agree).all()
    assert [record.requests for record in desk.records] == [200, 200, int((~agree).sum())]
    assert desk.stub.stats().requests == 400 + int((~agree).sum())
    assert desk.tally.spared == agree.sum()


@at_desk()
async def test_azure_may_have_another_deployment_for_batches(desk: Desk) -> None:
    desk.more = {"AZURE_BATCH_DEPLOYMENT": "nightly"}
    await desk.ask(texts(60), ["azure:gpt-4o-mini"])
    (batch,) = desk.stub.batches.batches.values()
    assert {json.loads(body)["model"] for _, body, _ in batch.lines} == {"nightly"}
    assert desk.bills[0].model == "azure:gpt-4o-mini"


@pytest.mark.parametrize(("name", "most"), [("most_lines", 25), ("MOST_BYTES", 30_000)])
@at_desk()
async def test_batches_are_no_larger_than_providers_take(
    desk: Desk, name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchApi if name == "most_lines" else batch, name, most)
    assert (await desk.ask(texts(60))).codes.min() >= 0
    sizes = [record.requests for record in desk.records]
    assert sum(sizes) == 60
    assert len(sizes) > 1
    if name == "most_lines":
        assert sizes == [25, 25, 10]
    else:
        inputs = [len(desk.stub.batches.files[record.uploaded]) for record in desk.records]
        assert max(inputs) <= most < inputs[0] + inputs[1]


@pytest.mark.parametrize("provider", ["openai", "groq", "anthropic"])
@at_desk(batch_lost=True)
async def test_a_batch_is_not_started_twice_if_the_connection_breaks_at_its_start(desk: Desk, provider: str) -> None:
    with pytest.warns(PcsWarning, match="no connection to .*; trying again"):
        await desk.ask(texts(60), [MODELS[provider]])
    assert len(desk.stub.batches.batches) == 1
    assert desk.stub.stats().requests == 60


@at_desk(models=("other",))
async def test_a_model_that_does_not_exist_is_an_error_although_its_batch_ended(desk: Desk) -> None:
    with pytest.raises(AccessDenied, match=r"has no model 'gpt-4o-mini' \(404\): check the spelling"):
        await desk.ask(texts(60))
    assert [record.end for record in desk.records] == ["done"]


@at_desk(batch_s=3600.0)
async def test_progress_is_shown_while_batches_are_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waves, "SAY_SECONDS", 0.0)
    asking = asyncio.create_task(desk.ask(texts(60)))
    while "batches: 0 of 60 requests are done" not in desk.said:
        await asyncio.sleep(0.01)
    desk.stub.change(batch_s=0.0)
    assert (await asking).codes.min() >= 0


@at_desk()
async def test_an_open_batch_whose_key_is_missing_is_an_error_that_names_it(desk: Desk) -> None:
    await stopped_while_waiting(desk, texts(60), [MODELS["groq"]])
    desk.more = {"GROQ_API_KEY": ""}
    with pytest.raises(ConfigError, match=r"batch_1 of groq:.* is still open: groq needs a key: set GROQ_API_KEY"):
        await desk.ask(texts(60))
    write_batches(desk.folder / "batches.json", [replace(desk.records[0], model="scripted:hash")])
    with pytest.raises(ConfigError, match="scripted:hash has no batch API; take this batch out of the file"):
        await desk.ask(texts(60))


@at_desk()
async def test_a_server_that_is_not_there_ends_the_run_before_anything_is_submitted(desk: Desk) -> None:
    desk.more = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    with (
        pytest.warns(PcsWarning, match="trying again"),
        pytest.raises(ServerTrouble, match="check the URL and the network"),
    ):
        await desk.ask(texts(60), patience=Patience(attempts=2))
    assert desk.records == []
