"""What every step of the compiler shares: dialect tables, the verifier, specs, graph rewriting."""
