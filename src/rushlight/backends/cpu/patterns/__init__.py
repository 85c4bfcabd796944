"""Patterns of calls that become one fused operator, one module for each."""
