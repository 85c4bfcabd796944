"""What every stage of the compiler shares: dialect tables, the verifier, specs, graph rewriting."""
