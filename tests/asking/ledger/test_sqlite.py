import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from pcs_annotator.asking.ledger.open_ledger import AnyLedger, open_ledger
from pcs_annotator.asking.ledger.sqlite import SCHEMA, Ledger, call_key, entry_of
from pcs_annotator.base.errors import LedgerError
from pcs_annotator.core.chat import Constraint, Message, Reply, Request, Usage
from pcs_annotator.core.ledger_address import LedgerAddress

NewLedger = Callable[[], LedgerAddress]


def request(text: str = "hello", **settings: object) -> Request:
    return Request(messages=(Message("system", "label it"), Message("user", text)), **settings)  # type: ignore[arg-type]  # fields of Request


def put(ledger: AnyLedger, keys: list[bytes], model: str = "m", text: str = "yes") -> None:
    async def all_at_once() -> None:
        reply = Reply(text=text, usage=Usage(input_tokens=10, output_tokens=2), latency=0.5)
        await asyncio.gather(*(ledger.put(entry_of(key, model, "label", reply, 0.001)) for key in keys))

    asyncio.run(all_at_once())


def find(ledger: AnyLedger, *keys: bytes) -> dict[bytes, Reply]:
    return asyncio.run(ledger.find(keys))


def test_stored_replies_are_found_again_also_after_reopening(new_ledger: NewLedger) -> None:
    address, keys = new_ledger(), [bytes([number]) * 16 for number in range(200)]
    with open_ledger(address) as ledger:
        put(ledger, keys)
        assert set(find(ledger, *keys)) == set(keys)
    with open_ledger(address) as again:
        found = find(again, keys[3], b"\xff" * 16)
    assert list(found) == [keys[3]]
    assert found[keys[3]] == Reply(text="yes", usage=Usage(input_tokens=10, output_tokens=2), latency=0.5)


def test_many_keys_are_looked_up_in_one_go(new_ledger: NewLedger) -> None:
    keys = [number.to_bytes(16) for number in range(1200)]
    with open_ledger(new_ledger()) as ledger:
        put(ledger, keys)
        assert len(find(ledger, *keys)) == 1200


@pytest.mark.parametrize(
    "other",
    [
        request("hello "),
        request(max_tokens=5),
        request(constraint=Constraint(choices=("a", "b"))),
        request(logprobs=5),
        Request(messages=(Message("user", "label it"), Message("user", "hello"))),
    ],
)
def test_any_difference_in_the_question_is_another_key(other: Request) -> None:
    assert call_key("m", request(), 0) != call_key("m", other, 0)


def test_model_and_draw_are_part_of_the_key_and_equal_questions_share_it() -> None:
    assert call_key("m", request(), 0) == call_key("m", request(), 0)
    assert len({call_key("m", request(), 0), call_key("n", request(), 0), call_key("m", request(), 1)}) == 3


KEYED = [
    request(),
    request("é 😀 \ud800", max_tokens=64, logprobs=5),
    request(constraint=Constraint(choices=["a", "ü"])),
    request(constraint=Constraint(json_schema={"type": "object", "properties": {"ä": {}}})),
    Request(messages=(Message("user", "alone"),), max_tokens=5),
    Request(messages=tuple(Message("user", word) for word in ("asked", "answered", "asked again"))),
]


@pytest.mark.parametrize("asked", KEYED)
def test_keys_are_those_of_all_earlier_versions_so_that_old_ledgers_are_found(asked: Request) -> None:
    form = asked.constraint
    head = json.dumps(
        ["m", 2, [0.0, None, asked.max_tokens, None], [list(form.choices), form.json_schema] if form else None]
    )
    said = json.dumps([part for message in asked.messages for part in (message.role, message.content)])
    whole = f"{head[:-1]}, {'true' if asked.logprobs else 'false'}, {said[1:]}"
    assert call_key("m", asked, 2).own == hashlib.blake2b(whole.encode(), digest_size=16).digest()


def test_lone_surrogates_and_nul_are_stored_as_well_as_utf_8_can(new_ledger: NewLedger) -> None:
    with open_ledger(new_ledger()) as ledger:
        key = call_key("m", request("\ud800\0"), 0).own
        put(ledger, [key], text="a\ud800b\0c")
        (reply,) = find(ledger, key).values()
        (entry,) = ledger.entries()
    assert reply.text == entry.reply == "a?b\0c"


def test_replies_still_waiting_when_the_loop_ends_are_written_at_closing(new_ledger: NewLedger) -> None:
    async def leave_at_once(ledger: AnyLedger) -> None:
        task = asyncio.create_task(ledger.put(entry_of(b"k" * 16, "m", "label", Reply(text="yes"), None)))
        await asyncio.sleep(0)
        task.cancel()

    address = new_ledger()
    with open_ledger(address) as ledger:
        asyncio.run(leave_at_once(ledger))
    with open_ledger(address) as ledger:
        assert find(ledger, b"k" * 16)


def test_sizes_sum_up_per_model_and_an_unknown_price_stays_unknown(new_ledger: NewLedger) -> None:
    with open_ledger(new_ledger()) as ledger:
        put(ledger, [b"1" * 16, b"2" * 16], model="priced")

        async def unpriced() -> None:
            await ledger.put(entry_of(b"3" * 16, "free?", "rewrite", Reply(text="x"), None))

        asyncio.run(unpriced())
        unknown, priced = ledger.sizes()
        assert ledger.mean_answers() == {("priced", "label"): 2}
        assert (ledger.count(), ledger.count(until=0)) == (3, 0)
        assert (ledger.paid_until(0), ledger.paid_until(9e9)) == ((0, None), (3, None))
    assert (priced.model, priced.calls, priced.input_tokens, priced.output_tokens) == ("priced", 2, 20, 4)
    assert priced.usd == pytest.approx(0.002)
    assert (unknown.purpose, unknown.usd) == ("rewrite", None)


