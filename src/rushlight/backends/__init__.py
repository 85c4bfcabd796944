"""Backends, each a package of its own: what they take of a graph, and how they compile it."""
