"""What only older scripts for ExecuTorch use."""
