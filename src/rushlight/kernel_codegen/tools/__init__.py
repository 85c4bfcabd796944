"""Programs that say which operators and dtypes are built, each with ExecuTorch's command line."""
