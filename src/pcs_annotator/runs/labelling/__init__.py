"""Labels texts with a fitted run: in memory, as a stream, one by one as they come to a service."""
