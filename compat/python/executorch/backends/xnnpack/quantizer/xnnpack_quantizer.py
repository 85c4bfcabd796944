"""XNNPACK's quantizer, which torchao has."""

from __future__ import annotations

from torchao.testing.pt2e._xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)

from executorch._absent import absent

__all__ = [
    "XNNPACKQuantizer",
    "get_symmetric_quantization_config",
]

__getattr__ = absent(__name__)