def test_prune_deletes_by_model_and_by_age(new_ledger: NewLedger) -> None:
    with open_ledger(new_ledger()) as ledger:
        put(ledger, [b"1" * 16], model="a")
        put(ledger, [b"2" * 16], model="b")
        for model in ("a", "b"):
            ledger.remember_graded(model, gives=False)
            ledger.remember_graded(model, gives=model == "b")
        assert ledger.graded_models() == {"a": False, "b": True}
        assert ledger.prune(model="a") == 1
        assert ledger.prune(model="a", before=4e9) == 0
        assert ledger.graded_models() == {"b": True}
        assert ledger.prune(before=0) == 0
        assert ledger.prune(before=4e9) == 1
        assert ledger.sizes() == []
        assert [(bill.model, bill.calls, bill.usd) for bill in ledger.bills()] == [("a", 1, 0.001), ("b", 1, 0.001)]


def test_what_was_paid_for_twice_is_in_the_bill(new_ledger: NewLedger) -> None:
    with open_ledger(new_ledger()) as ledger:
        put(ledger, [b"1" * 16, b"2" * 16])
        put(ledger, [b"2" * 16], text="the second reply is not kept")
        (kept,), (paid,) = ledger.sizes(), ledger.bills()
        assert (kept.calls, paid.calls, paid.input_tokens) == (2, 3, 30)
        assert paid.usd == pytest.approx(0.003)
        assert find(ledger, b"2" * 16)[b"2" * 16].text == "yes"
        assert [*ledger.keep_sums().by_day(lambda *_: None).values()] == [pytest.approx(0.003)]
        assert [row[3:6] for row in ledger.spending_by_day()] == [(3, 30, 6)]


def test_what_was_paid_for_in_a_ledger_set_aside_is_in_the_bill(tmp_path: Path) -> None:
    with Ledger(tmp_path / "old.db") as old:
        put(old, [b"1" * 16, b"2" * 16])
        (paid,) = old.bills()
    with Ledger(tmp_path / "new.db") as new:
        new.take_over_spending(tmp_path / "old.db")
        assert (new.sizes(), new.bills()) == ([], [paid])


def test_calls_without_a_known_price_count_at_the_price_that_is_known_now(new_ledger: NewLedger) -> None:
    reply = Reply(text="x", usage=Usage(input_tokens=10, output_tokens=2))
    with open_ledger(new_ledger()) as ledger:
        asyncio.run(ledger.put(entry_of(b"1" * 16, "m", "label", reply, None)))
        assert [*ledger.keep_sums().by_day(lambda _, sent, got: sent + 100.0 * got).values()] == [210]


def test_import_copies_what_is_new_between_ledgers_of_both_kinds(new_ledger: NewLedger, tmp_path: Path) -> None:
    first, second = new_ledger(), new_ledger()
    with open_ledger(first) as source:
        put(source, [b"1" * 16, b"2" * 16])
        source.remember_graded("m", gives=True)
    with open_ledger(second) as ledger, Ledger(tmp_path / "file.db") as file:
        put(ledger, [b"2" * 16])
        put(file, [b"3" * 16])
        with open_ledger(first) as source:
            assert (ledger.import_from(source), file.import_from(source)) == (1, 2)
        assert (ledger.import_from(file), ledger.import_from(file)) == (1, 0)
        assert {entry.key[0] for entry in ledger.entries()} == {entry.key[0] for entry in file.entries()} == {*b"123"}
        assert ledger.graded_models() == file.graded_models() == {"m": True}


def test_a_ledger_with_a_newer_schema_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    connection.close()
    with pytest.raises(LedgerError, match=rf"ledger\.db.*schema {SCHEMA + 1}"), Ledger(tmp_path / "ledger.db"):
        pass


def test_a_damaged_file_is_reported_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(LedgerError, match=r"ledger\.db.*damaged"), Ledger(path):
        pass
    assert path.read_bytes() == b"this is no database" * 100


def test_a_locked_ledger_is_reported_and_works_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcs_annotator.asking.ledger.sqlite.BUSY_SECONDS", 0.05)
    with Ledger(tmp_path / "ledger.db") as ledger:
        other = sqlite3.connect(tmp_path / "ledger.db")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match=r"ledger\.db.*another process"):
            put(ledger, [b"1" * 16])
        other.rollback()
        other.close()
        put(ledger, [b"1" * 16])
        assert asyncio.run(ledger.find([b"1" * 16]))


def test_a_full_disk_is_reported_and_stored_replies_stay(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        put(ledger, [b"1" * 16])
        # SQLite's own limit on pages is how a full disk looks to it
        (pages,) = ledger._connected().execute("PRAGMA page_count").fetchone()
        ledger._connected().execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(LedgerError, match=r"ledger\.db.*disk is full"):
            put(ledger, [number.to_bytes(16) for number in range(500)], text="x" * 500)
        assert asyncio.run(ledger.find([b"1" * 16]))


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=r"ledger\.db.*another path"), Ledger(tmp_path / "file" / "ledger.db"):
        pass


def test_a_closed_ledger_raises_a_message_about_the_with_block(new_ledger: NewLedger) -> None:
    with pytest.raises(LedgerError, match="with block"):
        find(open_ledger(new_ledger()), b"1" * 16)
    with pytest.raises(LedgerError, match="with block"):
        open_ledger(new_ledger()).count()
