"""The rule that replaces words with others of the same meaning, and its lexicon."""
