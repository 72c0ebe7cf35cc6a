"""The levels of a run folder: every test of its gold labels, and how much error probability each has used.

`levels.json` remembers the tests, so that all those of a claim together are as certain as each of them says; models
remember those they come from, and without them, nothing is promised. Promises on average have no level, but whoever
tries until something is accepted gets the sum of the errors that all of them allow. See `docs/design/promises.md`.
"""

import json
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, NamedTuple

import numpy as np

from pcs_annotator.base.errors import TableError
from pcs_annotator.base.text import counted, listed
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.promise.certificate import Certificate, fingerprint
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.runs.paths import USUAL, RunFolder
from pcs_annotator.runs.settings import LearnSettings
from pcs_annotator.tables.files import expecting, read_json, write_json

GROWTH = 1.5
REMEDY = "put back the file that pcs wrote; until then nothing is promised"


Claim = Literal["promise", "sets", "table"]  # about accepted labels, whole sets, or the table, each with its certainty


class LevelTest(NamedTuple):
    """One test."""

    claim: Claim
    key: str  # a digest of votes, gold and settings; the same test again is the same one
    rows: int  # gold rows that could support a promise
    used: float  # how much error probability it has used
    promised: bool  # whether it found a promise
    average: bool = False  # whether it was for a promise on average; then `used` is the error that this allows


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelLedger:
    """All tests of a run folder."""

    run: str  # a random name, by which a copy of the folder is recognised
    place: str  # where the folder is
    tests: tuple[LevelTest, ...] = ()  # first to last
    gold: tuple[str, ...] = ()  # ids of the gold rows at the last one
    refused: str = ""  # why no promise may be made; empty when one may

    @property
    def keys(self) -> list[str]:
        """What tells the tests apart, first to last."""
        return [test.key for test in self.tests]

    def spent_before(self, key: str, claim: Claim = "promise", *, average: bool = False) -> float:
        """Return how much the tests of a claim before this one have used; before a new one, those are all."""
        before = self.tests[: self.keys.index(key)] if key in self.keys else self.tests
        return float(sum(test.used for test in before if (test.claim, test.average) == (claim, average)))

    def cost(self, key: str, settings: LearnSettings, rows: int) -> str:
        """Return what a new test of a promise costs, if there were others; empty if it costs nothing."""
        spent = self.spent_before(key)
        if key in self.keys or self.refused or settings.max_error is None or settings.promise == "false-discoveries":
            return ""
        promise = Promise(max_error=settings.max_error, certainty=settings.certainty)
        if not 0 < spent < promise.delta:
            return ""
        level, first = (f"{100 * promise.level(rows, before):.2g} %" for before in (spent, 0.0))
        return (
            f"this fit tests gold labels that were tested before, so at {level} instead of {first}; what it uses "
            f"of the {100 * promise.delta:.3g} % is gone for good"
        )

    def too_early(self, rows: int, foretold: int | None) -> str:
        """Return why a test at so many gold rows would waste certainty; empty if it is worth it, or costs nothing."""
        last = next((test for test in reversed(self.tests) if test.claim == "promise" and not test.average), None)
        if last is None or not last.used:
            return ""
        enough = max(foretold or math.ceil(GROWTH * last.rows), last.rows + 1)
        if rows >= enough:
            return ""
        return (
            f"not tested again yet: the next test is at {enough:,} random gold rows, and there are {rows:,}, because "
            "each test makes the next one harder"
        )

    def with_test(self, test: LevelTest, gold: Iterable[str]) -> "LevelLedger":
        """Return the ledger with a test, if it is new."""
        return self if test.key in self.keys else replace(self, tests=(*self.tests, test), gold=tuple(gold))


def key_of(votes: Votes, gold: Iterable[object], settings: LearnSettings, kind: str = "one", asked: object = "") -> str:
    """Return what tells tests apart: votes on gold rows, their gold, settings, how questions are saved (`asked`)."""
    codes = gold_codes(votes, gold)
    labelled = codes != UNLABELLED
    seen = fingerprint(votes.take(labelled), codes[labelled], "")
    unshaping = ("resamples", "sets", *(name for name in ("by", "tolerance") if not getattr(settings, name)))
    shaping = [value for name, value in asdict(settings).items() if name not in unshaping]
    shaping += [kind, asked, *(fingerprint(rows, of_rows, "") for rows, of_rows in votes.siblings)]
    return blake2b(json.dumps([shaping, seen], default=str).encode(), digest_size=8).hexdigest()


