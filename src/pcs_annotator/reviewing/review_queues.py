"""The queues of a review: which rows each may show to whom, leases, and double coding; `draws.py` draws from them."""

import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np

from pcs_annotator.asking.ledger.lock import lock_or_refuse
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import counted
from pcs_annotator.core.arrays import Array, Floats, Integers, Mask
from pcs_annotator.core.events import BLIND, SEQUENCE, Draw, Queue, fixed_places, frame_hash
from pcs_annotator.core.gold_codes import UNLABELLED, settled
from pcs_annotator.core.identity import same_texts, with_copies
from pcs_annotator.core.ngrams import count_ngrams, rarity_of, weigh
from pcs_annotator.judging.promise.draw import Drawn
from pcs_annotator.reviewing.run_rows import DECISIONS, Rows
from pcs_annotator.reviewing.values import QueueProgress, ReviewOptions
from pcs_annotator.runs.review_state import ReviewState, now

QUEUES: tuple[Queue, ...] = ("random", "learn", "audit", "doubtful", "finish", "stream", "conflicts")

SETTLED = [DECISIONS.index(name) for name in ("accept", "agree")]  # decisions about rows that need no review
UNDRAWN: tuple[Queue, ...] = ("conflicts", "stream", "finish")  # queues whose rows nobody has to draw
# more texts, or more of each, only cost time
COMPARED = 1_000
CHARACTERS_READ = 1_000


def lock_review(path: Path) -> AbstractContextManager[None]:
    """Return a context in which nobody else adds to the review in a run folder; an error if somebody else may."""
    problem, remedy = f"{path} is being reviewed already, by", "use that page, or stop it first"
    return lock_or_refuse(path / "review", lambda holder: ConfigError(f"{problem} {holder}: {remedy}"))


@dataclass
class Leases:
    """Which rows are in whose hands, for some minutes; kept in memory only."""

    seconds: float  # how long a row is kept
    clock: Callable[[], float] = time.monotonic
    _until: dict[int, dict[str, float]] = field(default_factory=dict)  # row → person → when their lease ends
    _tokens: dict[tuple[int, str], str] = field(default_factory=dict)  # row and person → what proves their lease

    def others(self, row: int, reviewer: str) -> list[str]:
        """Return the other people who have a row in hand."""
        moment = self.clock()
        return [name for name, until in self._until.get(row, {}).items() if name != reviewer and until > moment]

    def take(self, row: int, reviewer: str) -> str:
        """Give a row into this person's hands, or renew their lease; their tabs share what it returns as proof."""
        self._until.setdefault(row, {})[reviewer] = self.clock() + self.seconds
        return self._tokens.setdefault((row, reviewer), secrets.token_hex(8))

    def has(self, row: int, reviewer: str, token: str) -> bool:
        """Return whether a row was given into this person's hands, with this proof; it may have ended since."""
        return self._tokens.get((row, reviewer)) == token

    def drop(self, row: int, reviewer: str) -> None:
        """End this person's lease on a row."""
        self._until.get(row, {}).pop(reviewer, None)
        self._tokens.pop((row, reviewer), None)


@dataclass
class DrawSequence:
    """The one sequence of draws from a frame: all rows without gold in the data."""

    order: Integers  # the rows of the frame in their fixed random order
    frame: str  # its hash
    reached: int  # how far the order has been walked
    outside: Mask  # which rows of the run are not in the frame
    closed: Mask  # which may not be drawn: those outside, and those that were drawn

    @classmethod
    def of(cls, rows: Rows, order: Integers, state: ReviewState) -> "DrawSequence":
        """Return the sequence as the log of a review has it."""
        outside, names = rows.data_gold != UNLABELLED, rows.ids
        outside[rows.streamed] = True
        ids = [names[row] for row in np.flatnonzero(~outside).tolist()]
        sequence = cls(order[~outside[order]], frame_hash(ids), 0, outside, outside.copy())
        for draw in state.sequence(ids):
            sequence.closed[state.places[draw.id]] = True
            sequence.reached = draw.reached
        return sequence

    def drawn(self, rows: Integers) -> Mask:
        """Return which rows of the frame were drawn."""
        return self.closed[rows] & ~self.outside[rows]

    @property
    def at_random(self) -> Integers:
        """The rows that the order has reached: a simple random sample."""
        return self.order[: self.reached]


