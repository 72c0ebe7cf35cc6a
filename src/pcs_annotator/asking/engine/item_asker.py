"""Questions about one item, and the votes that come back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.asking.engine.ask import Asker, Call, Rewriter
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.ledger import call_key
from pcs_annotator.asking.engine.vote_buffer import VoteBuffer
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.chat import Reply
from pcs_annotator.core.concurrency import gather_all
from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import Variant
from pcs_annotator.core.vote import Vote
from pcs_annotator.errors import BudgetReached, RateLimited, ServerTrouble, Unanswerable
from pcs_annotator.relations.base import Context

NO_MONEY = "budget reached"
"""The reason under which the tally counts questions that could not be paid for."""

Wanted = Iterable[tuple[int, Iterable[int]]]
"""Who is asked, and for which draws."""


class _PendingQuestion(NamedTuple):
    """One question about one variant, and the replies to those before it."""

    annotator: int
    draw: int
    question: Question
    key: bytes
    replies: tuple[Reply, ...] = ()


class ItemAsker:
    """Asks a job's annotators about items, and notes their votes on a buffer."""

    def __init__(self, job: Job, asker: Asker) -> None:
        self.job, self.asker, self.tally = job, asker, asker.tally
        names = [annotator.name for annotator, _ in job.annotators]
        self.buffer = VoteBuffer(names, [relation.name for relation in job.relations], job.task.labels, job.draws)
        self._context = Context(ask=None if job.rewriter is None else Rewriter(job.rewriter, asker))
        self._everybody = [(annotator, range(job.draws)) for annotator in range(len(job.annotators))]

    async def ask_everything(self, row: int, item: Item) -> None:
        """Ask everybody about an item, rewritten in every way."""
        await gather_all(self._ask_everybody(row, item, relation) for relation in range(len(self.job.relations)))
        self.tally.rows += 1

    async def _ask_everybody(self, row: int, item: Item, relation: int) -> None:
        text = await self.rewrite(item, relation)
        if text is not None:
            await self.ask(row, relation, text, self._everybody)

    async def rewrite(self, item: Item, relation: int) -> str | None:
        """Return an item's text seen through a relation; None when there is nothing to ask about."""
        through = self.job.relations[relation]
        try:
            variant = await through.rewrite(item.text, self._context)
        except (ServerTrouble, RateLimited, BudgetReached) as error:
            self.tally.failed[_short(error)] += 1
            return None
        except Unanswerable as error:
            variant = Variant(relation=through.name, status="not_applicable", reason=_short(error))
        if variant.text is None:
            self.tally.silences[f"{through.name}: {variant.cause}"] += 1
        if self.job.on_variant is not None:
            self.job.on_variant(item, variant)
        return variant.text

    async def ask(self, row: int, relation: int, text: str, wanted: Wanted) -> None:
        """Ask some annotators about a text, as far as the ledger does not know what they say, and note their votes."""
        asked: list[_PendingQuestion] = []
        for index, draws in wanted:
            annotator, model = self.job.annotators[index]
            question = annotator.question(self.job.task, text, model)
            for draw in draws:
                if isinstance(question, Vote):
                    self._note(row, relation, index, draw, question)
                else:
                    asked.append(_PendingQuestion(index, draw, question, call_key(model.name, question.request, draw)))
        await self._ask_all(row, relation, asked)

    def votes_on(self, row: int) -> Codes:
        """Return what is noted about an item so far, to be read before anybody else has a turn."""
        return self.buffer.row(row)

    async def _ask_all(self, row: int, relation: int, asked: Sequence[_PendingQuestion]) -> None:
        known = self.asker.ledger.get_many([one.key for one in asked])
        further = [self._read(row, relation, one, known[one.key]) for one in asked if one.key in known]
        self.tally.questions += len(asked)
        self.tally.from_ledger += len(further)
        work = [self._ask_one(row, relation, one) for one in asked if one.key not in known]
        following = [one for one in further if one is not None]
        if following:
            work.append(self._ask_all(row, relation, following))
        await gather_all(work)

    async def _ask_one(self, row: int, relation: int, asked: _PendingQuestion) -> None:
        model = self.job.annotators[asked.annotator][1]
        request = asked.question.request
        try:
            reply = await self.asker.ask(Call(model, request, asked.key, "label", self.asker.expected(model, request)))
        except Unanswerable as error:
            self._note(row, relation, asked.annotator, asked.draw, Vote(label=None, reason=_short(error)))
        except (ServerTrouble, RateLimited, BudgetReached) as error:
            self.tally.failed[_short(error)] += 1
        else:
            following = self._read(row, relation, asked, reply)
            if following is not None:
                await self._ask_all(row, relation, [following])

    def _read(self, row: int, relation: int, asked: _PendingQuestion, reply: Reply) -> _PendingQuestion | None:
        """Note the vote that a reply brings; return the question that has to be asked before there is one."""
        annotator, model = self.job.annotators[asked.annotator]
        replies = (*asked.replies, reply)
        heard = annotator.hear(self.job.task, asked.question, replies, model)
        if isinstance(heard, Vote):
            self._note(row, relation, asked.annotator, asked.draw, heard)
            return None
        key = call_key(model.name, heard.request, asked.draw)
        return _PendingQuestion(asked.annotator, asked.draw, heard, key, replies)

    def _note(self, row: int, relation: int, annotator: int, draw: int, vote: Vote) -> None:
        if vote.label is None:
            self.tally.silences[vote.reason] += 1
        if vote.cut:
            self.tally.cut += 1
        self.buffer.put(row, annotator, relation, draw, vote)


def _short(error: Exception) -> str:
    """Return the kind of trouble without the details that differ from call to call."""
    kinds = {BudgetReached: NO_MONEY, RateLimited: "asked too fast", ServerTrouble: "no answer"}
    return kinds.get(type(error), str(error).partition(" (")[0])
