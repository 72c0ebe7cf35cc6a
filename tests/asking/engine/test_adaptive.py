"""Asking step by step: which cells are asked, which are not needed, and which items a small budget goes to."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from pcs_annotator import ABSTAINED, NOT_ASKED, Annotator, Item, PromptedRelation, Relation, Task, Votes
from pcs_annotator.asking.engine.budget import Budget, BudgetTracker
from pcs_annotator.asking.engine.call import Asker, Patience
from pcs_annotator.asking.engine.collect import run_job
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.base.errors import AccessDenied, ConfigError, ServerTrouble
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.chat import ChatModel, Reply, Request, Usage
from pcs_annotator.core.votes import OPEN, Cell, Strategy
from pcs_annotator.models.resolve import resolve_model
from pcs_annotator.models.scripted import ScriptedModel, answer_by_hash
from pcs_annotator.relations.base import Original
from pcs_annotator.relations.function import FunctionRelation
from tests.asking.reading import assert_read_as_needed
from tests.asking.stubbed import stubbed
from tests.stub import Behaviour, Stub, StubServer

TASK = Task("How does the writer feel?", ["positive", "neutral", "negative"])
LOUD = FunctionRelation("loud", lambda text: f"Listen: {text}")
VOICE = PromptedRelation("voice", "Rewrite the text in the other voice.")
BUDGETS = [Budget(), Budget(calls=10_000)]


def all_cells(annotators: int, relations: int, draws: int = 1) -> tuple[Cell, ...]:
    return tuple(Cell(*places) for places in product(range(annotators), range(relations), range(draws)))


@dataclass
class Majority:
    """Stops exactly when the majority can no longer change."""

    order: Sequence[Cell]
    seen: list[Codes] = field(default_factory=list)

    def text_priors(self, texts: Sequence[str]) -> Floats | None:
        return None

    def needed(self, cells: Codes, said: Floats | None = None) -> int:
        self.seen.append(cells.copy())
        behind = self._open(cells) - self._lead(cells)
        return 0 if behind < 0 else behind // 2 + 1

    def _open(self, cells: Codes) -> int:
        return int((cells == OPEN).sum())

    def _lead(self, cells: Codes) -> int:
        second, first = sorted(int((cells == code).sum()) for code in range(3))[-2:]
        return first - second


@dataclass
class Needs:
    """Always needs the same number of cells."""

    order: Sequence[Cell]
    always: int

    def text_priors(self, texts: Sequence[str]) -> Floats | None:
        return None

    def needed(self, cells: Codes, said: Floats | None = None) -> int:
        return self.always


def some_items(count: int) -> list[Item]:
    return [Item(id=str(row), text=f"Text number {row} is rather nice.") for row in range(count)]


def hashing(count: int, latency: float = 0.0) -> list[ScriptedModel]:
    def model(number: int) -> ScriptedModel:
        return ScriptedModel(
            lambda request: answer_by_hash(request, str(number)), name=f"scripted:{number}", latency=latency
        )

    return [model(number) for number in range(count)]


class Planned(NamedTuple):
    job: Job
    strategy: Strategy | None


def make_job(models: Sequence[ChatModel], strategy: Strategy | None, **fields: object) -> Planned:
    annotators = [(Annotator(model), model) for model in models]
    return Planned(Job(task=TASK, annotators=annotators, **fields), strategy)  # type: ignore[arg-type]  # any of Job's


async def asked(plan: Planned, items: Iterable[Item], path: Path, budget: Budget | None = None) -> tuple[Votes, Tally]:
    with Ledger(path / "l.db") as ledger:
        tracker = BudgetTracker(budget or Budget())
        asker = Asker(ledger, tracker, Tally(), lambda model, tokens_in, tokens_out: 0.001, Patience(attempts=1))
        return await run_job(plan.job, items, asker, plan.strategy), asker.tally


def ask(plan: Planned, items: list[Item], path: Path, budget: Budget | None = None) -> tuple[Votes, Tally]:
    return asyncio.run(asked(plan, items, path, budget))


def majority(votes: Votes) -> list[int]:
    counts = np.stack([(votes.codes == code).sum(axis=(1, 2, 3)) for code in range(3)], axis=1)
    settled = np.sort(counts)[:, -1] > np.sort(counts)[:, -2]
    return [int(label) if clear else -1 for label, clear in zip(counts.argmax(axis=1), settled, strict=True)]


@pytest.mark.parametrize("budget", BUDGETS)
def test_asking_stops_when_the_label_is_settled_and_the_labels_are_those_of_asking_everything(
    budget: Budget, tmp_path: Path
) -> None:
    relations = [Original(), LOUD]
    (tmp_path / "all").mkdir()
    everything, all_asked = ask(make_job(hashing(3), None, relations=relations), some_items(200), tmp_path / "all")
    votes, tally = ask(
        make_job(hashing(3), Majority(all_cells(3, 2)), relations=relations), some_items(200), tmp_path, budget
    )
    assert majority(votes) == majority(everything)
    assert all_asked.calls == all_asked.questions == 1200
    assert tally.calls == tally.questions == (votes.codes >= 0).sum() < 1200
    assert tally.questions + tally.spared == 1200
    assert tally.rows == 200


@pytest.mark.parametrize("budget", BUDGETS)
def test_only_the_given_cells_are_asked_and_in_their_order(budget: Budget, tmp_path: Path) -> None:
    model = ScriptedModel("positive")
    order = [Cell(0, 1, 1), Cell(0, 0, 0), Cell(0, 1, 0)]
    job = make_job([model], Needs(order, 1), relations=[Original(), LOUD], draws=2)
    votes, _ = ask(job, some_items(1), tmp_path, budget)
    assert ["Listen" in request.messages[-1].content for request in model.requests] == [True, False, True]
    assert votes.codes[0, 0].tolist() == [[0, NOT_ASKED], [0, 0]]


def test_needed_cells_are_asked_at_the_same_time(tmp_path: Path) -> None:
    in_flight = most = 0

    class Counting(ScriptedModel):
        async def ask(self, request: Request) -> Reply:
            nonlocal in_flight, most
            in_flight += 1
            most = max(most, in_flight)
            try:
                return await super().ask(request)
            finally:
                in_flight -= 1

    job = make_job([Counting("positive", latency=0.01)], Needs(all_cells(1, 2, 4), 6), relations=[Original(), LOUD],
                   draws=4)  # fmt: skip
    ask(job, some_items(1), tmp_path)
    assert most == 6


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_text_is_rewritten_once_and_only_if_needed(budget: Budget, tmp_path: Path) -> None:
    rewriter = ScriptedModel(lambda request: "A quite different and pleasant wording.", name="scripted:rewriter")
    variants: list[str] = []
    agreed = "Text number 0"  # two of three votes are the same: the rewrite can change nothing

    def first(request: Request) -> str:
        return "positive"

    def second(request: Request) -> str:
        return "positive" if agreed in request.messages[-1].content else "negative"

    models = [ScriptedModel(first, name="scripted:first"), ScriptedModel(second, name="scripted:second")]
    order = [Cell(0, 0), Cell(1, 0), Cell(0, 1), Cell(1, 1), Cell(0, 1, 1)]
    job = make_job(
        models,
        Majority([order[0], order[1], order[2]]),
        relations=[Original(), VOICE],
        rewriter=rewriter,
        on_variant=lambda item, variant: variants.append(f"{item.id} {variant.relation}"),
    )
    ask(job, some_items(2), tmp_path, budget)
    assert rewriter.calls == 1
    assert sorted(variants) == ["0 original", "1 original", "1 voice"]
    stepwise = make_job(models, Needs(order, 1), relations=[Original(), VOICE], rewriter=rewriter, draws=2,
                        on_variant=job.job.on_variant)  # fmt: skip
    variants.clear()
    ask(stepwise, some_items(2), tmp_path, budget)
    assert sorted(variants) == ["0 original", "0 voice", "1 original", "1 voice"]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("needed", [1, 5, 1000])
def test_a_strategy_that_always_needs_more_ends_when_no_cell_is_open(
    needed: int, budget: Budget, tmp_path: Path
) -> None:
    strategy = Needs(all_cells(2, 2, 3), needed)
    votes, tally = ask(make_job(hashing(2), strategy, relations=[Original(), LOUD], draws=3), some_items(7), tmp_path,
                       budget)  # fmt: skip
    assert (votes.codes >= 0).all()
    assert (tally.calls, tally.spared, tally.rows) == (84, 0, 7)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("needed", [0, -3])
def test_no_model_is_called_for_a_strategy_that_needs_nothing(needed: int, budget: Budget, tmp_path: Path) -> None:
    votes, tally = ask(make_job(hashing(2), Needs(all_cells(2, 1), needed)), some_items(5), tmp_path, budget)
    assert (votes.codes == NOT_ASKED).all()
    assert (tally.calls, tally.spared, tally.rows) == (0, 10, 5)


@pytest.mark.parametrize("budget", BUDGETS)
def test_no_items_give_no_votes(budget: Budget, tmp_path: Path) -> None:
    votes, tally = ask(make_job(hashing(1), Needs(all_cells(1, 1), 1)), [], tmp_path, budget)
    assert votes.codes.shape == (0, 1, 1, 1)
    assert tally.calls == 0


def test_cells_of_a_rewrite_that_does_not_apply_are_closed_and_the_next_are_asked(tmp_path: Path) -> None:
    tried: list[str] = []

    def unchanged(text: str) -> str:
        tried.append(text)
        return text

    relations: list[Relation] = [FunctionRelation("same", unchanged), Original()]
    strategy = Majority([Cell(0, 0), Cell(0, 1), Cell(1, 0), Cell(1, 1)])
    votes, tally = ask(make_job(hashing(2), strategy, relations=relations), some_items(1), tmp_path)
    assert len(tried) == 1
    assert tally.not_applicable == {"same: the rewrite changed nothing": 1}
    assert (votes.codes[:, :, 0] == NOT_ASKED).all()
    assert (strategy.seen[0] == OPEN).all()
    assert all((cells[:, 0] == NOT_ASKED).all() for cells in strategy.seen[1:])
    assert tally.questions == tally.calls == 2


def test_an_empty_text_is_not_asked_and_an_unreadable_answer_is_an_abstention(tmp_path: Path) -> None:
    strategy = Majority(all_cells(2, 1))
    silent = [ScriptedModel("I cannot say.", name=f"scripted:{name}") for name in "ab"]
    votes, tally = ask(make_job(silent, strategy), [Item(id="empty", text=" "), *some_items(1)], tmp_path)
    assert votes.codes[:, :, 0, 0].tolist() == [[NOT_ASKED] * 2, [ABSTAINED] * 2]
    assert tally.questions == 2


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("needed", [1, 2])
def test_failed_calls_are_repeated_in_the_next_run_and_not_in_this_one(
    needed: int, budget: Budget, tmp_path: Path
) -> None:
    down = ScriptedModel(lambda request: ServerTrouble("no"), name="scripted:1")
    fine, repaired = hashing(2)
    strategy = Needs([Cell(1, 0), Cell(0, 0)], needed)
    votes, tally = ask(make_job([fine, down], strategy), some_items(4), tmp_path, budget)
    assert down.calls == tally.failed["no answer"] == 4
    assert (votes.codes[:, 1] == NOT_ASKED).all()
    assert (votes.codes[:, 0] >= 0).all()
    votes, tally = ask(make_job([fine, repaired], strategy), some_items(4), tmp_path, budget)
    assert (votes.codes >= 0).all()
    assert (tally.calls, tally.from_ledger) == (4, 4)


def test_a_rewriter_that_does_not_answer_closes_its_relation(tmp_path: Path) -> None:
    down = ScriptedModel(lambda request: ServerTrouble("no"), name="scripted:down")
    job = make_job(hashing(2), Needs(all_cells(2, 2), 1), relations=[VOICE, Original()], rewriter=down)
    votes, tally = ask(job, some_items(3), tmp_path)
    assert down.calls == tally.failed["no answer"] == 3
    assert (votes.codes[:, :, 0] == NOT_ASKED).all()
    assert (votes.codes[:, :, 1] >= 0).all()


@pytest.mark.parametrize("budget", BUDGETS)
@stubbed(Behaviour())
async def test_a_second_run_calls_no_model_over_http(stub: Stub, tmp_path: Path, budget: Budget) -> None:
    async def run() -> tuple[Votes, Tally]:
        models = [resolve_model(f"{stub.url}#{name}", {}) for name in ("a", "b", "rewriter")]
        job = make_job(models[:2], Majority(all_cells(2, 2, 2)), relations=[Original(), VOICE], draws=2,
                       rewriter=models[2])  # fmt: skip
        try:
            return await asked(job, some_items(40), tmp_path, budget)
        finally:
            for model in models:
                await model.close()

    first, tally = await run()
    paid = stub.stats().requests
    assert 40 * 3 < paid == tally.calls < 40 * (2 * 2 * 2 + 1)
    assert tally.questions + tally.spared == 40 * 8
    second, again = await run()
    assert stub.stats().requests == paid
    assert (first.codes == second.codes).all()
    assert (again.calls, again.questions, again.spared) == (0, tally.questions, tally.spared)


@pytest.mark.parametrize("budget", [Budget(calls=54), Budget(usd=0.054), Budget(tokens=54 * 1000)])
def test_a_small_budget_gives_every_row_its_first_answers_before_any_gets_more(budget: Budget, tmp_path: Path) -> None:
    model = ScriptedModel("neutral", latency=0.001)
    # ten rows, which would take 90 calls in all
    job = make_job([_Billed(model) if budget.tokens else model], Needs(all_cells(1, 1, 9), 2), draws=9)
    votes, tally = ask(job, some_items(10), tmp_path, budget)
    answers = (votes.codes >= 0).sum(axis=(1, 2, 3))
    assert answers.min() >= 2
    assert answers.sum() == tally.calls
    assert 50 <= tally.calls <= 54
    assert tally.failed["budget reached"] == 90 - tally.calls
    assert tally.rows == 10


class _Billed(ScriptedModel):
    """Reports a thousand tokens for every call."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__("unused", name=model.name)
        self._model = model

    async def ask(self, request: Request) -> Reply:
        reply = await self._model.ask(request)
        return Reply(text=reply.text, usage=Usage(input_tokens=990, output_tokens=10))


