"""Rules that need no parser."""
