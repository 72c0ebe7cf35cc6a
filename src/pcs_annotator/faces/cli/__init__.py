"""The `pcs` command: one verb per file; each parses, calls the pipeline and prints."""
