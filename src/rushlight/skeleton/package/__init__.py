"""A backend of Rushlight: `partitioner` and `preprocess` compile, `runtime` runs.

Nothing is imported here, since the runtime half works where PyTorch is not installed.
"""
