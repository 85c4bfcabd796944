"""Shared by all stages of the compiler: dialect tables, the verifier, specs, graph rewriting."""
