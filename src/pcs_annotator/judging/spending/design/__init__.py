"""Panel design: which cells to ask about new texts within a budget, and the quality that each budget buys."""
