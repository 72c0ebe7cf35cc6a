"""Keys, relations, votes on texts and scores for the paper's class `PCS`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.errors import ConfigError, MissingPackage, TableError, warn_user
from pcs_annotator.base.text import counted
from pcs_annotator.core.ledger_address import without_password
from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.weighing import fitting, scoring
from pcs_annotator.judging.weighing.optimiser import optimisers
from pcs_annotator.models.provider import read_environment
from pcs_annotator.relations.base import Relation
from pcs_annotator.relations.choose import InTurn, choose_relations
from pcs_annotator.relations.parse import INSTALL, Parser
from pcs_annotator.relations.prompted.prompted import PromptedRelation
from pcs_annotator.relations.rule import FunctionRelation, Rewriting
from pcs_annotator.runs.classic.files import ClassicDataset, with_annotations, write_annotations
from pcs_annotator.runs.executors import Panel
from pcs_annotator.runs.own_objects import as_relations, is_relation, name_annotators

OwnRelation = str | Rewriting | Relation
"""A prompt, a function that returns a text or None, or a relation."""

# The first variable of each provider is the paper's argument.
KEY_VARIABLES = {
    "groq": ("GROQ_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "huggingface": ("HUGGINGFACE_API_KEY", "HF_TOKEN", "HUGGINGFACEHUB_API_TOKEN"),
}
NO_KEY = "none"
# A user's prompt may shorten, expand and reorder texts more than the built-in ones.
OWN_PROMPT = Expectation(reorders=True, shortest=0.3, longest=3.0, renumbers=True)


class Secrets(dict[str, str]):
    """Environment variables whose values are never shown.

    >>> Secrets(GROQ_API_KEY="gsk-1")
    <1 variable, values not shown>
    """

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'variable')}, values not shown>"


def environment_with(keys: Mapping[str, str], given: Mapping[str, str] | None = None) -> Secrets:
    """Return keys and base URLs: those of the process and of `.env`, overridden by the given keys.

    A provider that `<PROVIDER>_BASE_URL` redirects, such as to your own server, needs no key.
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
    """Return the names of annotators in votes: for models, their names as written; none, or one twice, is an error."""
    if not annotators:
        raise ConfigError("no models: name at least one model, as in annotators=['groq:llama-3.1-8b-instant']")
    return [one.name for one in name_annotators(annotators)]


def relation_names(panel: Panel) -> list[str]:
    """Return the names of a panel's relations in votes; one that cannot be used is an error."""
    rewriter = panel.settings.rewriter is not None
    try:
        chosen = choose_relations(as_relations(panel.relations), replace(panel.settings.choosing, rewriter=rewriter))
    except ConfigError as error:
        raise error if rewriter else ConfigError(f"{error}; in PCS, the rewriter is the textmutator") from error
    parsed = [relation.name for relation in chosen if "parser" in relation.needs]
    if parsed and not Parser().available:
        raise MissingPackage(
            f"relation {parsed[0]!r} is made by a rule that needs a parser: {INSTALL}, or name a model as textmutator"
        )
    return [relation.name for relation in chosen]


