"""What to ask, and its maximum cost."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from hashlib import blake2b
from itertools import combinations
from math import ceil
from typing import Any, NamedTuple
from uuid import uuid4

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.asking.annotators.length import estimate_tokens
from pcs_annotator.asking.engine.budget import Tokens, expected_tokens
from pcs_annotator.asking.ledger.admin import PriceOf
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.bill import Bill, Plan
from pcs_annotator.core.chat import ChatModel, Message, Reply, gets_no_examples, identity_of
from pcs_annotator.core.elicitations import calls_of, kind_of
from pcs_annotator.core.ngrams import CandidateLabels, NearestExamples, candidates_of, nearest_among
from pcs_annotator.core.task import Item, Phrasing, Task
from pcs_annotator.core.variant import Variant
from pcs_annotator.core.votes import Strategy, Vote, positions_of
from pcs_annotator.relations.base import Original, Relation, rephrased
from pcs_annotator.relations.combine import text_parts
from pcs_annotator.relations.prompted import cut_windows
from pcs_annotator.version import code_stamp

OnVariant = Callable[[Item, Variant], None]


class Exchange(NamedTuple):
    """A question as it was sent, and the reply."""

    row: int  # which item it is about, in their order
    relation: str
    annotator: str
    draw: int
    messages: Sequence[Message]
    reply: Reply


REWRITE_OVERHEAD_TOKENS = 120
FOLLOW_UP_TOKENS = 120
CHOSEN_FOR = 500  # texts for which a plan chooses examples; others are planned with theirs, which are about as long
_OUR_CODE = __name__.partition(".")[0] + "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Which annotators to ask about which variants."""

    task: Task  # what to decide
    annotators: Sequence[tuple[Annotator, ChatModel]]  # the annotators, each with its model
    relations: Sequence[Relation] = (Original(),)  # how texts are rewritten
    rewriter: ChatModel | None = None  # the model that rewrites; None when no relation needs one
    draws: int = 1  # how many times each question is asked
    on_variant: OnVariant | None = None  # called with every item and variant, in no particular order
    questions: Mapping[str, Sequence[str]] = field(default_factory=dict)  # annotator → its relations, if not all
    on_exchange: Callable[[Exchange], None] | None = None  # called with every question that has a reply

    def __post_init__(self) -> None:
        if not self.annotators or not self.relations or self.draws < 1:
            raise ConfigError("nothing to ask: name at least one model, one relation and one draw")
        for relation in self.relations:
            if self.rewriter is None and "rewriter" in relation.needs:
                raise ConfigError(f"relation {relation.name!r} needs a model that rewrites: set `rewriter`")
        self._refuse_rewrites()
        self._check_questions()
        self._refuse_same_questions()
        self._refuse_examples()
        stated = next((entry.name for entry, _ in self.annotators if kind_of(entry.name)), None)
        if stated and self.task.extraction:
            raise ConfigError(
                f"{stated} would state a probability for each label, and passages have none: ask it plainly"
            )
        if stated and (self.task.asked or self.task.number):
            labels = f"{len(self.task.labels):,} labels"
            raise ConfigError(f"{stated} would state a probability for each of {labels}: ask it for a label only")

    def form(self, relation: Relation, annotators: Sequence[Annotator] | None = None) -> "QuestionForm":
        """Return how a relation puts the question; where some relation asks with examples, others ask without."""
        plain = not any("examples" in shown.needs for shown in self.relations)
        asking = [annotator for annotator, _ in self.annotators] if annotators is None else annotators
        return QuestionForm.of(Phrasing(task=self.task, examples=int(plain)), asking, relation)

    def _refuse_rewrites(self) -> None:
        """Raise if a relation changes texts where it must not: those of a pair, and those that are quoted from."""
        rewrites = next((entry.name for entry in self.relations if text_parts(entry)), None)
        if rewrites and (self.task.pair or self.task.extraction):
            why = "a pair has two" if self.task.pair else "quotations are looked up in the text as it is"
            raise ConfigError(f"relation {rewrites!r} rewrites a text, and {why}: use order, wording or layout")

    def _refuse_same_questions(self) -> None:
        """Raise if two relations ask the same question about the same text: it would count twice."""
        asked = [(relation, text_parts(relation), self.form(relation)) for relation in self.relations]
        for (first, one_texts, one_asking), (other, other_texts, other_asking) in combinations(asked, 2):
            if one_texts == other_texts and one_asking == other_asking:
                two_labels = bool(one_asking.order) and len(self.task.labels) == 2
                why = ", because two labels have only one other order" if two_labels else ""
                raise ConfigError(
                    f"relations {first.name!r} and {other.name!r} ask the same question{why}: leave one of them out"
                )

    def _check_questions(self) -> None:
        annotators = [annotator.name for annotator, _ in self.annotators]
        relations = [relation.name for relation in self.relations]
        for annotator, asked_under in self.questions.items():
            if annotator not in annotators:
                raise ConfigError(
                    f"questions are listed for {annotator!r}, which is not asked: {', '.join(annotators)} are"
                )
            unknown = [name for name in asked_under if name not in relations]
            if unknown or not asked_under:
                what = f"the relation {unknown[0]!r} is not used here" if unknown else "the list is empty"
                raise ConfigError(f"questions for {annotator!r}: {what}; choose from {', '.join(relations)}")

    def _refuse_examples(self) -> None:
        """Raise if models that get no examples would be left without a question, or a relation without a model."""
        blind = [annotator.name for annotator, model in self.annotators if gets_no_examples(model)]
        shown = [relation.name for relation in self.relations if "examples" in relation.needs]
        if blind and shown and (len(blind) == len(self.annotators) or len(shown) == len(self.relations)):
            remedy = f"leave {shown[0]!r} out, or ask another model and 'original' too"
            raise ConfigError(f"relation {shown[0]!r}: {blind[0]} gets no examples, it repeats their labels: {remedy}")

    def asked_under(self, relation: int) -> list[int]:
        """Return the annotators that are asked under a relation; with examples, not those that get none."""
        relation_ = self.relations[relation]
        return [
            number
            for number, (annotator, model) in enumerate(self.annotators)
            if relation_.name in self.questions.get(annotator.name, (relation_.name,))
            and not ("examples" in relation_.needs and gets_no_examples(model))
        ]

    def check_strategy(self, strategy: Strategy) -> None:
        """Raise unless every cell that a strategy asks exists in this job."""
        for cell in strategy.order:
            if not all(0 <= at < size for at, size in zip(cell, self.shape, strict=True)):
                raise ConfigError(
                    f"the strategy asks {cell}, which this job does not have: fit with the same models, relations "
                    "and draws, or ask everything"
                )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of annotators, relations and draws."""
        return len(self.annotators), len(self.relations), self.draws

    @property
    def models(self) -> int:
        """Number of different models; each has its own limit on calls in flight."""
        return len({model.name for model in models_of(self)})


def models_of(job: Job) -> list[ChatModel]:
    """Return all models of a job."""
    models = [model for _, model in job.annotators]
    return models if job.rewriter is None else [*models, job.rewriter]


class QuestionForm(NamedTuple):
    """How the question is put under one relation."""

    task: Task  # the task as it is asked
    annotators: Sequence[Annotator]  # the job's annotators, as they ask it
    order: tuple[int, ...]  # for each label of the job's task, its position as asked; empty if the order is the same
    bank: NearestExamples | None = None  # what finds the examples for a text; None if they are the same for all
    skipped: int = 0  # how many examples are nearer to a text than those that are shown
    finder: CandidateLabels | None = None  # what finds the labels for a text; None if all of them are asked about
    arranged: tuple[int, ...] = ()  # the order in which these are listed

    @classmethod
    def of(cls, question: Phrasing, annotators: Sequence[Annotator], relation: Relation) -> "QuestionForm":
        """Return how a relation puts the question."""
        put = rephrased(relation, question)
        order = tuple(positions_of(question.task.labels, put.task.labels, "label"))
        order = (*(order[at] for at in put.task.pair), *order[len(put.task.pair) :])
        if put.one_message:
            annotators = [replace(annotator, style="plain") for annotator in annotators]
        task = put.task if put.examples else replace(put.task, examples=(), nearest=0)
        bank = nearest_among(tuple(task.examples)) if task.nearest and task.examples else None
        skipped = task.nearest * (put.examples - 1) if bank else 0
        order = () if order == tuple(range(len(order))) else order
        finder = candidates_of(question.task)
        arranged = _arranged(question, relation) if finder else ()
        return cls(replace(task, known=()), annotators, order, bank, skipped, finder, arranged)

    def about(self, text: str) -> Task:
        """Return the task with the labels and examples for a text as the user gave it, which its rewrites get too."""
        task = self.task
        changes: dict[str, Any] = {}
        if self.bank is not None:
            changes["examples"] = self.bank.of(text, task.nearest, self.skipped)
        if self.finder is not None:
            candidates = self.finder.of(text, task.asked)
            labels = [candidates[position] for position in self.arranged]
            meanings = {label: task.meanings[label] for label in labels if label in task.meanings}
            changes |= {"labels": labels, "meanings": meanings, "among": task.labels}
        return replace(task, **changes) if changes else task

    def in_task_order(self, vote: Vote) -> Vote:
        """Return the vote with its probabilities in the order of the job's labels, about texts as they were given."""
        if self.task.pair and vote.label:
            vote = replace(vote, label=self.task.meant(vote.label))
        if not self.order or (vote.stated is None and vote.grades is None):
            return vote
        stated, grades = (values and tuple(values[at] for at in self.order) for values in (vote.stated, vote.grades))
        return replace(vote, stated=stated, grades=grades)


