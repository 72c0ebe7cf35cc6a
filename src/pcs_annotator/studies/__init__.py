"""Questions about runs: comparisons, estimates, the paper's experiments."""
