"""Bundled programs (`.bpte`): a program with test cases for its methods."""
