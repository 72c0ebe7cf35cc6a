"""Models in this process: the embedded one in numpy and those of transformers in torch."""
