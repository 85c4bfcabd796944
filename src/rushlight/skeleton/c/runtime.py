"""The runtime half, in C: `skeleton_backend.c`, built into a library beside this file."""

from pathlib import Path


def library() -> Path:
    """Where the library is; the entry point of the runtime."""
    return Path(__file__).with_name("skeleton_backend.so")
