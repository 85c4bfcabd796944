"""Memory planning over graphs, as ExecuTorch's passes and their users' algorithms do it.

Our own planner is `rushlight.plan`. This one is for graphs and algorithms of ExecuTorch's form:
nodes of out-variants with a `TensorSpec` in `meta["spec"]`, and functions that place these.
"""
