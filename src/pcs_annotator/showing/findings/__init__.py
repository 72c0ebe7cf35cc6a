"""What to look at: what is or may be wrong with a run, the same on the command line, in JSON and in the report."""
