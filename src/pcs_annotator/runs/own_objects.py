"""Models and relations that are given as Python objects instead of names: each gets a name for tables and files."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.elicitations import base_annotator, kind_of
from pcs_annotator.models.functions import fingerprint
from pcs_annotator.relations.base import Relation
from pcs_annotator.relations.function import FunctionRelation, Rewriting, relation_of

RelationLike = str | Relation | Rewriting  # a relation, the name of one, or a function that rewrites
LAMBDA = "<lambda>"
SHORT = 6  # digits of a digest that tell two functions of the same name apart


@dataclass(frozen=True, slots=True)
class OwnObjects:
    """What a run was given as Python objects; its folder knows their names alone."""

    models: Mapping[str, Annotator] = field(default_factory=dict)  # name → annotator
    relations: Mapping[str, Relation] = field(default_factory=dict)  # name → relation
    recorded: frozenset[str] = frozenset()  # names that stood for objects when the run was made

    @classmethod
    def of(cls, models: Iterable[object], relations: Iterable[object]) -> "OwnObjects":
        """Return the models and relations that were given as objects, by name."""
        annotators = name_annotators([one for one in models if not isinstance(one, str)])
        made = [one for one in as_relations(relations) if not isinstance(one, str)]
        own = cls({one.name: one for one in annotators}, {one.name: one for one in made})
        if len(own.relations) < len(made):
            twice = next(one.name for at, one in enumerate(made) if one is not own.relations[one.name])
            raise ConfigError(f"two relations are called {twice!r}: give each function a name of its own")
        return own

    def with_others(self, others: "OwnObjects") -> "OwnObjects":
        """Return the objects of both; others take precedence."""
        return OwnObjects({**self.models, **others.models}, {**self.relations, **others.relations})

    def annotator(self, named: Annotator) -> Annotator:
        """Return the annotator that a name stands for, asked for the answers that are wanted now."""
        found = self.model(named.name)
        return replace(found, answers=named.answers or found.answers) if isinstance(found, Annotator) else named

    def model(self, given: object) -> object:
        """Return the model that a name stands for; anything else as it is.

        A name that stood for an object is never taken for that of a provider's model, which would get the texts.
        """
        if given in self.recorded and given not in self.models:
            raise ConfigError(
                f"{given!r} was a Python function or object when this run was made, and is not here: give it in "
                "Python, as in load_run(folder, models=[…]) or label(data, folder, models=[…])"
            )
        return self.models.get(given, given) if isinstance(given, str) else given


def names_in(given: Iterable[object], own: Iterable[str]) -> list[str]:
    """Return the names of what was given, in order, with those of `own` in place of objects."""
    names = iter(own)
    return [one if isinstance(one, str) else next(names) for one in given]


def name_annotators(given: Sequence[object]) -> list[Annotator]:
    """Return the annotators of models, each with a name of its own.

    Functions and objects of the same name are told apart by a digest of what they answer by.
    """
    annotators = [one if isinstance(one, Annotator) else _annotator(one) for one in given]
    twice = _repeated(annotators)
    named = [_told_apart(one) if one.name in twice or LAMBDA in one.name else one for one in annotators]
    if again := _repeated(named):
        raise ConfigError(f"the model {again[0]!r} is named twice: leave one out, or give Annotator(…, name=…)")
    return named


def _repeated(annotators: Sequence[Annotator]) -> list[str]:
    return [name for name, count in Counter(one.name for one in annotators).items() if count > 1]


def _annotator(model: object) -> Annotator:
    """Return the annotator of a model; `groq:gemma2-9b-it/1s-top-2` is asked for two guesses."""
    if isinstance(model, str) and (kind := kind_of(model)):
        return Annotator(base_annotator(model), elicitation=kind)
    return Annotator(model)


def _told_apart(annotator: Annotator) -> Annotator:
    usual = Annotator(annotator.model, elicitation=annotator.elicitation).name
    if isinstance(annotator.model, str) or annotator.name != usual:
        return annotator  # a name of the user's choice stays
    return replace(annotator, name=_with_digest(base_annotator(usual), annotator.model))


def _with_digest(name: str, thing: object) -> str:
    return f"{'lambda' if name == LAMBDA else name}_{fingerprint(thing)[:SHORT]}"


def as_relations(given: Iterable[object]) -> list[str | Relation]:
    """Return names and relations as they are, and functions `str -> str | None` as relations.

    A function is named like itself, and a lambda after a digest of its code.
    """
    return [_as_relation(one) for one in given]


def _as_relation(given: object) -> str | Relation:
    if isinstance(given, str) or is_relation(given):
        return given
    if not callable(given) or isinstance(given, type):
        raise ConfigError(
            f"{given!r:.60} is not a relation: give a name, a function that takes a text and returns its rewrite or "
            "None, or an object with a method `rewrite`"
        )
    name = getattr(given, "__name__", type(given).__name__)
    return relation_of(given) or FunctionRelation(_with_digest(name, given) if name == LAMBDA else name, given)


def is_relation(thing: object) -> TypeGuard[Relation]:
    """Return whether this is already a relation, not a name, a prompt or a function."""
    return not isinstance(thing, type) and hasattr(thing, "rewrite") and hasattr(thing, "name")
