"""`pcs plan --design`: which questions to ask about new texts within a budget, from recorded votes and gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pcs_annotator.core.votes import Votes, check_known
from pcs_annotator.errors import ConfigError, GoldError
from pcs_annotator.judging.spending.design.panel import Designed, PricedPanel, Prices, design_panel
from pcs_annotator.pipeline.evaluate import RecordedVotes, is_free
from pcs_annotator.pipeline.learn import one_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignRequest:
    """What to design from.

    Attributes:
        source: A table of votes with gold, or a run folder.
        budget: The maximum cost of one text, in calls or in the unit of the prices.
        prices: Annotator → price of a question; by default one call.
        free: More relations whose rewrites cost nothing; those of a run folder are known, and those of a table if no
            model can have made them, such as `order` or `case`.
        seed: Random seed of the folds.
    """

    source: Path
    budget: float
    prices: Mapping[str, float]
    free: Sequence[str] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelDesign:
    """A design, with the votes that name its cells."""

    designed: Designed
    votes: Votes
    gold_rows: int

    def cells(self, panel: PricedPanel) -> dict[tuple[str, str], int]:
        """Return annotator and relation → number of draws, in the order in which questions were chosen."""
        found: dict[tuple[str, str], int] = {}
        for cell in panel.cells:
            name = (self.votes.annotators[cell.annotator], self.votes.relations[cell.relation])
            found[name] = found.get(name, 0) + 1
        return found


def design(request: DesignRequest) -> PanelDesign:
    """Return which of the recorded questions to ask about new texts; no model is called."""
    answers, gold, rewritten, _ = RecordedVotes.read(request.source)
    votes = answers.plain()
    if (gold < 0).all():
        raise GoldError(f"{request.source.name} has no gold labels, and a design needs them: label some rows")
    free = [name for name in votes.relations if name not in rewritten]
    if not request.source.is_dir():
        free = [name for name in free if is_free(name)]
    check_known(request.prices, votes.annotators, "annotator with a price")
    check_known(request.free, votes.relations, "relation")
    if request.budget <= 0:
        raise ConfigError(f"a budget of {request.budget:g} buys nothing: give the maximum cost of one text, such as 4")
    prices = Prices(by_annotator=request.prices, by_relation=dict.fromkeys((*free, *request.free), 0.0))
    with one_thread():
        designed = design_panel(votes, gold, request.budget, prices, seed=request.seed)
    return PanelDesign(designed=designed, votes=votes, gold_rows=int((gold >= 0).sum()))
