"""Quantised values: their facts, the calls that stand for integer operators, packed weights."""
