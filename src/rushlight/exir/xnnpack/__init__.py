"""What partitioners and passes for XNNPACK ask of the nodes of a graph, by ExecuTorch's names."""
