"""Models in this process: the embedded one in numpy, those of transformers in torch, GGUF files in llama.cpp."""
