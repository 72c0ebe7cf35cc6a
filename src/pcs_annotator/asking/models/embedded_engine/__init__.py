"""A small language model in numpy: file, vocabulary, forward pass, labels and prompts."""
