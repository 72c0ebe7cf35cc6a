"""Panel design: which cells to ask about new texts within a budget, and what quality each budget buys."""

from pcs_annotator.judging.spending.design.panel import (
    Choice,
    Designed,
    PricedPanel,
    Prices,
    choose_panel,
    design_panel,
)

__all__ = ["Choice", "Designed", "PricedPanel", "Prices", "choose_panel", "design_panel"]
