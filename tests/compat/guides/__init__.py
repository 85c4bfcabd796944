"""Runs the code of ExecuTorch's guides, taken from their text: `make guides DOCS=folder`."""