class Queues:
    """The queues of a review."""

    def __init__(self, rows: Rows, state: ReviewState, options: ReviewOptions) -> None:
        self.state = state
        self.leases = Leases(options.lease_seconds)
        self.order = fixed_places(rows.ids)
        self.sequence = DrawSequence.of(rows, self.order, state)
        self.wanted = _wanted(rows, options.double)
        self._blind = BLIND if options.blind is None else (*QUEUES, "chosen") if options.blind else ()
        self._new_draws: list[Draw] = []  # not stored yet
        self.take_rows(rows)

    def take_rows(self, rows: Rows) -> None:
        """Go on with what a new model says."""
        self.rows = rows
        self._no_gold = rows.gold == UNLABELLED
        self._same = same_texts(rows.run.texts)
        self._own = np.ones(len(rows), dtype=np.bool_)  # which rows did not come as a stream
        self._own[rows.streamed] = False
        accepted = np.flatnonzero(rows.judgement.accepted & self._no_gold & self._own).tolist()
        self._audit_frame = frame_hash(rows.ids[row] for row in accepted)
        certainty = rows.judgement.certainty
        self.teaching = np.argsort(certainty, kind="stable")
        self.doubtful = self.teaching
        self.finishing = np.isin(np.arange(len(rows)), rows.to_finish[0])  # a promise about the whole table needs these
        if rows.judgement.model.text is not None:
            gold = [rows.texts[row].as_py() or "" for row in np.flatnonzero(rows.gold != UNLABELLED).tolist()]
            texts = [rows.texts[row].as_py() or "" for row in self.teaching[:COMPARED].tolist()]
            self.teaching = unlike_gold_first(self.teaching, certainty, texts, gold)
        self._by_queue: dict[Queue, dict[int, Draw]] = {queue: {} for queue in QUEUES}
        for draw in self.state.draws:
            if draw.queue in ("audit", "doubtful") or draw.frame == self.sequence.frame:
                self._by_queue[draw.queue][rows.places[draw.id]] = draw

    @property
    def auditable(self) -> Mask:
        """Which rows an audit is about: accepted ones without gold, also from people, unless that is the audit's."""
        audited = self._places("audit")
        taught = self.state.decided != UNLABELLED
        taught[audited] = self.sequence.drawn(audited)
        return self.rows.judgement.accepted & self._no_gold & self._own & ~taught

    def draw_of(self, row: int, queue: Queue) -> Draw | None:
        """Return how a row was drawn in a queue; None if it was not."""
        for name in (queue, *(SEQUENCE if queue in SEQUENCE else ())):
            if row in self._by_queue.get(name, {}):
                return self._by_queue[name][row]
        return None

    def drawable(self, queue: Queue) -> Mask:
        """Return which rows a queue could draw now."""
        if queue in SEQUENCE:
            return ~self.sequence.closed
        among = self.auditable if queue == "audit" else self._to_review & (self.state.coders == 0)
        among[self._places(queue)] = False
        return among

    def take_draw(self, queue: Queue, drawn: Drawn) -> None:
        """Count a row as drawn; `store_draws` keeps that."""
        draw = Draw(
            number=self.state.last + len(self._new_draws) + 1,
            id=self.rows.ids[drawn.row],
            text_hash=self.rows.text_hash(drawn.row),
            queue=queue,
            at=now(),
            probability=None if queue == "doubtful" else drawn.probability,
            pool=drawn.pool,
            reached=drawn.reached,
            frame={"audit": self._audit_frame, "doubtful": ""}.get(queue, self.sequence.frame),
        )
        self._new_draws.append(draw)
        self._by_queue[queue][drawn.row] = draw
        if queue in SEQUENCE:
            self.sequence.closed[drawn.row], self.sequence.reached = True, drawn.reached

    def store_draws(self) -> None:
        """Write new draws to the log."""
        if self._new_draws:
            self.state.add(self._new_draws)
            self._new_draws = []

    def forget_draws(self) -> None:
        """Go on as if draws that could not be stored had not happened."""
        self._new_draws = []
        self.sequence = DrawSequence.of(self.rows, self.order, self.state)
        self.take_rows(self.rows)

    def free(self, row: int, reviewer: str) -> bool:
        """Return whether a person may have a row: fewer people have it or have judged it than are wanted."""
        others = len(self.leases.others(row, reviewer))
        return others < max(1, int(self.wanted[row]) - int(self.state.coders[row]))

    def blind(self, row: int, reviewer: str, queue: Queue) -> bool:
        """Return whether a person must judge a row of a queue before they see what models and others say."""
        proves = queue != "stream" or bool(self.rows.drawn[row])
        return proves and queue in self._blind and not (self.state.coders[row] and self.state.by(reviewer)[row])

    def why_empty(self, reviewer: str, queue: Queue) -> str:
        """Return why a queue has no row for a person now, and what brings new ones, in a sentence."""
        seen, among = self.state.by(reviewer), self._among(queue)
        wanted = np.flatnonzero(among & ~seen).tolist()
        held = [row for row in wanted if self.leases.others(row, reviewer)]
        if held:
            minutes = counted(math.ceil(self.leases.seconds / 60), "minute")
            return f"On other people's screens: {counted(len(held), 'row')}. Come again in {minutes}."
        if queue == "conflicts":
            differing = counted(int((among & seen).sum()), "row")
            waits = f"You are one of those who differ on {differing}: a third person settles that, or you from People."
            return waits if (among & seen).any() else "No two people differ; --double 0.2 shows every fifth row to two."
        if waiting := int((among & seen & (self.state.coders < self.wanted)).sum()):
            return f"Left for others: {counted(waiting, 'row')} that you skipped, or were the first of two to judge."
        if queue == "audit" and not among.any():
            return "No label is accepted, so there is nothing to check: judge random rows until a promise holds."
        if queue == "finish":
            goal = self.rows.to_finish[1]
            return f"All rows for this are labelled: pcs finish says that {goal}." if goal else "Start with pcs finish."
        kind = {"audit": "accepted row", "doubtful": "row left for review"}.get(queue, "row")
        return f"Every {kind} has a gold label or a verdict already."

    def _among(self, queue: Queue) -> Mask:
        """Return the rows that a queue is about, whoever has judged them."""
        if queue == "conflicts":
            return self.state.conflict
        if queue in ("stream", "finish"):
            return ~self._own if queue == "stream" else self.finishing & self._no_gold
        if queue == "doubtful":
            return self._to_review
        return (self.rows.judgement.accepted if queue == "audit" else self._no_gold) & self._own

    @property
    def _to_review(self) -> Mask:
        """Which rows wait for people: the models' label is not accepted, and their text has no gold."""
        return ~settled(self._same, self.rows.gold) & self._own & ~np.isin(self.rows.judgement.decision, SETTLED)

    def progress(self) -> dict[Queue, QueueProgress]:
        """Return how far every queue is."""
        done, sequence = self.state.coders > 0, self.sequence
        unseen, to_learn = self._no_gold & ~done, ~sequence.closed
        streamed = self.rows.streamed
        to_finish = len(np.unique(self._same[self.finishing]))
        unfinished = len(np.unique(self._same[self.finishing & ~self._settled]))
        open_rows = int((self._to_review & ~done).sum())
        to_learn[self._places("learn")] = True
        agreed_on = sum(
            any(verdict.queue == "conflicts" for verdict in log) for log in self.state.verdicts.values() if len(log) > 1
        )
        return {
            "random": QueueProgress(int(done[sequence.at_random].sum()), int(unseen[sequence.order].sum())),
            "learn": QueueProgress(int(done[self._places("learn")].sum()), int((unseen & to_learn).sum())),
            "audit": QueueProgress(int(done[self._places("audit")].sum()), int((self.auditable & ~done).sum())),
            "doubtful": QueueProgress(int(done[self._places("doubtful")].sum()), open_rows),
            "finish": QueueProgress(to_finish - unfinished, unfinished),
            "conflicts": QueueProgress(agreed_on, int(self.state.conflict.sum())),
            "stream": QueueProgress(int(done[streamed].sum()), int((~done[streamed]).sum())),
        }

    @property
    def _settled(self) -> Mask:
        """Which rows have a text that people have labelled, in this row or another."""
        labelled = ~self._no_gold | ((self.state.coders > 0) & (self.state.decided != UNLABELLED))
        return with_copies(self._same, labelled)

    def _places(self, queue: Queue) -> Integers:
        return np.fromiter(self._by_queue[queue], np.intp, len(self._by_queue[queue]))

    def started(self, reviewer: str, queue: Queue) -> Iterator[int]:
        """Yield rows of a queue that were drawn and still need this person's verdict, in the order of drawing."""
        if queue == "conflicts":
            places: Array = np.flatnonzero(self.state.conflict & ~self.state.by(reviewer))
            yield from places.tolist()
            return
        # the newest texts of a stream come first: somebody may still wait for them, and nobody for a backlog
        undrawn = {"stream": self.rows.streamed[::-1], "finish": self.rows.to_finish[0]}
        places = undrawn[queue] if queue in undrawn else self._places(queue)
        if queue == "random":  # a row that the order has reached belongs to the random sample, whoever drew it
            places = np.concatenate([self.sequence.at_random, places])
        yield from dict.fromkeys(places[self.needed(reviewer, queue)[places]].tolist())

    def needed(self, reviewer: str, queue: Queue) -> Mask:
        """Return which rows still need a person's verdict."""
        state = self.state
        needed = (state.coders < self.wanted) & ~state.by(reviewer)
        if queue in (*SEQUENCE, "finish"):
            needed &= (state.coders > 0) | ~self._settled  # the label of a text is that of its copies
        return np.asarray(needed & self._no_gold & (self.finishing if queue == "finish" else True))


