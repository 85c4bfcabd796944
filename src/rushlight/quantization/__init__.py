"""Quantization: a captured graph becomes one that quantises and dequantises, by torchao's pt2e.

torchao's entry points and protocol are re-exported under their own names; `CpuQuantizer` says what
the `cpu` and `xnnpack` backends compute with integers, `RECIPES` are the ways to use it.
"""

from rushlight.ir.quiet import import_torchao

try:
    import_torchao()
except ModuleNotFoundError as error:
    if error.name != "torchao":
        raise
    raise ImportError(
        "rushlight.quantization needs torchao, which is not installed: pip install "
        "'rushlight[quantization]'",
        name="torchao",
    ) from error

from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import (
    ComposableQuantizer,
    DerivedQuantizationSpec,
    FixedQParamsQuantizationSpec,
    QuantizationAnnotation,
    QuantizationConfig,
    QuantizationSpec,
    Quantizer,
    SharedQuantizationSpec,
)

from rushlight.quantization.config import (
    dynamic_config,
    get_symmetric_quantization_config,
    static_config,
)
from rushlight.quantization.qat import convert, freeze_batch_norms, freeze_scales, prepare_qat
from rushlight.quantization.quantizer import CpuQuantizer
from rushlight.quantization.recipes import RECIPES, Recipe
from rushlight.quantization.split_dynamic import DuplicateDynamicQuantChainPass
from rushlight.quantization.workflow import quantize

__all__ = [
    "RECIPES",
    "ComposableQuantizer",
    "CpuQuantizer",
    "DerivedQuantizationSpec",
    "DuplicateDynamicQuantChainPass",
    "FixedQParamsQuantizationSpec",
    "QuantizationAnnotation",
    "QuantizationConfig",
    "QuantizationSpec",
    "Quantizer",
    "Recipe",
    "SharedQuantizationSpec",
    "convert",
    "convert_pt2e",
    "dynamic_config",
    "freeze_batch_norms",
    "freeze_scales",
    "get_symmetric_quantization_config",
    "prepare_pt2e",
    "prepare_qat",
    "prepare_qat_pt2e",
    "quantize",
    "static_config",
]
