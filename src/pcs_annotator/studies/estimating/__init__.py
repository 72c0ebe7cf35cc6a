"""From labels to conclusions: what is known about the labels of a run, and what follows for shares and regressions."""
