"""Parts of XNNPACK's quantizer, which torchao has."""

from __future__ import annotations

from torchao.testing.pt2e._xnnpack_quantizer_utils import (
    OP_TO_ANNOTATOR,
    OperatorConfig,
    OperatorPatternType,
    QuantizationConfig,
    propagate_annotation,
)

from executorch._absent import absent

__all__ = [
    "OP_TO_ANNOTATOR",
    "OperatorConfig",
    "OperatorPatternType",
    "QuantizationConfig",
    "propagate_annotation",
]

__getattr__ = absent(__name__)
