"""Which question to ask next, when to stop, and which panel a budget buys."""
