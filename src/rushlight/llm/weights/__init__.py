"""Weights of language models as they are stored, and the layers that compute with them."""
