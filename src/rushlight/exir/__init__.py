"""What only ExecuTorch's names need: `compat/python` gives it to scripts."""
