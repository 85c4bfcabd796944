"""Writes the checked-in generated sources; run from the root of the repository."""