def _arranged(question: Phrasing, relation: Relation) -> tuple[int, ...]:
    """Return the order in which a relation lists candidates, whichever they are."""
    task = question.task
    some = task.labels[: task.asked]
    examples = [example._replace(label=some[0]) for example in task.examples]
    few = replace(task, labels=some, meanings={}, examples=examples, known=(), together=None)
    return tuple(positions_of(rephrased(relation, replace(question, task=few)).task.labels, some, "label"))


def job_digest(job: Job, items: Iterable[Item]) -> str:
    """Return a digest of all that the votes of a job depend on: texts, rewrites, questions, models and code.

    It is another one every time if a relation has code from elsewhere, because a change of that would not be noticed.
    """
    asked: list[object] = [code_stamp(), job.task, job.draws]
    asked += [
        job.rewriter and identity_of(job.rewriter),
        {name: [*names] for name, names in sorted(job.questions.items())},
    ]
    for annotator, model in job.annotators:
        how = [getattr(annotator, entry.name) for entry in fields(annotator) if entry.name != "model"]
        asked += [annotator.identity(model), model.context_tokens, *how]
    for relation in job.relations:
        parts = list(_parts(relation))
        if any(callable(part) and not str(getattr(part, "__module__", "")).startswith(_OUR_CODE) for part in parts):
            return uuid4().hex
        described = (
            f"{described_part.__module__}.{described_part.__qualname__}"
            if callable(described_part)
            else repr(described_part)
            for described_part in parts
        )
        asked += [relation.name, relation.version, *described]
    digest = blake2b(repr(asked).encode("utf-8", "surrogatepass"), digest_size=16)
    for item in items:
        digest.update(f"{len(item.id)} {item.id}{len(item.text)} {item.text}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _parts(thing: object) -> Iterator[Any]:
    """Yield what a relation is made of: classes, functions and plain values."""
    if isinstance(thing, str | int | float | None) or callable(thing):
        yield thing
    elif isinstance(thing, tuple):
        yield from (part for piece in thing for part in _parts(piece))
    else:
        yield type(thing)
        if is_dataclass(thing):
            yield from (part for entry in fields(thing) for part in _parts(getattr(thing, entry.name)))


def make_plan(job: Job, items: Iterable[Item], price_of: PriceOf, seen: set[object] | None = None) -> Plan:
    """Return the most calls, tokens and cost of a job with an empty ledger; no model is called.

    It assumes that rewrites are as long as the text, that every relation applies, and that every rewrite is made twice,
    because its checks reject the first. A question that two annotators share is counted twice, and a follow-up question
    is counted as if it were always asked. Calls in `seen`, of jobs with the same ledger, are not counted again; those
    of this job are added.
    """
    seen = set() if seen is None else seen
    once = {*seen}
    sums: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def count(model: ChatModel, purpose: str, calls: int, tokens: Tokens) -> None:
        if calls:
            used = {"input_tokens": calls * tokens.input, "output_tokens": calls * tokens.output}
            sums[model.name, purpose].update(calls=calls, **used)

    rows, ways, first = 0, _ways_of_asking(job), list[str]()
    for item in items:
        rows += 1
        if len(first) < CHOSEN_FOR:
            first.append(item.text)
        for annotator, model, way, names in ways:
            question = annotator.question(way.about(first[(rows - 1) % len(first)]), item.text, model)
            if isinstance(question, Vote):
                continue
            calls = {(model.name, hash(question.request), name) for name in names}
            answers, tokens = len(calls - once) * job.draws, expected_tokens(model, question.request)
            seen |= calls
            count(model, "label", answers, tokens)
            if calls_of(kind_of(annotator.name)) > 1:
                # the second question repeats the first one and its answer
                repeated = tokens.input + tokens.output + FOLLOW_UP_TOKENS
                count(model, "label", answers, Tokens(repeated, tokens.output))
        if job.rewriter is not None:
            new = [relation for relation in job.relations if (job.rewriter.name, item.text, relation.name) not in once]
            seen |= {(job.rewriter.name, item.text, relation.name) for relation in new}
            count(job.rewriter, "rewrite", *_rewriting(new, item.text))
    bills = (
        Bill(model=model, purpose=purpose, **taken, usd=price_of(model, taken["input_tokens"], taken["output_tokens"]))
        for (model, purpose), taken in sums.items()
    )
    return Plan(rows=rows, models=tuple(bills))


def _ways_of_asking(job: Job) -> list[tuple[Annotator, ChatModel, QuestionForm, list[str]]]:
    """Return distinct (annotator, question) pairs, with the names of their relations."""
    ways: list[tuple[QuestionForm, defaultdict[int, list[str]]]] = []
    for number, relation in enumerate(job.relations):
        asking = job.form(relation)
        names_of = next((asked for way, asked in ways if way == asking), None)
        if names_of is None:
            names_of = defaultdict[int, list[str]](list)
            ways.append((asking, names_of))
        for annotator in job.asked_under(number):
            names_of[annotator].append(relation.name)
    return [
        (way.annotators[number], job.annotators[number][1], way, names)
        for way, asked in ways
        for number, names in sorted(asked.items())
    ]


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
