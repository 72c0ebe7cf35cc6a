"""Tests, as a package of its own: some libraries install a top-level package of the same name."""
