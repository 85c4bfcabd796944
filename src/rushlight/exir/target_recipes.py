"""Recipes by device, and what scripts ask about the machine before they choose one."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from rushlight.recipes import ExportRecipe


def is_fbcode() -> bool:
    """Whether this is the build of ExecuTorch inside of Meta: it never is."""
    return False


def is_supported_platform_for_coreml_lowering() -> bool:
    """Whether coremltools is installed, which compiles for Core ML on Linux and macOS."""
    return find_spec("coremltools") is not None


def is_supported_platform_for_qnn_lowering() -> bool:
    """Whether programs can be compiled for Qualcomm's processors: no, there is no such backend."""
    return False


def get_ios_recipe(target_config: str = "ios-arm64-coreml-fp16", **kwargs: Any) -> ExportRecipe:
    """Core ML in float16 or float32, and XNNPACK for what Core ML does not take.

    Args:
        target_config: "ios-arm64-coreml-fp16" or "ios-arm64-coreml-fp32".
        kwargs: options of `CoreMLRecipeProvider`.

    Raises:
        ValueError: for another configuration, or if coremltools is not installed.
    """
    if not is_supported_platform_for_coreml_lowering():
        raise ValueError(
            "Core ML needs coremltools, which is not installed: pip install 'rushlight[coreml]'"
        )
    from rushlight.backends.coreml.recipes import CoreMLRecipeType
    from rushlight.backends.xnnpack.recipes import XNNPackRecipeType

    configs = {
        "ios-arm64-coreml-fp16": CoreMLRecipeType.FP16,
        "ios-arm64-coreml-fp32": CoreMLRecipeType.FP32,
    }
    if target_config not in configs:
        raise ValueError(
            f"target_config={target_config!r}: allowed are {', '.join(configs)}; quantise by a "
            f"QuantizationRecipe of your own"
        )
    both = [
        ExportRecipe.get_recipe(configs[target_config], **kwargs),
        ExportRecipe.get_recipe(XNNPackRecipeType.FP32),
    ]
    return ExportRecipe.combine(both, recipe_name=target_config)
