"""The HTTP service: texts in, labels with confidence out."""
