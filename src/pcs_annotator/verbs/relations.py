"""Lists relations, and tries one on a text."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pcs_annotator.asking.annotators.prompt import build_messages
from pcs_annotator.asking.engine.call import Rewriter
from pcs_annotator.asking.engine.job import QuestionForm
from pcs_annotator.asking.ledger.lock import lock_ledger_async
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.core.task import Phrasing, Task
from pcs_annotator.core.variant import Variant
from pcs_annotator.models.provider import read_environment
from pcs_annotator.models.resolve import resolve_model
from pcs_annotator.relations.base import Context, Original, QuestionRelation, Relation, rephrased
from pcs_annotator.relations.combine import choose_relations, known_relations, text_parts
from pcs_annotator.runs import resolve_config
from pcs_annotator.runs.ask import CollectSettings, open_asker
from pcs_annotator.runs.settings import Config

EXAMPLE = Task("How does the writer feel?", ["positive", "neutral", "negative"])
"""The task that relations of the question are shown with if `pcs.toml` has none."""


class KnownRelation(NamedTuple):
    """A relation as it is listed."""

    name: str
    version: str
    changes: str  # text, question or nothing
    needs: tuple[str, ...]
    deterministic: bool


def list_relations(config: Config) -> list[KnownRelation]:
    """Return every relation: built in, from plug-ins, and from `pcs.toml`."""
    listed = []
    for relation in known_relations(resolve_config.own_relations(config.relations)):
        of_text = "text" if text_parts(relation) else "nothing"
        changes = "question" if isinstance(relation, QuestionRelation) else of_text
        needs = tuple(sorted(relation.needs))
        listed.append(KnownRelation(relation.name, relation.version, changes, needs, relation.deterministic))
    return listed


class TriedRelation(NamedTuple):
    """A text under a relation."""

    variant: Variant  # the text, or why there is none
    question: str = ""  # what models read under this relation; empty if it does not change the question
    usual_question: str = ""  # what they read under `original`
    example: bool = False  # whether the question is an example, because `pcs.toml` has no labels


def try_relation(name: str, text: str, config: Config) -> TriedRelation:
    """Return what one relation makes of one text, and of the question about it."""

    async def one() -> TriedRelation:
        async with _opened([name], config) as (relations, context):
            variant = await relations[0].rewrite(text, context)
            task = resolve_config.task_of(config) if config.task.labels else EXAMPLE
            usual = Phrasing(task=task, examples=int("examples" not in relations[0].needs))
            if (put := rephrased(relations[0], usual)) == usual:
                return TriedRelation(variant)
            question, usual_question = _read_as(put, text, variant.text or text), _read_as(usual, text, text)
            return TriedRelation(variant, question, usual_question, not config.task.labels)

    return run_sync(one)


def _read_as(question: Phrasing, source: str, text: str) -> str:
    task = QuestionForm.of(question, [], Original()).about(source)
    messages = build_messages(task, text, style="plain" if question.one_message else "chat")
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in messages)


@asynccontextmanager
async def _opened(names: Sequence[str], config: Config) -> AsyncIterator[tuple[Sequence[Relation], Context]]:
    """Open relations that are ready to rewrite, and close their model at the end; a ledger keeps paid rewrites."""
    spec = config.relations.rewriter
    relations = choose_relations(names, resolve_config.relation_options_of(config.relations, rewriter=bool(spec)))
    context = Context()
    async with AsyncExitStack() as stack:
        if spec:
            model = resolve_model(spec, read_environment(Path.cwd()))
            path = config.ask.ledger or Path(stack.enter_context(TemporaryDirectory())) / "ledger.db"
            await stack.enter_async_context(lock_ledger_async(path))
            ledger = open_ledger(path)
            stack.enter_context(ledger)
            stack.push_async_callback(model.close)
            context = Context(ask=Rewriter(model, open_asker(ledger, CollectSettings())))
        yield relations, context
