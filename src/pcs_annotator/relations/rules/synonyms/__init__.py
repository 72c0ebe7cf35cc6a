"""The rule that replaces words by others of the same meaning, and its lexicon."""
