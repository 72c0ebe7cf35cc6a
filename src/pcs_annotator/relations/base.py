"""The interface of a relation, and the relation that changes nothing."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

from pcs_annotator.base.registry import Registry
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.core.task import Phrasing
from pcs_annotator.core.variant import ORIGINAL, Expectation, Variant

AskRewriter = Callable[[Request], Awaitable[Reply]]  # calls the rewriting model; with ledger, rate limit and budget

Need = Literal["rewriter", "examples"]
"""What a relation requires; where one asks with `examples`, relations that do not need them ask without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a relation may use besides the text."""

    ask: AskRewriter | None = None  # calls the model that rewrites; None when there is none
    hint: str = ""  # why the first attempt was rejected; empty at the first attempt


class Relation(Protocol):
    """A named rewrite that must not change the label.

    Attributes:
        name: As it appears in tables.
        version: Changes whenever the rewrite of a text may change.
        needs: What it requires.
        deterministic: Whether the same text always gives the same rewrite.
        expects: What its rewrites may do to a text.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def version(self) -> str: ...  # noqa: D102

    @property
    def needs(self) -> frozenset[Need]: ...  # noqa: D102

    @property
    def deterministic(self) -> bool: ...  # noqa: D102

    @property
    def expects(self) -> Expectation: ...  # noqa: D102

    def calls(self, text: str) -> float:
        """Return the most model calls that this text takes; a shared call counts as a fraction."""
        ...

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the rewrite, or why there is none."""
        ...


@runtime_checkable
class QuestionRelation(Relation, Protocol):
    """A relation that changes the question; alone, it leaves every text as it is, and needs no check."""

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question put in another way; it must not change what is to be decided."""
        ...


def rephrased(relation: Relation, question: Phrasing) -> Phrasing:
    """Return how the question is put under a relation: as it is, unless the relation changes the question."""
    # to compare with a protocol takes 0.1 ms, for every text of a service
    rephrase = getattr(relation, "rephrase", None)
    return question if rephrase is None else rephrase(question)


class MadeOf:
    """Base of relations made of other ones, which decide their version, needs and determinism."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[Relation, ...]:
        """The other relations."""
        raise NotImplementedError

    @property
    def version(self) -> str:
        """Versions of all parts."""
        return "+".join(part.version for part in self.parts)

    @property
    def needs(self) -> frozenset[Need]:
        """What any part needs."""
        return frozenset[Need]().union(*(part.needs for part in self.parts))

    @property
    def deterministic(self) -> bool:
        """Whether all parts are."""
        return all(part.deterministic for part in self.parts)

    def calls(self, text: str) -> float:
        """Return the calls of all parts together."""
        return sum(part.calls(text) for part in self.parts)


_BUILT_IN = ("prompted", "question", "rules")
relations: Registry[Relation] = Registry(
    "relation", "pcs_annotator.relations", [f"{__package__}.{module}" for module in _BUILT_IN]
)


class Free:
    """Base of relations that call no model."""

    __slots__ = ()
    needs: ClassVar[frozenset[Need]] = frozenset()
    deterministic: ClassVar[bool] = True

    def calls(self, text: str) -> float:
        """Return 0: no model is called."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Unchanged(Free):
    """Base of relations that leave the text as it is."""

    name: str  # as it appears in tables
    version: ClassVar[str] = "1"
    expects: ClassVar[Expectation] = Expectation()

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the text itself."""
        return Variant(relation=self.name, status="original", text=text, source=text)


@dataclass(frozen=True, slots=True)
class Original(Unchanged):
    """The text and the question as they are: relation 0."""

    name: str = ORIGINAL


relations.register(ORIGINAL)(Original)
