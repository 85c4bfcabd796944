"""GGUF files: what llama.cpp stores language models in, read as models to export."""
