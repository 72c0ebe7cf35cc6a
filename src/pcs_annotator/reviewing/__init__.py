"""A review of a run by people: rows, queues, verdicts and what is learned from them; everything but the page."""
