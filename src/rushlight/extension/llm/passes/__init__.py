"""Passes over captured graphs of language models, one per file."""
