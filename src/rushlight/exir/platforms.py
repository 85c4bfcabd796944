"""What ExecuTorch's scripts ask about the machine before they choose a backend."""

from __future__ import annotations

from importlib.util import find_spec


def is_fbcode() -> bool:
    """Whether this is the build of ExecuTorch inside of Meta: it never is."""
    return False


def is_supported_platform_for_coreml_lowering() -> bool:
    """Whether coremltools is installed, which compiles for Core ML on Linux and macOS."""
    return find_spec("coremltools") is not None


def is_supported_platform_for_qnn_lowering() -> bool:
    """Whether programs can be compiled for Qualcomm's processors: no, there is no such backend."""
    return False