def read_levels(folder: RunFolder, gold: Iterable[str], key: str) -> LevelLedger:
    """Return the ledger of a folder, and why this test, of the gold rows of these ids, may find no promise."""
    here = str(folder.path.resolve())
    new = LevelLedger(run=token_hex(8), place=here)
    try:
        ledger = _read(folder) or new
    except TableError as error:
        return replace(new, refused=str(error))
    gone, refused = sorted(set(ledger.gold) - set(gold)), ""
    if missing := _tests_of_models(folder) - {*ledger.keys}:
        refused = f"{folder.levels} does not have {counted(len(missing), 'test')} that a fit of this run made: {REMEDY}"
    elif gone:
        refused = (
            f"{len(gone)} gold rows of an earlier test have no gold label now ({listed(map(repr, gone), len(gone))}), "
            "and rows that are chosen after looking prove nothing: put these labels back, or start in a new folder"
        )
    elif ledger.place != here and key not in ledger.keys and _is_run(folder, ledger):
        refused = (
            f"this folder is a copy of {ledger.place}, and both would use the same certainty: continue there, or label "
            "other rows at random in a new folder"
        )
    return replace(ledger, place=here, refused=refused)


def write_levels(folder: RunFolder, ledger: LevelLedger) -> None:
    """Write the ledger of a folder."""
    tests = [test._asdict() for test in ledger.tests]
    values = {"run": ledger.run, "place": ledger.place, "gold": ledger.gold, "tests": tests}
    write_json(folder.levels, {**_parts_of(folder), folder.part or USUAL: values})


def forget_gold(folder: RunFolder, id: str) -> None:
    """Remove the ID of a gold row from the tests of a folder."""
    if (ledger := _read(folder)) is not None and id in ledger.gold:
        write_levels(folder, replace(ledger, gold=tuple(each for each in ledger.gold if each != id)))


def note_test(
    folder: RunFolder, ledger: LevelLedger, claim: Claim, key: str, certificate: Certificate | None, gold: Iterable[str]
) -> str | None:
    """Write the test that a certificate comes from into the ledger; return its key, if anything was tested."""
    if certificate is None or ledger.refused or not (certificate.level or not certificate.promise.tested):
        return None
    average = not certificate.promise.tested
    used = certificate.promise.max_error * (not certificate.found) if average else certificate.used
    test = LevelTest(claim, key, certificate.gold_rows, used, certificate.found, average)
    write_levels(folder, ledger.with_test(test, gold))
    return key


def _parts_of(folder: RunFolder) -> dict[str, Any]:
    values = read_json(folder.levels, REMEDY) if folder.levels.exists() else {}
    values.pop("schema", None)
    with expecting(folder.levels, REMEDY):
        return {part: {**tests} for part, tests in values.items()}


def _read(folder: RunFolder) -> LevelLedger | None:
    values = _parts_of(folder).get(folder.part or USUAL)
    if values is None:
        return None
    with expecting(folder.levels, REMEDY):
        tests = tuple(LevelTest(**test) for test in values["tests"])
        if not np.isfinite([test.used for test in tests]).all():
            raise TypeError("levels must be numbers")
        return LevelLedger(run=str(values["run"]), place=str(values["place"]), tests=tests, gold=tuple(values["gold"]))


def _tests_of_models(folder: RunFolder) -> set[str]:
    """Return the keys of the tests that the models and plans of a folder come from; damaged files have none."""
    keys: set[str | None] = set()
    for path in (folder.model, folder.whole_set, folder.finish, *folder.versions.glob("*.json")):
        with suppress(TableError, OSError):
            keys.add(read_json(path).get("tested"))
    return {key for key in keys if key is not None}


def _is_run(copy: RunFolder, ledger: LevelLedger) -> bool:
    """Return whether the run that a folder is a copy of is still where it was."""
    try:
        original = _read(replace(copy, path=Path(ledger.place)))
        return original is not None and original.run == ledger.run
    except (TableError, OSError):
        return False
