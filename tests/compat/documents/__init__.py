"""Scenarios of documents without code, written for ExecuTorch's names."""
