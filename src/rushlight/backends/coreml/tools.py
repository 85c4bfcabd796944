"""coremltools, imported without its warnings that a user cannot act on.

Without Apple's frameworks it warns of each of its libraries that does not load. Those libraries
only run models. It also warns of versions of torch and scikit-learn that it was not tested with.
"""

from __future__ import annotations

from rushlight.ir.quiet import OF_TORCHAO, quiet

_LOGGED = {"coremltools": r"Failed to load '?_ML|(?:Torch|scikit-learn) version", **OF_TORCHAO}

with quiet(logged=_LOGGED):
    import coremltools
    from coremltools.converters.mil.frontend.torch import is_torch_fx_node_supported

__all__ = ["coremltools", "is_torch_fx_node_supported"]
