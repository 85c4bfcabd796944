"""The recipes of XNNPACK; importing this module registers them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig

from rushlight.backends.xnnpack.partitioner import XnnpackPartitioner
from rushlight.edge import EdgeCompileConfig, ExecutorchBackendConfig
from rushlight.quantization import CpuQuantizer, dynamic_config, static_config
from rushlight.recipes import (
    AOQuantizationConfig,
    BackendRecipeProvider,
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
    RecipeType,
    recipe_registry,
)

_GROUP_SIZE = 32


class XNNPackRecipeType(RecipeType):
    """The recipes of XNNPACK."""

    FP32 = "xnnpack_fp32"
    PT2E_INT8_DYNAMIC_PER_CHANNEL = "xnnpack_pt2e_int8_dynamic_per_channel"
    PT2E_INT8_STATIC_PER_CHANNEL = "xnnpack_pt2e_int8_static_per_channel"
    PT2E_INT8_STATIC_PER_TENSOR = "xnnpack_pt2e_int8_static_per_tensor"
    TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_CHANNEL = "xnnpack_torchao_int8da_int4w_per_channel"
    # In groups; the name is ExecuTorch's.
    TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR = "xnnpack_torchao_int8da_int4w_per_tensor"

    @classmethod
    def get_backend_name(cls) -> str:
        """The name of the backend."""
        return "xnnpack"


_GROUPED = XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR


def _quantizing(quantizer: CpuQuantizer) -> QuantizationRecipe:
    return QuantizationRecipe(quantizers=[quantizer])


def _four_bits(group_size: int | None) -> QuantizationRecipe:
    """Linear layers with activations in int8, by scales found at run time, and 4-bit weights.

    Args:
        group_size: the number of weights with one scale; None for one for each output channel.
    """
    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4,  # type: ignore[attr-defined]  # made at run time
        weight_granularity=PerAxis(0) if group_size is None else PerGroup(group_size),
    )
    return QuantizationRecipe(ao_quantization_configs=[AOQuantizationConfig(config)])


# By recipe, what makes its quantization from the size of groups.
_QUANTIZATION: dict[RecipeType, Callable[[int], QuantizationRecipe | None]] = {
    XNNPackRecipeType.FP32: lambda _: None,
    XNNPackRecipeType.PT2E_INT8_DYNAMIC_PER_CHANNEL: lambda _: _quantizing(
        CpuQuantizer(dynamic_config())
    ),
    XNNPackRecipeType.PT2E_INT8_STATIC_PER_CHANNEL: lambda _: _quantizing(
        CpuQuantizer(static_config())
    ),
    XNNPackRecipeType.PT2E_INT8_STATIC_PER_TENSOR: lambda _: _quantizing(
        CpuQuantizer(static_config(is_per_channel=False))
    ),
    XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_CHANNEL: lambda _: _four_bits(None),
    _GROUPED: lambda size: _four_bits(size),
}


class XNNPACKRecipeProvider(BackendRecipeProvider):
    """Makes the recipes of `XNNPackRecipeType`."""

    @property
    def backend_name(self) -> str:
        """The name of the backend."""
        return "xnnpack"

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """All members of `XNNPackRecipeType`."""
        return list(XNNPackRecipeType)

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """Make a recipe.

        Args:
            recipe_type: which one.
            kwargs: `group_size`, for 4-bit weights in groups; a warning names all others, which
                are ignored, since combined recipes give each backend the same.

        Raises:
            ValueError: `group_size` is not a positive integer.
        """
        make = _QUANTIZATION.get(recipe_type)
        if make is None:
            return None
        allowed = {"group_size"} if recipe_type is _GROUPED else set()
        ignored = sorted(kwargs.keys() - allowed)
        if ignored:
            warnings.warn(
                f"the recipe {recipe_type.value} of XNNPACK ignores {', '.join(ignored)}: it takes "
                f"{', '.join(allowed) or 'no parameters'}",
                UserWarning,
                stacklevel=2,
            )
        size = _GROUP_SIZE
        if recipe_type is _GROUPED:
            size = _checked_size(kwargs.get("group_size", _GROUP_SIZE))
        return ExportRecipe(
            name=recipe_type.value,
            quantization_recipe=make(size),
            lowering_recipe=LoweringRecipe(
                partitioners=[XnnpackPartitioner()], edge_compile_config=EdgeCompileConfig()
            ),
            executorch_backend_config=ExecutorchBackendConfig(),
        )


def _checked_size(size: object) -> int:
    if not isinstance(size, int) or isinstance(size, bool):
        raise ValueError(
            f"Parameter 'group_size' must be an integer, got {type(size).__name__}: {size}; give "
            f"a multiple of 32, such as 32"
        )
    if size < 1:
        raise ValueError(
            f"Parameter 'group_size' must be positive, got {size}; give a multiple of 32, such "
            f"as 32"
        )
    return size


recipe_registry.register_backend_recipe_provider(XNNPACKRecipeProvider())