def _wanted(rows: Rows, double: float) -> Array:
    """Return how many people are to judge every row: one, or two for a share of them, chosen by hash of the ID."""
    if not double:
        return np.ones(len(rows), dtype=np.int16)
    hashes = (blake2b(name.encode("utf-8", "replace"), digest_size=6, person=b"double").digest() for name in rows.ids)
    places = np.array([int.from_bytes(digest, "big") for digest in hashes]) / 2**48
    return np.where(places < double, 2, 1).astype(np.int16)


def unlike_gold_first(order: Integers, certainty: Floats, texts: Sequence[str], gold: Sequence[str]) -> Integers:
    """Return rows, least certain first, in an order in which the first are also unlike all texts with gold.

    `texts` are those of the first rows. From 100 gold rows to 200, this gained 1.2 points over the least certain first
    with 21 labels, and nothing with two.
    """
    if not gold:
        return order
    counts = count_ngrams([text[:CHARACTERS_READ] for text in (*gold[-COMPARED:], *texts)])
    vectors = weigh(counts, rarity_of(counts))
    compared = min(len(gold), COMPARED)
    alike = (vectors[compared:] @ vectors[:compared].T).max(axis=1).toarray().ravel()
    first, rest = order[: len(texts)], order[len(texts) :]
    worth = (1 - np.maximum(certainty[first], 0.0)) * (1 - alike)
    return np.concatenate([first[np.argsort(-worth, kind="stable")], rest])
