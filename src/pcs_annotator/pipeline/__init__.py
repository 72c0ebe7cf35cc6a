"""One file per verb; the only place where relations, asking, judging and files meet."""
