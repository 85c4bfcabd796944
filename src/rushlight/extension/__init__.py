"""What only ExecuTorch's names below `executorch.extension` need."""
