"""Operators that PyTorch lacks: their schemas, and what they compute in eager mode."""
