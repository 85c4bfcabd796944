"""coremltools, imported without its warnings that a user cannot act on.

Where Apple's frameworks are missing it names each of its libraries that does not load; those only
run X"""

from __future__ import annotations

from rushlight.ir.quiet import OF_TORCHAO, quiet

_LOGGED = {"coremltools": r"Failed to load '?_ML|(?:Torch|scikit-learn) version", **OF_TORCHAO}

with quiet(logged=_LOGGED):
    import coremltools
    from coremltools.converters.mil.frontend.torch import is_torch_fx_node_supported

__all__ = ["coremltools", "is_torch_fx_node_supported"]