def own_relation(name: str, how: OwnRelation, checked: bool | None = None) -> Relation:
    """Return a relation made from a prompt, with or without `{text}`, or a function, sync or async.

    By default, rewrites of a prompt are checked, and those of a function are not.
    """
    made: Relation
    if isinstance(how, str):
        made = PromptedRelation(name, how, expects=OWN_PROMPT)
    elif is_relation(how):
        return how
    else:
        made = FunctionRelation(name, how, expects=OWN_PROMPT)  # type: ignore[arg-type]  # no relation
    if checked is None:
        checked = isinstance(how, str)
    # A combined relation is not checked, even if it has only one part.
    return made if checked else InTurn(name, (made,))


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTexts:
    """The answers on some texts."""

    votes: Votes  # one item for every text, in that order
    variants: Mapping[tuple[str, str], Variant]  # text and relation → the variant
    tally: Tally  # counts of calls, answers and failures

    @property
    def unchanged(self) -> dict[str, str]:
        """Relation that changed no text → the most common cause."""
        causes: dict[str, Counter[str]] = {}
        changed = {relation for (_, relation), variant in self.variants.items() if variant.text is not None}
        for (_, relation), variant in self.variants.items():
            if relation not in changed:
                causes.setdefault(relation, Counter())[variant.cause] += 1
        return {relation: counts.most_common(1)[0][0] for relation, counts in causes.items()}

    def warn_unanswered(self) -> None:
        """Warn about questions that no model answered."""
        failed = self.tally.failed
        if failed:
            causes = ", ".join(f"{cause}: {count}" for cause, count in failed.most_common())
            warn_user(f"{failed.total()} questions unanswered ({causes}); repeat the call to ask only those again")

    def warn_silent(self) -> None:
        """Warn about texts without a usable answer."""
        silent = int(self.votes.silent.sum())
        if silent:
            warn_user(f"no model gave a usable label for {silent} of {len(self.votes)} texts: their scores are equal")


async def ask_about(panel: Panel, dataset: ClassicDataset, rows: Sequence[int], path: Path) -> Votes:
    """Ask about rows of the dataset, and write the answers to a file beside it."""
    texts = [dataset.texts[row] for row in rows]
    asked = await ask_texts(panel, texts)
    asked.warn_unanswered()
    for relation, cause in asked.unchanged.items():
        warn_user(f"relation {relation!r} changed none of {len(texts)} texts ({cause}), so it has no votes")
    made = {key: variant.text for key, variant in asked.variants.items()}
    rewrites = {relation: [made.get((text, relation)) for text in texts] for relation in asked.votes.relations}
    try:
        write_annotations(path, with_annotations(dataset, rows, rewrites, asked.votes))
    except (OSError, TableError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        warn_user(f"{path.name} was not written ({reason}); the answers are kept in {without_password(panel.ledger)}")
    return asked.votes


async def ask_texts(panel: Panel, texts: Sequence[str]) -> AskedTexts:
    """Ask about texts, only once about equal ones; a relation that cannot be used is an error before the first call."""
    relation_names(panel)
    variants: dict[tuple[str, str], Variant] = {}
    on_variant = panel.settings.on_variant

    def note(item: Item, variant: Variant) -> None:
        variants[item.text, variant.relation] = variant
        if on_variant is not None:
            on_variant(item, variant)

    tally = Tally(rows_expected=len(set(texts)))
    asking = replace(panel, settings=replace(panel.settings, on_variant=note, tally=tally))
    return AskedTexts(votes=await asking.ask(texts), variants=variants, tally=tally)


def optimiser_named(name: str) -> str:
    """Return the registered name of an optimiser, given in upper or lower case.

    >>> optimiser_named("LR"), optimiser_named("Naive-Bayes")
    ('lr', 'naive-bayes')
    """
    wanted = str(name).strip()
    spellings = {known.casefold(): known for known in optimisers.names()}  # sorted, so lower case wins
    found = spellings.get(wanted.casefold(), wanted)
    optimisers.check(found)
    return found


def learned_weights(votes: Votes, gold: Sequence[str | None], optimiser: str, seed: int) -> Weights:
    """Return the weight of every annotator and relation, learned from gold."""
    return fitting.fit_weights(votes, gold, optimiser, seed=seed)


def equal_weights(annotators: Sequence[str], relations: Sequence[str]) -> Weights:
    """Return equal weights for all annotators and relations."""
    return Weights(
        annotators=annotators,
        relations=relations,
        annotator_weights=np.full(len(annotators), 1 / len(annotators)),
        relation_weights=np.full(len(relations), 1 / len(relations)),
    )


def scores_by_label(votes: Votes, weights: Weights) -> list[dict[str, float]]:
    """Return label → score for every item, in the order of the labels."""
    return [dict(zip(votes.labels, row, strict=True)) for row in scoring.score(votes, weights).tolist()]
