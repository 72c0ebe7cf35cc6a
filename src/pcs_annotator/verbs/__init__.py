"""One file per command: the steps in order."""
