"""`stream.db`: the texts that `pcs serve` and `pcs label` leave for people, each once, with the votes on them.

They are all that are not accepted, and a random share of those that are: verdicts on these audit the promise.
"""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, Self

import numpy as np

from pcs_annotator.base.errors import LedgerError
from pcs_annotator.core.arrays import Floats, Mask
from pcs_annotator.core.identity import text_hash
from pcs_annotator.core.task import BETWEEN, Item
from pcs_annotator.core.votes import NOT_ASKED, Votes, positions_of
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.chunks import Dataset, text_names

CREATE = """
CREATE TABLE IF NOT EXISTS texts (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text_hash TEXT NOT NULL UNIQUE, at REAL NOT NULL, text TEXT,
    axes INTEGER NOT NULL, codes BLOB NOT NULL, grades BLOB, accepted INTEGER NOT NULL, version INTEGER NOT NULL,
    drawn INTEGER NOT NULL, probability REAL NOT NULL, part TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS axes (number INTEGER PRIMARY KEY, names TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS counts (number INTEGER PRIMARY KEY, texts INTEGER, accepted INTEGER, drawn INTEGER);
INSERT OR IGNORE INTO counts SELECT 1, count(*), ifnull(sum(accepted), 0), ifnull(sum(drawn), 0) FROM texts;
CREATE TRIGGER IF NOT EXISTS come AFTER INSERT ON texts BEGIN UPDATE counts
SET texts = texts + 1, accepted = accepted + new.accepted, drawn = drawn + new.drawn; END;
CREATE TRIGGER IF NOT EXISTS gone AFTER DELETE ON texts BEGIN UPDATE counts
SET texts = texts - 1, accepted = accepted - old.accepted, drawn = drawn - old.drawn; END;
CREATE TRIGGER IF NOT EXISTS changed AFTER UPDATE OF accepted, drawn ON texts BEGIN UPDATE counts
SET accepted = accepted + new.accepted - old.accepted, drawn = drawn + new.drawn - old.drawn; END;
"""
# An ID that another text has (two tables of one name) gets a part of the hash. A text that comes again is judged anew,
# unless it was drawn: then it stays as it was drawn.
ADD = """INSERT INTO texts (id, text_hash, at, text, axes, codes, grades, accepted, version, drawn, probability, part)
VALUES (iif(EXISTS (SELECT 1 FROM texts WHERE id = ?1), ?1 || ':' || substr(?2, 1, 16), ?1),
?2, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (text_hash) DO UPDATE SET axes = excluded.axes,
codes = excluded.codes, grades = excluded.grades, accepted = excluded.accepted, version = excluded.version,
drawn = excluded.drawn, probability = excluded.probability WHERE NOT drawn"""
COLUMNS = "id, at, text, axes, codes, grades, accepted, version, drawn, part"
DAY, PURGE_EVERY = 86_400.0, 3_600.0
SECONDS_TO_WAIT = 5.0  # for another process, which holds the file for milliseconds; meanwhile nobody is answered
PURGED_AT_ONCE = 10_000


class Streamed(NamedTuple):
    """Texts of the stream, in the order in which they came; every field has an entry per text."""

    items: Sequence[Item]
    votes: Votes
    accepted: Mask
    drawn: Mask  # which belong to the random sample of all texts
    at: Sequence[float]  # when they came
    version: Sequence[int]  # the fit that judged them


