"""Models and relations that are given as Python objects instead of names: each gets a name for tables and files."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.elicitations import base_annotator, kind_of
from pcs_annotator.models.objects import fingerprint
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
        annotators = name_annotators([model for model in models if not isinstance(model, str)])
        made = [entry for entry in as_relations(relations) if not isinstance(entry, str)]
        names = Counter(entry.name for entry in made)
        if twice := [name for name, count in names.items() if count > 1]:
            raise ConfigError(f"two relations are called {twice[0]!r}: give each function a name of its own")
        return cls({entry.name: entry for entry in annotators}, {entry.name: entry for entry in made})

    def with_others(self, others: "OwnObjects") -> "OwnObjects":
        """Return the objects of both; others take precedence."""
        return OwnObjects({**self.models, **others.models}, {**self.relations, **others.relations})

    def annotator(self, named: Annotator) -> Annotator:
        """Return the annotator that a name stands for, asked for the answers that are wanted now."""
        model = self.model(named.name)
        return replace(model, answers=named.answers or model.answers) if isinstance(model, Annotator) else named

    def model(self, model: object) -> object:
        """Return the model that a name stands for; anything else as it is.

        A name that stood for an object is never taken for that of a provider's model, which would get the texts.
        """
        if model in self.recorded and model not in self.models:
            raise ConfigError(
                f"{model!r} was a Python function or object when this run was made, and is not here: give it in "
                "Python, as in load_run(folder, models=[…]) or label(data, folder, models=[…])"
            )
        return self.models.get(model, model) if isinstance(model, str) else model


def names_in(objects: Iterable[object], object_names: Iterable[str]) -> list[str]:
    """Return the names of what was given, in order, with those of `object_names` in place of objects."""
    names = iter(object_names)
    return [entry if isinstance(entry, str) else next(names) for entry in objects]


def name_annotators(models: Sequence[object]) -> list[Annotator]:
    """Return the annotators of models; functions and objects of one name get a digest of what they answer by, too."""
    annotators = [model if isinstance(model, Annotator) else _annotator(model) for model in models]
    twice = _repeated(annotators)
    named = [_told_apart(entry) if entry.name in twice or LAMBDA in entry.name else entry for entry in annotators]
    if again := _repeated(named):
        raise ConfigError(f"the model {again[0]!r} is named twice: leave one out, or give Annotator(…, name=…)")
    return named


def _repeated(annotators: Sequence[Annotator]) -> list[str]:
    return [name for name, count in Counter(annotator.name for annotator in annotators).items() if count > 1]


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


def as_relations(relations: Iterable[object]) -> list[str | Relation]:
    """Return names and relations as they are, and functions `str -> str | None` as relations of the same name."""
    return [_as_relation(relation) for relation in relations]


def _as_relation(relation: object) -> str | Relation:
    if isinstance(relation, str) or is_relation(relation):
        return relation
    if not callable(relation) or isinstance(relation, type):
        raise ConfigError(
            f"{relation!r:.60} is not a relation: give a name, a function that takes a text and returns its rewrite or "
            "None, or an object with a method `rewrite`"
        )
    name = getattr(relation, "__name__", type(relation).__name__)
    return relation_of(relation) or FunctionRelation(_with_digest(name, relation) if name == LAMBDA else name, relation)


def is_relation(thing: object) -> TypeGuard[Relation]:
    """Return whether this is already a relation, not a name, a prompt or a function."""
    return not isinstance(thing, type) and hasattr(thing, "rewrite") and hasattr(thing, "name")
