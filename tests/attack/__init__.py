"""Mutants of files that damage their structure, loaded and run: `python -m tests.attack`."""
