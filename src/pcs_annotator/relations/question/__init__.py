"""Relations that change the question instead of the text."""
