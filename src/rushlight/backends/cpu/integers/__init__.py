"""Quantised values: their parameters, calls that stand for integer operators, packed weights."""
