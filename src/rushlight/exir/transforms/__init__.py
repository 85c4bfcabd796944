"""Passes that those who write backends put before their partitioner, one in each file.

Each changes the graph that it is given, as passes of torch.fx do, and returns it with the example
values up to date. The graphs are those of `rushlight.exir.manager`, with ExecuTorch's operators, or
of `rushlight.pipeline`: the operators of both are equal.
"""
