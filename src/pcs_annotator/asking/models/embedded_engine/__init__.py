"""A small language model in numpy: file, vocabulary, forward pass, labels and prompts."""

CONTEXT_TOKENS = 2048
