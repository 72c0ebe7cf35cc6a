"""What is to be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.core.chat import ChatModel
from pcs_annotator.core.strategy import Strategy
from pcs_annotator.core.task import Item, Task
from pcs_annotator.core.variant import Variant
from pcs_annotator.errors import ConfigError
from pcs_annotator.relations.base import Original, Relation

OnVariant = Callable[[Item, Variant], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Who is asked what.

    Attributes:
        task: What to decide.
        annotators: Who decides, with the model of each.
        relations: How texts are shown to them.
        rewriter: The model that rewrites; None when no relation needs one.
        draws: How often the same question is repeated.
        on_variant: Told of every variant, in no particular order: item and variant.
    """

    task: Task
    annotators: Sequence[tuple[Annotator, ChatModel]]
    relations: Sequence[Relation] = (Original(),)
    rewriter: ChatModel | None = None
    draws: int = 1
    on_variant: OnVariant | None = None

    def __post_init__(self) -> None:
        if not self.annotators or not self.relations or self.draws < 1:
            raise ConfigError("nothing to ask: name at least one annotator, one relation and one draw")
        for relation in self.relations:
            if "rewriter" in relation.needs and self.rewriter is None:
                raise ConfigError(f"relation {relation.name!r} needs a model that rewrites: name one as rewriter")

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
        """How many annotators, relations and draws there are."""
        return len(self.annotators), len(self.relations), self.draws

    @property
    def models(self) -> int:
        """How many different models are asked; each has its own places in flight."""
        names = {model.name for _, model in self.annotators}
        return len(names if self.rewriter is None else names | {self.rewriter.name})
