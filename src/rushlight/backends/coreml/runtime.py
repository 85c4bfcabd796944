"""The runtime half, which this runtime has not: says where the delegate runs."""

from __future__ import annotations


def backend() -> None:
    """What the entry point leads to.

    Raises:
        ImportError: always, saying what to do.
    """
    raise ImportError(
        "Core ML runs on Apple's systems only, through ExecuTorch's Core ML delegate, which reads "
        "this file: run it there, or export the model anew without the Core ML partitioner"
    )
