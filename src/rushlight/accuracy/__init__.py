"""The loss of accuracy by quantization, layer by layer, and quantization within a budget."""

import rushlight.quantization  # noqa: F401  (first: it imports torchao, and quietly)
from rushlight.accuracy.budget import Budgeted, LayerChoice, layers_of, quantize_within
from rushlight.accuracy.compare import compare
from rushlight.accuracy.layers import Layer
from rushlight.accuracy.report import LossReport

__all__ = [
    "Budgeted",
    "Layer",
    "LayerChoice",
    "LossReport",
    "compare",
    "layers_of",
    "quantize_within",
]
