"""What to ask, and its maximum cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.asking.annotators.length import estimate_tokens
from pcs_annotator.asking.engine.ask import PriceOf
from pcs_annotator.asking.engine.budget import Tokens, expected_tokens
from pcs_annotator.core.bill import Bill, Plan
from pcs_annotator.core.chat import ChatModel
from pcs_annotator.core.elicitations import calls_of, kind_of
from pcs_annotator.core.strategy import Strategy
from pcs_annotator.core.task import Item, Task
from pcs_annotator.core.variant import Variant
from pcs_annotator.core.vote import Vote
from pcs_annotator.errors import ConfigError
from pcs_annotator.relations.base import Original, Relation
from pcs_annotator.relations.prompted.windows import cut_windows

OnVariant = Callable[[Item, Variant], None]
REWRITE_OVERHEAD_TOKENS = 120
FOLLOW_UP_TOKENS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Which annotators to ask about which variants.

    Attributes:
        task: What to decide.
        annotators: The annotators, each with its model.
        relations: How texts are rewritten.
        rewriter: The model that rewrites; None when no relation needs one.
        draws: How many times each question is asked.
        on_variant: Called with every item and variant, in no particular order.
        questions: Annotator → the relations it is asked under; an annotator that is not listed is asked under all.
    """

    task: Task
    annotators: Sequence[tuple[Annotator, ChatModel]]
    relations: Sequence[Relation] = (Original(),)
    rewriter: ChatModel | None = None
    draws: int = 1
    on_variant: OnVariant | None = None
    questions: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.annotators or not self.relations or self.draws < 1:
            raise ConfigError("nothing to ask: name at least one annotator, one relation and one draw")
        for relation in self.relations:
            if "rewriter" in relation.needs and self.rewriter is None:
                raise ConfigError(f"relation {relation.name!r} needs a model that rewrites: set `rewriter`")
        self._check_questions()

    def _check_questions(self) -> None:
        annotators = [annotator.name for annotator, _ in self.annotators]
        relations = [relation.name for relation in self.relations]
        for annotator, own in self.questions.items():
            if annotator not in annotators:
                raise ConfigError(
                    f"questions are listed for {annotator!r}, which is not asked: {', '.join(annotators)} are"
                )
            unknown = [name for name in own if name not in relations]
            if unknown or not own:
                what = f"the relation {unknown[0]!r} is not used here" if unknown else "the list is empty"
                raise ConfigError(f"questions for {annotator!r}: {what}; choose from {', '.join(relations)}")

    def asked_under(self, relation: int) -> list[int]:
        """Return the annotators that are asked under a relation."""
        name = self.relations[relation].name
        names = [annotator.name for annotator, _ in self.annotators]
        return [place for place, own in enumerate(names) if own not in self.questions or name in self.questions[own]]

    def check_strategy(self, strategy: Strategy) -> None:
        """Raise unless every cell that a strategy asks exists in this job."""
        for cell in strategy.order:
            if not all(0 <= at < size for at, size in zip(cell, self.shape, strict=True)):
                raise ConfigError(
                    f"the strategy asks {cell}, which this job does not have: fit with the same annotators, relations "
                    "and draws, or ask everything"
                )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of annotators, relations and draws."""
        return len(self.annotators), len(self.relations), self.draws

    @property
    def models(self) -> int:
        """Number of different models; each has its own limit on calls in flight."""
        names = {model.name for _, model in self.annotators}
        return len(names if self.rewriter is None else names | {self.rewriter.name})


def make_plan(job: Job, items: Iterable[Item], price_of: PriceOf) -> Plan:
    """Return the calls, tokens and maximum cost of a job with an empty ledger; no model is called.

    It assumes that rewrites are as long as the text, that every relation applies, and that every rewrite passes its
    checks. A question that two annotators share is counted twice, and a follow-up question is counted as if it were
    always asked.
    """
    sums: dict[tuple[str, str], list[int]] = {}

    def count(model: ChatModel, purpose: str, calls: int, tokens: Tokens) -> None:
        if not calls:
            return
        entry = sums.setdefault((model.name, purpose), [0, 0, 0])
        entry[0] += calls
        entry[1] += calls * tokens.input
        entry[2] += calls * tokens.output

    rows, asked = 0, [len(job.questions.get(annotator.name, job.relations)) for annotator, _ in job.annotators]
    for item in items:
        rows += 1
        for (annotator, model), relations in zip(job.annotators, asked, strict=True):
            question = annotator.question(job.task, item.text, model)
            if isinstance(question, Vote):
                continue
            answers, tokens = relations * job.draws, expected_tokens(model, question.request)
            count(model, "label", answers, tokens)
            if calls_of(kind_of(annotator.name)) > 1:
                # the second question repeats the first one and its answer
                repeated = tokens.input + tokens.output + FOLLOW_UP_TOKENS
                count(model, "label", answers, Tokens(repeated, tokens.output))
        if job.rewriter is not None:
            calls, tokens = _rewriting(job.relations, item.text)
            count(job.rewriter, "rewrite", calls, tokens)
    return Plan(
        rows=rows,
        models=tuple(
            Bill(
                model=model,
                purpose=purpose,
                calls=calls,
                input_tokens=tokens_in,
                output_tokens=tokens_out,
                usd=price_of(model, tokens_in, tokens_out),
            )
            for (model, purpose), (calls, tokens_in, tokens_out) in sums.items()
        ),
    )


def _rewriting(relations: Sequence[Relation], text: str) -> tuple[int, Tokens]:
    """Return the number of calls that rewriting a text takes, and the tokens of each."""
    shares = [share for relation in relations if (share := relation.calls(text))]
    # rounded, so that shares of one call, such as three thirds, do not add up to slightly more than one
    calls = ceil(round(sum(shares), 6))
    if not calls:
        return 0, Tokens(0, 0)
    length = estimate_tokens(text)
    return calls, Tokens(
        length // len(cut_windows(text).texts) + REWRITE_OVERHEAD_TOKENS, ceil(2 * length * len(shares) / calls)
    )
