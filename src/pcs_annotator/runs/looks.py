"""Looks at the gold labels of a run folder.

Every fit that tests for a promise is a look, and each look that finds none uses up some of the errors that promises may
have. The folder remembers them in `looks.json`, so that all its promises together are as certain as each of them says.
Promises on average have no such level, but whoever tries one after the other until something is accepted gets more
errors than the last one says: at most the sum of what all of them allow, which the certificate says then.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.errors import TableError
from pcs_annotator.base.text import listed
from pcs_annotator.core.gold import UNLABELLED, gold_codes
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.promising.certificate import Certificate, fingerprint
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.settings import LearnSettings
from pcs_annotator.tables.files import expecting, read_json, write_json

GROWTH = 1.5
REMEDY = "put back the file that pcs wrote; until then nothing is promised"


class Look(NamedTuple):
    """One look."""

    key: str  # a digest of votes, gold and settings; the same fit again is the same look
    rows: int  # gold rows that could support a promise
    level: float  # how much of the errors it may use
    promised: bool  # whether it found a promise; then its level is free for later looks (Holm)
    average: bool = False  # whether it was for a promise on average; then its level is the error that this allows


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """All looks of a run folder."""

    run: str  # a random name, by which a copy of the folder is recognised
    place: str  # where the folder is
    looks: tuple[Look, ...] = ()  # the looks, first to last
    gold: tuple[str, ...] = ()  # ids of the gold rows at the last one
    refused: str = ""  # why no promise may be made; empty when one may

    @property
    def keys(self) -> list[str]:
        """What tells the looks apart, first to last."""
        return [look.key for look in self.looks]

    def spent_before(self, key: str, *, average: bool = False) -> float:
        """Return how much the looks before this one have used; before a new one, those are all."""
        before = self.looks[: self.keys.index(key)] if key in self.keys else self.looks
        return float(sum(look.level for look in before if not look.promised and look.average == average))

    def too_early(self, rows: int, foretold: int | None) -> str:
        """Return why a look at this number of gold rows would waste certainty; empty if it is worth it.

        After a look without a promise, the next one waits for as many rows as make a promise likely, or for half as
        many again if that is unknown. While there is a promise, looks use up nothing.
        """
        last = next((look for look in reversed(self.looks) if not look.average), None)
        if last is None or last.promised:
            return ""
        enough = max(foretold or math.ceil(GROWTH * last.rows), last.rows + 1)
        if rows >= enough:
            return ""
        return (
            f"not tested again yet: the next test is at {enough:,} random gold rows, and there are {rows:,}, because "
            "each test without a promise makes the next one harder"
        )

    def with_look(self, key: str, certificate: Certificate, gold: Iterable[str]) -> "Looks":
        """Return the looks with this one, if it tested anything and is new."""
        average = not certificate.promise.tested
        if key in self.keys or not (self.refused == "" if average else certificate.level):
            return self
        spent, level = certificate.unpromised, certificate.promise.max_error if average else certificate.level
        look = Look(key, certificate.gold_rows, spent or level, certificate.found if average else not spent, average)
        return replace(self, looks=(*self.looks, look), gold=tuple(gold))


def key_of(votes: Votes, gold: Iterable[object], settings: LearnSettings, kind: str = "one") -> str:
    """Return the digest that tells looks apart: the votes on gold rows, their gold, and what shapes the test."""
    codes = gold_codes(votes, gold)
    labelled = codes != UNLABELLED
    seen = fingerprint(votes.take(labelled), codes[labelled], "")
    unshaping = ("resamples", "sets", *(name for name in ("by", "tolerance") if not getattr(settings, name)))
    shaping = [value for name, value in asdict(settings).items() if name not in unshaping]
    shaping += [] if kind == "one" else [kind]
    return blake2b(json.dumps([shaping, seen], default=str).encode(), digest_size=8).hexdigest()


def read_looks(folder: RunFolder, gold: Iterable[str], key: str) -> Looks:
    """Return the looks of a folder, and why this look, at the gold rows of these ids, may find no promise.

    A copy of a folder may repeat the looks that were copied, but make no new ones: those of both would add up.
    """
    here = str(folder.path.resolve())
    if not folder.looks.exists():
        return Looks(run=token_hex(8), place=here)
    try:
        found = _read(folder.looks)
    except TableError as error:
        return Looks(run=token_hex(8), place=here, refused=str(error))
    gone = sorted(set(found.gold) - set(gold))
    refused = ""
    if gone:
        refused = (
            f"{len(gone)} gold rows of an earlier look have no gold label now ({listed(map(repr, gone), len(gone))}), "
            "and rows that are chosen after looking prove nothing: put these labels back, or start in a new folder"
        )
    elif found.place != here and key not in found.keys and _is_run(Path(found.place), found.run):
        refused = (
            f"this folder is a copy of {found.place}, and both would use the same certainty: continue there, or label "
            "other rows at random in a new folder"
        )
    return replace(found, place=here, refused=refused)


def write_looks(folder: RunFolder, looks: Looks) -> None:
    """Write the looks of a folder."""
    looked = [look._asdict() for look in looks.looks]
    write_json(folder.looks, {"run": looks.run, "place": looks.place, "gold": looks.gold, "looks": looked})


def _read(path: Path) -> Looks:
    values: dict[str, Any] = read_json(path, REMEDY)
    with expecting(path, REMEDY):
        looks = tuple(Look(**look) for look in values["looks"])
        if not np.isfinite([look.level for look in looks]).all():
            raise TypeError("levels must be numbers")
        return Looks(run=str(values["run"]), place=str(values["place"]), looks=looks, gold=tuple(values["gold"]))


def _is_run(place: Path, run: str) -> bool:
    """Return whether a folder is the run of this name."""
    try:
        return _read(RunFolder(place).looks).run == run
    except (TableError, OSError):
        return False
