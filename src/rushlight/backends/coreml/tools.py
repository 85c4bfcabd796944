"""coremltools, imported without its warnings that a user cannot act on.

Without Apple's frameworks it warns of each of its libraries that does not load. Those libraries
only run models. It also warns of versions of torch and scikit-learn that it was not tested with.
"""

from __future__ import annotations

import logging
import os

from rushlight.ir.quiet import OF_TORCHAO, quiet

_LOGGED = {"coremltools": r"Failed to load '?_ML|(?:Torch|scikit-learn) version", **OF_TORCHAO}

with quiet(logged=_LOGGED):
    import coremltools
    from coremltools.converters.mil.frontend.torch import is_torch_fx_node_supported

__all__ = ["coremltools", "get_coreml_log_level", "is_torch_fx_node_supported"]

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_VARIABLE = "ET_COREML_LOG_LEVEL"


def get_coreml_log_level(default_level: int) -> int:
    """The level from which on the conversion to Core ML shows messages.

    The environment variable `ET_COREML_LOG_LEVEL` has its name, "DEBUG" to "CRITICAL".

    Args:
        default_level: the level if the variable is not set.

    Raises:
        ValueError: the variable has another value.
    """
    name = os.environ.get(_VARIABLE, "").upper()
    if name and name not in _LEVELS:
        raise ValueError(f"{_VARIABLE} is {name!r}: allowed are {', '.join(_LEVELS)}")
    return int(getattr(logging, name)) if name else default_level
