"""What scripts that write partitioners and backends by hand use, under ExecuTorch's names."""