def test_a_larger_budget_continues_where_the_smaller_one_ended(tmp_path: Path) -> None:
    relations = [Original(), LOUD]
    job = make_job(hashing(3), Majority(all_cells(3, 2)), relations=relations)
    (tmp_path / "free").mkdir()
    streamed, free = ask(job, some_items(50), tmp_path / "free")
    _, short = ask(job, some_items(50), tmp_path, Budget(calls=free.calls * 6 // 10))
    assert short.calls == free.calls * 6 // 10
    rationed, rest = ask(job, some_items(50), tmp_path, Budget(calls=free.calls))
    assert (rationed.codes == streamed.codes).all()
    assert rest.spared == free.spared
    # the short run used its whole budget, partly on labels that were about to be settled
    assert free.calls <= short.calls + rest.calls <= free.calls + 50


def test_answers_in_the_ledger_are_used_even_when_the_budget_is_spent(tmp_path: Path) -> None:
    job = make_job(hashing(2), Needs(all_cells(2, 1), 1))
    first, _ = ask(job, some_items(10), tmp_path)
    again, tally = ask(job, some_items(12), tmp_path, Budget(calls=1))
    assert (again.codes[:10] == first.codes).all()
    assert tally.calls == 1
    assert tally.failed["budget reached"] == 3


@pytest.mark.parametrize("budget", BUDGETS)
def test_cancelling_keeps_the_calls_in_flight_and_the_next_run_pays_only_for_the_rest(
    budget: Budget, tmp_path: Path
) -> None:
    async def main() -> None:
        slow = ScriptedModel("positive", latency=0.3)
        job = make_job([slow], Needs(all_cells(1, 1, 3), 1), draws=3)
        task = asyncio.create_task(asked(job, some_items(20), tmp_path, budget))
        while slow.calls < 25:  # some items are at their second step
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        paid = slow.calls
        assert 25 <= paid < 60
        slow.latency = 0.0
        votes, tally = await asked(job, some_items(20), tmp_path, budget)
        assert (votes.codes >= 0).all()
        assert (tally.from_ledger, tally.calls, slow.calls) == (paid, 60 - paid, 60)

    asyncio.run(main())


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_denied_access_stops_the_run(budget: Budget, tmp_path: Path) -> None:
    denied = ScriptedModel(lambda request: AccessDenied("no such key"), name="scripted:denied")
    fine = hashing(1, latency=0.05)[0]
    job = make_job([fine, denied], Needs(all_cells(2, 1), 1))
    with pytest.raises(AccessDenied, match="no such key"):
        ask(job, some_items(500), tmp_path, budget)
    with Ledger(tmp_path / "l.db") as ledger:
        (size,) = ledger.sizes()
    assert size.calls == fine.calls > 0


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_bug_in_a_strategy_is_raised_unchanged(budget: Budget, tmp_path: Path) -> None:
    class Broken(Needs):
        def text_priors(self, texts: Sequence[str]) -> Floats | None:
            return None

        def needed(self, cells: Codes, said: Floats | None = None) -> int:
            if (cells >= 0).any():
                raise ZeroDivisionError("a bug")
            return 1

    with pytest.raises(ZeroDivisionError, match="a bug"):
        ask(make_job(hashing(2), Broken(all_cells(2, 1), 1)), some_items(50), tmp_path, budget)


def test_without_a_budget_items_are_read_as_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = make_job([ScriptedModel("positive", latency=30.0)], Needs(all_cells(1, 1), 1))
    assert_read_as_needed(lambda items: asked(job, items, tmp_path), monkeypatch)


def test_one_cell_at_a_time_still_keeps_the_model_busy(tmp_path: Path) -> None:
    async def main() -> int:
        async with StubServer(Behaviour(latency_s=0.6)) as stub:  # long enough for a busy machine to ask 60 times
            model = resolve_model(f"{stub.url}#m", {})
            job = make_job([model], Needs(all_cells(1, 1, 3), 1), draws=3)
            task = asyncio.create_task(asked(job, some_items(100), tmp_path))
            most = 0
            while not task.done():
                most = max(most, stub.stats().in_flight)
                await asyncio.sleep(0.005)
            await task
            await model.close()
            return most

    assert asyncio.run(main()) >= 60


@pytest.mark.parametrize("cell", [Cell(1, 0), Cell(0, 2), Cell(0, 0, 1), Cell(-1, 0)])
def test_a_strategy_for_another_job_is_refused(cell: Cell, tmp_path: Path) -> None:
    job = make_job(hashing(1), Needs([cell], 1), relations=[Original(), LOUD])
    with pytest.raises(ConfigError, match=re.escape(str(cell))):
        ask(job, some_items(1), tmp_path)


def test_a_part_that_is_stopped_leaves_the_others_going(tmp_path: Path) -> None:
    slow = ScriptedModel("positive", latency=0.05)
    plan = make_job([slow], None, relations=[Original()])

    async def stopped_then_asked() -> Votes:
        with Ledger(tmp_path / "l.db") as ledger:
            asker = Asker(ledger, BudgetTracker(Budget()), Tally(), lambda *_: 0.001, max_in_flight=1)
            first = asyncio.create_task(run_job(plan.job, some_items(20), asker.part(asker.shared)))
            while not slow.requests:
                await asyncio.sleep(0.01)
            first.cancel()
            await asyncio.wait([first])
            return await run_job(plan.job, [Item(id="new", text="A new text.")], asker.part(asker.shared))

    assert (asyncio.run(stopped_then_asked()).codes == 0).all()
    assert len(slow.requests) < 20
