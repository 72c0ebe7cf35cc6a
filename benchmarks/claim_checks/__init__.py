"""The checks behind `benchmarks.claims`, a module for each kind of claim."""
