"""What a job will ask, and what that costs at the most; asks nobody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from pcs_annotator.asking.annotators.length import estimate_tokens
from pcs_annotator.asking.engine.ask import PriceOf
from pcs_annotator.asking.engine.budget import Tokens, expected_tokens
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.core.bill import Bill, Plan
from pcs_annotator.core.chat import ChatModel
from pcs_annotator.core.elicitations import calls_of, kind_of
from pcs_annotator.core.task import Item
from pcs_annotator.core.vote import Vote
from pcs_annotator.relations.base import Relation
from pcs_annotator.relations.prompted.windows import cut_windows

REWRITE_OVERHEAD_TOKENS = 120
FOLLOW_UP_TOKENS = 120


def make_plan(job: Job, items: Iterable[Item], price_of: PriceOf) -> Plan:
    """Return what asking about these items takes when nothing has been answered yet.

    Rewrites are taken to be as long as the text, every relation to apply, and every rewrite to pass its checks. A
    question that two annotators share is counted for both, and one that may follow another as if it always did.
    """
    sums: dict[tuple[str, str], list[int]] = {}

    def count(model: ChatModel, purpose: str, calls: int, tokens: Tokens) -> None:
        if not calls:
            return
        entry = sums.setdefault((model.name, purpose), [0, 0, 0])
        entry[0] += calls
        entry[1] += calls * tokens.input
        entry[2] += calls * tokens.output

    rows = 0
    for item in items:
        rows += 1
        for annotator, model in job.annotators:
            question = annotator.question(job.task, item.text, model)
            if isinstance(question, Vote):
                continue
            answers, tokens = len(job.relations) * job.draws, expected_tokens(model, question.request)
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
    """Return the calls that rewriting a text takes, and the tokens of one of them."""
    shares = [share for relation in relations if (share := relation.calls(text))]
    # shares of one call, such as three thirds, must not add up to a little more than one
    calls = ceil(round(sum(shares), 6))
    if not calls:
        return 0, Tokens(0, 0)
    length = estimate_tokens(text)
    return calls, Tokens(
        length // len(cut_windows(text).texts) + REWRITE_OVERHEAD_TOKENS, ceil(2 * length * len(shares) / calls)
    )
