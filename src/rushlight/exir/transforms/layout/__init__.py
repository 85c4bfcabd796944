"""Passes over transposes, permutes and views."""
