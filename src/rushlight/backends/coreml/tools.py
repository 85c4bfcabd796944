"""coremltools, imported without its warnings that a user cannot act on.

Where Apple's frameworks are missing it names each of its libraries that does not load; those only
run models, and here models are only made. It also warns of every release of PyTorch that is newer
than the one that it was tested with.
"""

from __future__ import annotations

from rushlight.ir.quiet import quiet

_LOGGED = {"coremltools": r"Failed to load '?_ML|Torch version .* has not been tested"}

with quiet(logged=_LOGGED):
    import coremltools
    from coremltools.converters.mil.frontend.torch import is_torch_fx_node_supported

__all__ = ["coremltools", "is_torch_fx_node_supported"]
