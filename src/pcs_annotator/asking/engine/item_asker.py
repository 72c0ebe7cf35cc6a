"""Asks about one item at a time, and collects the votes that come back."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.asking.engine.call import Asker, Call, Deferred, Rewriter
from pcs_annotator.asking.engine.job import Exchange, Job, QuestionForm
from pcs_annotator.asking.ledger.admin import LedgerAdmin
from pcs_annotator.asking.ledger.sqlite import CallKey, call_key
from pcs_annotator.base import errors
from pcs_annotator.base.concurrency import gather_all
from pcs_annotator.core.arrays import CODE, Codes, Floats, Grades
from pcs_annotator.core.chat import Reply
from pcs_annotator.core.elicitations import kind_of
from pcs_annotator.core.task import Item, label_lookup
from pcs_annotator.core.variant import Variant
from pcs_annotator.core.votes import ABSTAINED, NOT_ASKED, Vote, Votes
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.combine import text_parts

FIRST_ROWS = 16
BUDGET_REACHED = "budget reached"  # the reason under which the tally counts questions that the budget did not allow

Wanted = Iterable[tuple[int, Iterable[int]]]  # annotators to ask, and the draws to ask each of them for
Missing = dict[int, dict[str, None]]  # row → reasons why some of its votes are missing, in order of arrival


class VoteBuffer:
    """Votes in any order of arrival: one byte each, and probabilities only if some annotator gives them."""

    def __init__(self, annotators: Sequence[str], relations: Sequence[str], labels: Sequence[str], draws: int) -> None:
        self._annotators, self._relations, self._labels = annotators, relations, labels
        self._lookup = label_lookup(labels)
        self._ids: dict[str, int] = {}
        self.texts: list[str] = []  # of items, as they came
        self._shape = (len(annotators), len(relations), draws)
        self._codes = np.full((FIRST_ROWS, *self._shape), NOT_ASKED, dtype=CODE)
        self._stated: Floats | None = None
        self._grades: Grades | None = None  # made when the first graded vote arrives
        if any(map(kind_of, annotators)):
            self._stated = np.full((FIRST_ROWS, *self._shape, len(labels)), np.nan)

    def add_row(self, item: Item) -> int:
        """Add an item and return its row."""
        row = len(self._ids)
        if self._ids.setdefault(item.id, row) != row:
            raise errors.TableError(
                f"items {self._ids[item.id] + 1} and {row + 1} have the same ID, {item.id!r}: IDs must be unique"
            )
        self.texts.append(item.text)
        if row == len(self._codes):
            self._codes = np.concatenate([self._codes, np.full_like(self._codes, NOT_ASKED)])
            self._stated, self._grades = (
                None if array is None else np.concatenate([array, np.full_like(array, np.nan)])
                for array in (self._stated, self._grades)
            )
        return row

    def put(self, row: int, annotator: int, relation: int, draw: int, vote: Vote) -> None:
        """Store a vote."""
        code = NOT_ASKED
        if vote.label is not None:
            code = self._lookup[vote.label.casefold()]
        elif vote.asked:
            code = ABSTAINED
        self._codes[row, annotator, relation, draw] = code
        if self._stated is not None and vote.stated is not None:
            self._stated[row, annotator, relation, draw] = vote.stated
        if vote.grades is not None:
            if self._grades is None:
                self._grades = np.full((*self._codes.shape, len(self._labels)), np.nan, dtype=np.float32)
            self._grades[row, annotator, relation, draw] = vote.grades

    def row(self, row: int) -> Codes:
        """Return the codes of one item so far, `[annotator, relation, draw]`; a view, which changes with new votes."""
        return self._codes[row]

    def votes(self) -> Votes:
        """Return all votes stored so far."""
        return Votes(
            codes=self._codes[: len(self._ids)],
            ids=list(self._ids),
            texts=self.texts,
            annotators=self._annotators,
            relations=self._relations,
            labels=self._labels,
            stated=None if self._stated is None else self._stated[: len(self._ids)],
            grades=None if self._grades is None else self._grades[: len(self._ids)],
        )


class _PendingQuestion(NamedTuple):
    """One question about one variant, and the replies to the questions before it."""

    annotator: int
    draw: int
    question: Question
    key: CallKey
    replies: tuple[Reply, ...] = ()


_Questions = Sequence[_PendingQuestion]


@dataclass(frozen=True, slots=True)
class PreparedJob:
    """A job, with what is the same for all its texts.

    For every annotator, how keys of its calls begin; for every relation, how it asks, which annotators it asks, and
    whether it leaves texts as they are.
    """

    job: Job
    identities: Sequence[str]
    asking: Sequence[QuestionForm]
    asked_under: Sequence[Sequence[int]]
    as_is: Sequence[bool]

    @classmethod
    def of(cls, job: Job, ledger: LedgerAdmin) -> "PreparedJob":
        """Prepare a job for asking; models that are known to give no log-probabilities are not asked for them."""
        gives = ledger.graded_models()
        annotators = [
            asked if asked.answers == "graded" or gives.get(model.name, True) else replace(asked, answers="hard")
            for asked, model in job.annotators
        ]
        return cls(
            job,
            [annotator.identity(model) for annotator, model in job.annotators],
            [job.form(relation, annotators) for relation in job.relations],
            [job.asked_under(relation) for relation in range(len(job.relations))],
            [not text_parts(relation) for relation in job.relations],
        )


class ItemAsker:
    """Asks a job's annotators about items, and stores their votes in a buffer."""

    def __init__(self, prepared: PreparedJob, asker: Asker, missing: Missing | None = None) -> None:
        self.missing = missing  # why votes are missing; None if that need not be known row by row
        self.job, self.asker, self.tally = (job := prepared.job), asker, asker.tally
        names = [annotator.name for annotator, _ in job.annotators]
        self.buffer = VoteBuffer(names, [relation.name for relation in job.relations], job.task.labels, job.draws)
        self._cut: set[tuple[int, int]] = set()
        rewriter = None if job.rewriter is None else Rewriter(job.rewriter, asker)
        self._context = Context(ask=rewriter)
        self._identities, self._asking, self._asked_under = prepared.identities, prepared.asking, prepared.asked_under
        self._as_is = [relation for relation, kept in enumerate(prepared.as_is) if kept]
        self._rewritten = [relation for relation, kept in enumerate(prepared.as_is) if not kept]

    async def look_up(self, items: Sequence[Item]) -> list[Callable[[], Awaitable[None]]]:
        """Store all votes on items that the ledger has, and return the work that is left; most calls are one lookup.

        Only questions about texts as they are can be looked up here: rewriting may take a while.
        """
        asked: list[list[tuple[int, list[_PendingQuestion]]]] = []
        rows = [self.buffer.add_row(item) for item in items]
        for row, item in zip(rows, items, strict=True):
            asked.append([])
            for relation in self._as_is:
                text = await self.rewrite(row, item, relation)
                if text is not None:
                    asked[-1].append((relation, self._questions(row, relation, text, self._everyone(relation))))
        keys = [key for parts in asked for _, some in parts for question in some for key in question.key]
        stored = await self.asker.ledger.find(keys)
        work: list[Callable[[], Awaitable[None]]] = []
        for row, item, parts in zip(rows, items, asked, strict=True):
            missing = [(relation, *self._take_known(row, relation, some, stored)) for relation, some in parts]
            missing = [(relation, some, following) for relation, some, following in missing if some or following]
            if missing or self._rewritten:
                work.append(partial(self._ask_rest, row, item, missing))
            else:
                self.finish(row)
        return work

    async def _ask_rest(self, row: int, item: Item, missing: Sequence[tuple[int, _Questions, _Questions]]) -> None:
        work = [call for some in missing for call in self._calls(row, *some)]
        try:
            await gather_all(work + [self._ask_relation(row, item, relation) for relation in self._rewritten])
        except Deferred:
            return
        self.finish(row)

    def finish(self, row: int) -> None:
        """Count an item about which nothing more is asked."""
        self.tally.rows += 1
        # of few cells, faster than numpy
        self.tally.unlabelled += max(self.buffer.row(row).ravel().tolist()) < 0

    async def _ask_relation(self, row: int, item: Item, relation: int) -> None:
        text = await self.rewrite(row, item, relation)
        if text is not None:
            await self.ask(row, relation, text, self._everyone(relation))

    def _everyone(self, relation: int) -> Wanted:
        draws = range(self.job.draws)
        return [(annotator, draws) for annotator in self._asked_under[relation]]

    async def rewrite(self, row: int, item: Item, relation: int) -> str | None:
        """Return an item's text as a relation rewrites it; None when there is nothing to ask about."""
        through = self.job.relations[relation]
        try:
            variant = await through.rewrite(item.text, self._context)
        except (errors.ServerTrouble, errors.RateLimited, errors.BudgetReached) as error:
            self._fail(row, error)
            return None
        except errors.Unanswerable as error:
            self.tally.refused += 1
            variant = Variant(relation=through.name, status="not_applicable", reason=_short(error))
        if variant.text is None:
            why = self.tally.rejected if variant.status == "rejected" else self.tally.not_applicable
            why[f"{through.name}: {variant.cause}"] += 1
            self._note_missing(row, f"{through.name}: {variant.cause}")
        if self.job.on_variant is not None:
            self.job.on_variant(item, variant)
        return variant.text

    async def ask(self, row: int, relation: int, text: str, wanted: Wanted) -> None:
        """Ask annotators about a text, except for answers that the ledger has, and store their votes."""
        await self._ask_all(row, relation, self._questions(row, relation, text, wanted))

    def _questions(self, row: int, relation: int, text: str, wanted: Wanted) -> list[_PendingQuestion]:
        """Return what to ask about a text; where there is nothing to ask, the vote is stored."""
        asked: list[_PendingQuestion] = []
        asking = self._asking[relation]
        task = asking.about(self.buffer.texts[row])
        for index, draws in wanted:
            model = self.job.annotators[index][1]
            question = asking.annotators[index].question(task, text, model)
            for draw in draws:
                if isinstance(question, Vote):
                    self._store(row, relation, index, draw, question)
                else:
                    key = call_key(self._identities[index], question.request, draw)
                    asked.append(_PendingQuestion(index, draw, question, key))
        return asked

    async def _ask_all(self, row: int, relation: int, asked: _Questions) -> None:
        stored = await self.asker.ledger.find([key for question in asked for key in question.key])
        await gather_all(self._calls(row, relation, *self._take_known(row, relation, asked, stored)))

    def _take_known(
        self, row: int, relation: int, asked: _Questions, stored: Mapping[bytes, Reply]
    ) -> tuple[_Questions, _Questions]:
        """Store the votes in known replies; return the questions without one, and those that follow from replies."""
        self.tally.questions += len(asked)
        missing, following = [], []
        for question in asked:
            answered = self._known(question, relation, stored)
            if answered is None:
                missing.append(question)
                continue
            model = self.job.annotators[question.annotator][1]
            self.tally.count_answer(model.name, "label", answered[1].usage, paid=False)
            further = self._read(row, relation, *answered)
            if further is not None:
                following.append(further)
        return missing, following

    def _calls(
        self, row: int, relation: int, missing: _Questions, following: _Questions
    ) -> list[Coroutine[Any, Any, None]]:
        work = [self._ask_one(row, relation, question) for question in missing]
        return [*work, self._ask_all(row, relation, following)] if following else work

    def _known(
        self, asked: _PendingQuestion, relation: int, stored: Mapping[bytes, Reply]
    ) -> tuple[_PendingQuestion, Reply] | None:
        """Return a question and its reply in the ledger: its own, or that to the same question with other answers."""
        reply = stored.get(asked.key.own)
        if reply is not None:
            return asked, reply
        reply = stored.get(asked.key.twin)
        request = asked.question.request
        if reply is None or (
            request.logprobs and self._asking[relation].annotators[asked.annotator].answers == "graded"
        ):
            return None
        hard = replace(asked.question, request=replace(request, logprobs=0))
        return asked._replace(question=hard), reply

    async def _ask_one(self, row: int, relation: int, asked: _PendingQuestion) -> None:
        model = self.job.annotators[asked.annotator][1]
        request = asked.question.request
        try:
            reply = await self.asker.ask(Call(model, request, asked.key.own, "label"))
        except errors.Unanswerable as error:
            self.tally.refused += 1
            self._store(row, relation, asked.annotator, asked.draw, Vote(label=None, reason=_short(error)))
        except (errors.ServerTrouble, errors.RateLimited, errors.BudgetReached) as error:
            self._fail(row, error)
        else:
            following = self._read(row, relation, asked, reply)
            if following is not None:
                await self._ask_all(row, relation, [following])

    def _read(self, row: int, relation: int, asked: _PendingQuestion, reply: Reply) -> _PendingQuestion | None:
        """Store the vote in a reply, or return the question that must be asked before there is a vote."""
        annotator, model = self.job.annotators[asked.annotator]
        asking = self._asking[relation]
        if self.job.on_exchange is not None:
            named = self.job.relations[relation].name, annotator.name
            self.job.on_exchange(Exchange(row, *named, asked.draw, asked.question.request.messages, reply))
        replies = (*asked.replies, reply)
        vote = asking.annotators[asked.annotator].parse_reply(asked.question, replies, model)
        if isinstance(vote, Vote):
            self._store(row, relation, asked.annotator, asked.draw, vote)
            return None
        key = call_key(self._identities[asked.annotator], vote.request, asked.draw)
        return _PendingQuestion(asked.annotator, asked.draw, vote, key, replies)

    def _store(self, row: int, relation: int, annotator: int, draw: int, vote: Vote) -> None:
        if vote.label is None:
            (self.tally.unreadable if vote.asked else self.tally.not_applicable)[vote.reason] += 1
            self._note_missing(row, vote.reason)
        if vote.cut and (row, annotator) not in self._cut:
            self._cut.add((row, annotator))
            self.tally.cut[self.job.annotators[annotator][0].name] += 1
        if vote.grades is not None:
            self.tally.graded += 1
            self.tally.bounded += vote.remark != ""
        elif vote.remark:
            self.tally.hard[vote.remark] += 1
        self.buffer.put(row, annotator, relation, draw, self._asking[relation].in_task_order(vote))

    def _fail(self, row: int, error: errors.PcsError) -> None:
        self.tally.failed[_short(error)] += 1
        self._note_missing(row, _short(error))

    def _note_missing(self, row: int, reason: str) -> None:
        if self.missing is not None:
            self.missing.setdefault(row, {})[reason] = None


def _short(error: Exception) -> str:
    """Return the kind of error, without the details that differ from call to call."""
    kinds = {
        errors.BudgetReached: BUDGET_REACHED,
        errors.RateLimited: "asked too fast",
        errors.ServerTrouble: "no answer",
        errors.TimedOut: "no answer in time",
    }
    return kinds.get(type(error), str(error).partition(" (")[0])