class Stream:
    """The texts of a run folder's stream; use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            self._database = sqlite3.connect(
                path, timeout=SECONDS_TO_WAIT, check_same_thread=False, isolation_level=None
            )
            # A killed process loses nothing that was added; deleted texts are overwritten.
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "secure_delete = ON"):
                self._database.execute(f"PRAGMA {pragma}")
            if not self._database.execute("SELECT 1 FROM sqlite_master WHERE name = 'counts'").fetchone():
                self._database.executescript(f"BEGIN IMMEDIATE; {CREATE} COMMIT;")
        self._axes: dict[str, int] = {}
        self._purge_at = 0.0
        self._key = bytes.fromhex(str(self.note("key", token_hex(16))))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            held = getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY"
            remedy = "another process holds it: stop that one" if held else "make room, or check the permissions"
            what = f"{self.path}, where texts wait for review, cannot be used ({error})"
            raise LedgerError(f"{what}: {remedy}; what was added before is kept") from error

    def note(self, name: str, first: object = None) -> Any:
        """Return what was noted under a name; `first` is noted if there is nothing yet."""
        with self._explained():
            if first is not None:
                self._database.execute("INSERT OR IGNORE INTO notes VALUES (?, ?)", (name, json.dumps(first)))
            row = self._database.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def set_note(self, name: str, value: object) -> None:
        """Note something for later, in the place of what was noted under this name."""
        with self._explained():
            self._database.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, json.dumps(value)))

    def add(  # what is known about the texts, one argument each
        self,
        items: Iterable[Item],
        votes: Votes,
        accepted: Mask,
        *,
        version: int,
        probability: Floats | float,
        keep_text: bool = True,
    ) -> None:
        """Store texts that people should see, others with a probability; when this returns, they are on disk."""
        axes, now, rows = self._axes_of(votes), time.time(), []
        chances = np.broadcast_to(probability, len(votes)).tolist()
        all_codes, all_grades = votes.codes.astype("<i2"), None if votes.grades is None else votes.grades.astype("<f4")
        for row, item in enumerate(items):
            hashed = text_hash(item.text)
            drawn = self._is_drawn(hashed, chances[row])
            if accepted[row] and not drawn:
                continue
            grades = None if all_grades is None else all_grades[row].tobytes()
            about = (int(accepted[row]), version, int(drawn), chances[row], votes.groups[row] if votes.groups else "")
            text = item.text if keep_text else None
            rows.append((item.id, hashed, now, text, axes, all_codes[row].tobytes(), grades, *about))
        if rows:
            with self._explained():
                self._database.execute("BEGIN IMMEDIATE")
                try:
                    self._database.executemany(ADD, rows)
                finally:  # of several rows, those before an error are kept, unless the disk is full
                    if self._database.in_transaction:
                        self._database.execute("COMMIT")

    def _is_drawn(self, hashed: str, probability: float) -> bool:
        """Return whether a text is in the random sample: the same for its copies, and unknown to who sends it."""
        digest = blake2b(hashed.encode(), digest_size=6, key=self._key).digest()
        return int.from_bytes(digest, "big") < probability * 2**48

    def _axes_of(self, votes: Votes) -> int:
        names = json.dumps([votes.annotators, votes.relations, votes.codes.shape[3], votes.labels])
        if names not in self._axes:
            with self._explained():
                self._database.execute("INSERT OR IGNORE INTO axes (names) VALUES (?)", (names,))
                row = self._database.execute("SELECT number FROM axes WHERE names = ?", (names,)).fetchone()
                self._axes[names] = row[0]
        return self._axes[names]

    def read(self, like: Votes, ids: Iterable[str] | None = None) -> Streamed | None:
        """Return the texts that are kept, or some, but not the run's, or asked unlike it (`like`); or None."""
        names = json.dumps([like.annotators, like.relations, like.codes.shape[3], like.labels])
        query, values = f"SELECT {COLUMNS} FROM texts JOIN axes ON axes.number = axes WHERE text IS NOT NULL", [names]
        if ids is not None:
            query, values = f"{query} AND id IN (SELECT value FROM json_each(?))", [json.dumps(list(ids)), names]
        with self._explained():
            rows = self._database.execute(f"{query} AND names = ? ORDER BY texts.number", values).fetchall()
        run_texts = set(like.texts or ())
        rows = [row for row in rows if row[2] not in run_texts]
        if not rows:
            return None
        shape = like.codes.shape[1:]
        codes = np.frombuffer(b"".join(row[4] for row in rows), "<i2").reshape(-1, *shape).astype(like.codes.dtype)
        grades, hard = None, np.full((*shape, len(like.labels)), np.nan, dtype="<f4").tobytes()
        if any(row[5] for row in rows):
            stored = b"".join(row[5] or hard for row in rows)
            grades = np.frombuffer(stored, "<f4").reshape(-1, *shape, len(like.labels))
        votes = Votes(
            codes=codes,
            ids=[row[0] for row in rows],
            annotators=like.annotators,
            relations=like.relations,
            labels=like.labels,
            grades=grades,
            texts=[row[2] for row in rows],
            groups=[row[9] for row in rows],
        )
        items = [Item(id=row[0], text=row[2]) for row in rows]
        accepted, drawn = (np.array([row[at] for row in rows], dtype=np.bool_) for at in (6, 8))
        return Streamed(items, votes, accepted, drawn, [row[1] for row in rows], [row[7] for row in rows])

    def counts(self) -> Mapping[str, int]:
        """Return how many texts are kept, how many of these are accepted, and how many are drawn at random."""
        with self._explained():
            row = self._database.execute("SELECT texts, accepted, drawn FROM counts").fetchone()
        return dict(zip(("texts", "accepted", "drawn"), row, strict=True))

    def having(self, ids: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
        """Return ID → text, empty if it was not kept, of the entries with one of these IDs or texts."""
        query = "SELECT id, ifnull(text, '') FROM texts WHERE id IN (SELECT value FROM json_each(?)) "
        values = json.dumps(ids), json.dumps([*map(text_hash, texts)])
        with self._explained():
            query += "OR text_hash IN (SELECT value FROM json_each(?))"
            return dict(self._database.execute(query, values).fetchall())

    def forget(self, ids: Iterable[str]) -> None:
        """Delete texts."""
        with self._explained():
            self._database.executemany("DELETE FROM texts WHERE id = ?", [(name,) for name in ids])
            self._clean()

    def purge(self, days: float) -> int:
        """Delete texts that came longer ago, unless that was done within the last hour, and return how many."""
        if time.monotonic() < self._purge_at:
            return 0
        self._purge_at = time.monotonic() + PURGE_EVERY
        with self._explained():
            oldest, gone = time.time() - days * DAY, 0
            query = f"DELETE FROM texts WHERE number IN (SELECT number FROM texts WHERE at < ? LIMIT {PURGED_AT_ONCE})"
            while some := self._database.execute(query, (oldest,)).rowcount:  # others can add in between
                gone += some
            if gone:
                self._clean()
        return gone

    def _clean(self) -> None:
        """Leave nothing of what was deleted in the file, or beside it."""
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


class StreamMemory(NamedTuple):
    """What a stream remembers about drift while one version is in use, also after a restart."""

    stream: Stream
    version: int
    since: Mapping[str, float]  # group → the alarm that this version has learned from; of all texts: `""`

    def recall(self) -> dict[str, dict[str, Any]]:
        """Return group → what was kept, if it still counts: an alarm does until a fit has learned from later texts."""
        kept: dict[str, Any] = self.stream.note("drift") or {"tests": {}}
        tests = {name: test for name, test in kept["tests"].items() if (test["alarm"] or -1) != self.since.get(name)}
        if kept.get("version") == self.version:
            return tests
        # counts of another model are not comparable
        return {name: {**test, "blocks": []} for name, test in tests.items() if test["alarm"]}

    def keep(self, tests: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep counts and what was found."""
        self.stream.set_note("drift", {"tests": tests, "version": self.version})
        if alarms := {name: test["alarm"] for name, test in tests.items() if test["alarm"]}:
            self.stream.set_note("alarm", {**(self.stream.note("alarm") or {}), **alarms})


def with_stream(dataset: Dataset, answers: Votes, streamed: Streamed) -> tuple[Dataset, Votes]:
    """Return rows and votes of a run, and after them those of its stream."""
    schema, new = dataset.table.schema, len(streamed.items)
    names = text_names(str(dataset.columns.text), schema.names)
    parts = zip(*(item.text.split(BETWEEN, len(names) - 1) for item in streamed.items), strict=True)
    texts = {name: pa.array(part).cast(schema.field(name).type) for name, part in zip(names, parts, strict=False)}
    added = pa.table({**{field.name: pa.nulls(new, field.type) for field in schema}, **texts})
    wide = replace(
        dataset,
        table=pa.concat_tables([dataset.table, added]),
        items=(*dataset.items, *streamed.items),
        gold=(*dataset.gold, *[None] * new) if dataset.gold else (),
        streamed=tuple(zip(streamed.drawn.tolist(), streamed.at, strict=True)),
    )
    return wide, Votes.joined([answers, _widened(streamed.votes, answers)])


def _widened(votes: Votes, like: Votes) -> Votes:
    """Return votes with the annotators of others, of whom some were not asked."""
    places = positions_of(votes.annotators, like.annotators, "annotator")
    codes = np.full((len(votes), *like.codes.shape[1:]), NOT_ASKED, dtype=like.codes.dtype)
    codes[:, places] = votes.codes
    grades = None
    if votes.grades is not None:
        grades = np.full((*codes.shape, len(votes.labels)), np.nan, dtype=np.float32)
        grades[:, places] = votes.grades
    return replace(like, ids=votes.ids, codes=codes, grades=grades, stated=None, texts=votes.texts, text_log_probs=None)
