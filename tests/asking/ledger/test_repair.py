from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pcs_annotator.asking.ledger.ledger import Ledger, LedgerEntry, entry_of
from pcs_annotator.asking.ledger.repair import is_sound, salvage
from pcs_annotator.core.chat import Reply, Usage
from pcs_annotator.errors import LedgerError

CALLS = 600
PAGE = 4096


def paid(number: int) -> LedgerEntry:
    rng = random.Random(number)
    text = "wörd " * rng.choice([0, 1, 2, 30, 300, 3000])  # from nothing to several pages
    usage = Usage(input_tokens=None if number % 7 == 0 else 100, output_tokens=number % 50)
    reply = Reply(text=text, finish="stop", usage=usage, latency=0.5)
    return entry_of(rng.randbytes(16), "m", "label", reply, None if number % 5 == 0 else 0.001 * number)


def again(entry: LedgerEntry) -> LedgerEntry:
    """Return the same call, paid for a second time."""
    return entry._replace(asked_at=entry.asked_at + 1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[bytes, LedgerEntry]]:
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    entries = [paid(number) for number in range(CALLS)]

    async def put(ledger: Ledger, some: list[LedgerEntry]) -> None:
        await asyncio.gather(*map(ledger.put, some))

    with Ledger(path) as ledger:
        asyncio.run(put(ledger, entries))
        asyncio.run(put(ledger, [again(entries[0])]))
        ledger.remember_graded("m", gives=True)
        # what SQLite has not merged yet is in a file of its own, as after a crash
        shutil.copy(path, path.with_name("crash.db"))
        shutil.copy(f"{path}-wal", path.with_name("crash.db-wal"))
    return path, {entry.key: entry for entry in entries}


def overwritten(
    share: float, filler: Callable[[random.Random, int], bytes], size: int = PAGE
) -> Callable[[bytes], bytes]:
    def damage(content: bytes) -> bytes:
        rng, made = random.Random(1), bytearray(content)
        pages = range(1, len(content) // PAGE)
        for page in rng.sample(pages, int(share * len(pages))):
            place = PAGE * page + rng.randrange(0, PAGE, size)
            made[place : place + size] = filler(rng, size)
        return bytes(made)

    return damage


@pytest.mark.parametrize(
    ("damage", "least"),
    [
        pytest.param(lambda content: content[: len(content) // 2 + 777], 0.4, id="truncated"),
        pytest.param(lambda content: bytes(PAGE) + content[PAGE:], 1.0, id="first page zero"),
        pytest.param(lambda content: random.Random(1).randbytes(100) + content[100:], 1.0, id="header overwritten"),
        pytest.param(lambda content: content[:16] + b"\x04\0" + content[18:], 1.0, id="another page size"),
        pytest.param(lambda content: content[:60] + b"\xff" * 4 + content[64:], 1.0, id="no such schema"),
        pytest.param(overwritten(0.05, lambda _, size: bytes(size)), 0.9, id="pages zero"),
        pytest.param(overwritten(0.05, lambda rng, size: rng.randbytes(size)), 0.9, id="pages random"),
        pytest.param(overwritten(0.05, lambda _, size: bytes(size), 512), 0.9, id="sectors zero"),
    ],
)
def test_what_can_be_read_is_saved_and_right(
    damage: Callable[[bytes], bytes],
    least: float,
    whole: tuple[Path, dict[bytes, LedgerEntry]],
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(damage(whole[0].read_bytes()))
    assert not is_sound(path)
    with pytest.raises(LedgerError, match=r"damaged.*pcs ledger repair .*ledger\.db"), Ledger(path) as ledger:
        list(ledger.entries())
    found = salvage(path)
    assert len(found.calls) >= least * CALLS
    assert {key: whole[1].get(key) for key in found.calls} == found.calls


def test_calls_that_are_not_merged_yet_are_saved(whole: tuple[Path, dict[bytes, LedgerEntry]]) -> None:
    path = whole[0].with_name("crash.db")
    path.write_bytes(bytes(PAGE) + path.read_bytes()[PAGE:])
    found = salvage(path)
    assert found.calls == whole[1]
    assert found.models == {"m": True}
    second = again(whole[1][paid(0).key])
    assert list(found.spent.values()) == [[second.asked_at, "m", "label", 1, None, 0, None]]
    with Ledger(path.with_name("again.db")) as restored:
        restored.restore(found.calls.values(), found.models.items(), found.spent.values())
        assert (sum(bill.calls for bill in restored.bills()), restored.graded_models()) == (CALLS + 1, {"m": True})
    assert is_sound(path.with_name("again.db"))
