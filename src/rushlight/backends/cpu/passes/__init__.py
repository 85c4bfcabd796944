"""Passes over the engine's graph after it is built."""
