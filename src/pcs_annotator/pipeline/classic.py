"""What the paper's class stands on: keys, a user's own relations, votes on a batch of texts, weights and scores."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.models.provider import read_environment
from pcs_annotator.core.concurrency import run_sync
from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.errors import ConfigError, MissingPackage, PcsError
from pcs_annotator.files.runs import read_json, write_json
from pcs_annotator.files.tables import write_table
from pcs_annotator.judging.weighing.fitting import fit_weights
from pcs_annotator.judging.weighing.optimiser import optimisers
from pcs_annotator.judging.weighing.scoring import score
from pcs_annotator.pipeline.ask import Panel
from pcs_annotator.relations.base import Relation
from pcs_annotator.relations.choose import choose_relations
from pcs_annotator.relations.compose import InTurn
from pcs_annotator.relations.function import FunctionRelation, Rewritten
from pcs_annotator.relations.parse import INSTALL, Parser
from pcs_annotator.relations.prompted.prompted import PromptedRelation
from pcs_annotator.relations.rules.rule import NotApplicable
from pcs_annotator.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

RelationLike = str | Relation
"""A relation, or the name of one."""
Rewriting = Callable[[str], Rewritten | Awaitable[Rewritten]]
OwnRelation = str | Rewriting | Relation
"""A prompt, a function `text -> text` or None, or a relation."""

# The first variable of each is the paper's argument.
KEY_VARIABLES = {
    "groq": ("GROQ_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "huggingface": ("HUGGINGFACE_API_KEY", "HF_TOKEN", "HUGGINGFACEHUB_API_TOKEN"),
}
NO_KEY = "none"
# A prompt of a user's own may shorten, expand and turn around more than ours do.
OWN_PROMPT = Expectation(reorders=True, shortest=0.3, longest=3.0, renumbers=True)


class Secrets(dict[str, str]):
    """Variables whose values are never shown.

    >>> Secrets(GROQ_API_KEY="gsk-1")
    <1 variable, values not shown>
    """

    def __repr__(self) -> str:
        return f"<{len(self)} variable{'' if len(self) == 1 else 's'}, values not shown>"


def environment_with(keys: Mapping[str, str], given: Mapping[str, str] | None = None) -> Secrets:
    """Return keys and base URLs: those of the process and of `.env`, and over them the keys that were given.

    A provider that `<PROVIDER>_BASE_URL` sends elsewhere, such as to a server of one's own, needs no key.
    """
    found = Secrets(read_environment(Path.cwd()) if given is None else given)
    for provider, variables in KEY_VARIABLES.items():
        key = keys.get(variables[0], "").strip()
        if key:
            for variable in variables:
                found.pop(variable, None)
        elif not any(found.get(name, "").strip() for name in variables):
            key = NO_KEY if found.get(f"{provider.upper()}_BASE_URL", "").strip() else ""
        if key:
            found[variables[0]] = key
    return found


def annotator_names(annotators: Sequence[object]) -> list[str]:
    """Return what annotators are called among votes: models by their names as they were written.

    Raises:
        ConfigError: There are none, or two share a name.
    """
    if not annotators:
        raise ConfigError("no annotators: name at least one model, as in annotators=['groq:llama-3.1-8b-instant']")
    names = [(given if isinstance(given, Annotator) else Annotator(given)).name for given in annotators]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ConfigError(f"annotators: {twice[0]!r} is named twice: name each once, or give Annotator(…, name=…)")
    return names


def check_relations(panel: Panel) -> None:
    """Raise when a relation of a panel cannot be used; see `relation_names`."""
    relation_names(panel)


def relation_names(panel: Panel) -> list[str]:
    """Return what the relations of a panel are called among votes.

    Raises:
        ConfigError: One is unknown, named twice, or needs a model that rewrites and there is none.
        MissingPackage: One needs a parser that is not installed.
    """
    rewriter = panel.settings.rewriter is not None
    try:
        chosen = choose_relations(panel.relations, replace(panel.settings.choosing, rewriter=rewriter))
    except ConfigError as error:
        raise error if rewriter else ConfigError(f"{error}; PCS calls it textmutator") from error
    needy = [relation.name for relation in chosen if "parser" in relation.needs]
    if needy and not Parser().available:
        raise MissingPackage(
            f"relation {needy[0]!r} is made by rule, which needs a parser: {INSTALL}, or name a model as textmutator"
        )
    return [relation.name for relation in chosen]


def own_relation(name: str, how: OwnRelation, checked: bool | None = None) -> RelationLike:
    """Return a relation made of a prompt or a function.

    Args:
        name: As it appears among votes.
        how: A prompt, with or without `{text}`; a function, sync or async; or a relation of that name.
        checked: Whether its rewrites are checked; by default those of a model are, and those of a function are taken
            at their author's word.
    """
    made: Relation
    if isinstance(how, str):
        made = PromptedRelation(name, how, expects=OWN_PROMPT)
    elif is_relation(how):
        return how
    else:
        made = FunctionRelation(name, _guarded(name, how), expects=OWN_PROMPT)
    if checked is None:
        checked = isinstance(how, str)
    # what is made of relations is not checked again
    return made if checked else InTurn(name, (made,))


def is_relation(thing: object) -> TypeGuard[Relation]:
    """Return whether this is a relation rather than something to make one of."""
    return not isinstance(thing, type) and hasattr(thing, "rewrite") and hasattr(thing, "name")


def name_of(relation: RelationLike) -> str:
    """Return what a relation is called."""
    return relation if isinstance(relation, str) else relation.name


def _guarded(name: str, function: Any) -> Rewriting:
    """Return the function with its failures explained."""

    async def rewrite(text: str) -> Rewritten:
        if not text.strip():
            return NotApplicable("the text is empty")
        try:
            result = function(text)
            if inspect.isawaitable(result):
                result = await result
        except PcsError:
            raise
        except Exception as error:
            raise ConfigError(
                f"relation {name!r}: its function raised {type(error).__name__}: {error}, on the text {text[:60]!r}"
            ) from error
        if result is None or isinstance(result, str | NotApplicable):
            return result
        raise ConfigError(f"relation {name!r}: its function returned {type(result).__name__}, not a text or None")

    return rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTexts:
    """What came of asking about some texts.

    Attributes:
        votes: One item for every text, in that order.
        variants: Text and relation → what was made of it.
        tally: What happened on the way.
    """

    votes: Votes
    variants: Mapping[tuple[str, str], Variant]
    tally: Tally

    def rewrite(self, text: str, relation: str) -> str | None:
        """Return what a relation made of a text; None where it made nothing."""
        variant = self.variants.get((text, relation))
        return None if variant is None else variant.text

    @property
    def unchanged(self) -> dict[str, str]:
        """Relation that changed no text at all → the commonest cause."""
        causes: dict[str, Counter[str]] = {}
        changed = {relation for (_, relation), variant in self.variants.items() if variant.text is not None}
        for (_, relation), variant in self.variants.items():
            if relation not in changed:
                causes.setdefault(relation, Counter())[variant.cause] += 1
        return {relation: counts.most_common(1)[0][0] for relation, counts in causes.items()}


async def ask_texts(panel: Panel, texts: Sequence[str]) -> AskedTexts:
    """Ask about texts, about equal ones once; what cannot work is refused before the first question."""
    check_relations(panel)
    variants: dict[tuple[str, str], Variant] = {}
    tell = panel.settings.on_variant

    def note(item: Item, variant: Variant) -> None:
        variants[item.text, variant.relation] = variant
        if tell is not None:
            tell(item, variant)

    distinct = list(dict.fromkeys(texts))
    tally = Tally(rows_expected=len(distinct))
    asking = replace(panel, settings=replace(panel.settings, on_variant=note, tally=tally))
    votes = await asking.ask(distinct)
    place = {text: row for row, text in enumerate(distinct)}
    rows = np.array([place[text] for text in texts], dtype=np.intp)
    return AskedTexts(votes=votes.resampled(rows), variants=variants, tally=tally)


wait_for = run_sync
"""Runs a coroutine to its end, for code that cannot await; also where a loop is running, as in a notebook."""


def optimiser_named(name: str) -> str:
    """Return the registry's spelling of an optimiser's name, given in any capitals.

    >>> optimiser_named("LR"), optimiser_named("Naive-Bayes")
    ('lr', 'naive-bayes')
    """
    wanted = str(name).strip()
    known = {known.casefold(): known for known in reversed(optimisers.names())}
    found = wanted.casefold() if wanted.casefold() in optimisers.names() else known.get(wanted.casefold(), wanted)
    optimisers.check(found)
    return found


def learned_weights(votes: Votes, gold: Sequence[str | None], optimiser: str, seed: int) -> Weights:
    """Return what every annotator and relation is worth."""
    return fit_weights(votes, gold, optimiser, seed=seed)


def equal_weights(annotators: Sequence[str], relations: Sequence[str]) -> Weights:
    """Return weights that were not learned from anything."""
    return Weights(
        annotators=annotators,
        relations=relations,
        annotator_weights=np.full(len(annotators), 1 / len(annotators)),
        relation_weights=np.full(len(relations), 1 / len(relations)),
    )


def scores_by_label(votes: Votes, weights: Weights) -> list[dict[str, float]]:
    """Return for every item label → score, in the order of the labels."""
    return [dict(zip(votes.labels, row, strict=True)) for row in score(votes, weights).tolist()]


def write_annotations(path: Path, table: pa.Table) -> None:
    """Write a table of annotations; one that says something else is kept beside it."""
    before = path.read_bytes() if path.is_file() else None
    write_table(path, table)
    if before is not None and path.read_bytes() != before:
        path.with_name(f"{path.stem}.before{path.suffix}").write_bytes(before)


def save_values(path: Path, values: Mapping[str, Any]) -> None:
    """Write what was learned as JSON, marked with version and schema."""
    write_json(path, {"version": __version__, **values})


def saved_values(path: Path) -> dict[str, Any]:
    """Return what `save_values` wrote."""
    return read_json(path)
