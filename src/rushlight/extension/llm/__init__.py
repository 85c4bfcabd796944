"""Language models under ExecuTorch's names: the builder of exports, weights, and the runner."""
