"""Patterns of quantised calls."""
