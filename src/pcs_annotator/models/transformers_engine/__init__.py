"""Causal models of the Hugging Face format in this process: files, prompts, graded labels in batches, free text."""

INSTALL = "pip install 'perceived-confidence[transformers]'"
