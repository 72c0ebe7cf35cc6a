"""The one corridor: where asking, judging and files meet."""
