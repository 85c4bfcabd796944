"""Dialects under ExecuTorch's names: variants of operators, and the dtypes that they take."""
