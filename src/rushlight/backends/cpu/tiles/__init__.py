"""Elementwise calls as tile programs: terms, clusters of calls, instructions."""
