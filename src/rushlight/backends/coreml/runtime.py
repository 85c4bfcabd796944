"""The runtime of the backend, which does not exist here: an error that says where it runs."""

from __future__ import annotations


def backend() -> None:
    """The function of the entry point.

    Raises:
        ImportError: always; it says what to do.
    """
    raise ImportError(
        "Core ML runs on Apple's systems only, through ExecuTorch's Core ML delegate, which reads "
        "this file: run it there, or export the model anew without the Core ML partitioner"
    )
