"""The recipes by name, each with its quantizer or configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torchao.core.config import AOBaseConfig
from torchao.quantization import IntxWeightOnlyConfig
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.pt2e.quantizer import Quantizer
from torchao.quantization.quantize_.workflows import IntxChooseQParamsAlgorithm

from rushlight.errors import Code, ExportError
from rushlight.quantization.config import dynamic_config, static_config
from rushlight.quantization.quantizer import CpuQuantizer

GROUP_SIZE = 32


@dataclass(frozen=True)
class Recipe:
    """A way to quantise a whole model, by one of three means.

    Attributes:
        name: its name for `recipe=` and `--quantize`.
        meaning: one line for `rushlight recipes`.
        needs_data: whether calibration data must be given; for a user's quantizer it depends on
            the observers.
        quantizer: makes the quantizer that annotates the captured graph.
        qat_quantizer: the same for training; None for a recipe that cannot be trained.
        weights: makes the configuration of torchao's `quantize_`, for the modules' weights.
        dtype: the dtype that the whole model is converted to.
    """

    name: str
    meaning: str
    needs_data: bool = False
    quantizer: Callable[[], Quantizer] | None = None
    qat_quantizer: Callable[[], Quantizer] | None = None
    weights: Callable[[], AOBaseConfig] | None = None
    dtype: torch.dtype | None = None


def _static(name: str, meaning: str, *, is_per_channel: bool = True, bits: int = 8) -> Recipe:
    def quantizer(is_qat: bool) -> CpuQuantizer:
        return CpuQuantizer(
            static_config(is_per_channel=is_per_channel, activation_bits=bits, is_qat=is_qat)
        )

    return Recipe(
        name,
        meaning,
        needs_data=True,
        quantizer=lambda: quantizer(False),
        qat_quantizer=lambda: quantizer(True),
    )


def eight_bit_weights() -> AOBaseConfig:
    """torchao's configuration of int8 weights with a scale for each output channel."""
    return IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerAxis(0))


def _four_bit_weights() -> AOBaseConfig:
    return IntxWeightOnlyConfig(
        weight_dtype=torch.int4,  # type: ignore[attr-defined]  # made at run time
        granularity=PerGroup(GROUP_SIZE),
        intx_choose_qparams_algorithm=IntxChooseQParamsAlgorithm.HQQ_SCALE_ONLY,
    )


_ALL = (
    _static("int8", "Static: activations and weights in int8, a scale for each output channel."),
    _static("int8-per-tensor", "Static, with one scale for each weight.", is_per_channel=False),
    Recipe(
        "int8-dynamic",
        "Linear and recurrent layers: int8 weights, activations to int8 at run time, row by row.",
        quantizer=lambda: CpuQuantizer(dynamic_config()),
    ),
    Recipe(
        "int4-dynamic",
        "Linear layers: 4-bit weights in groups of 32, activations to int8 at run time.",
        quantizer=lambda: CpuQuantizer(dynamic_config(weight_bits=4, group_size=GROUP_SIZE)),
    ),
    Recipe(
        "int8-weights",
        "Linear layers: int8 weights, computed with real numbers.",
        weights=eight_bit_weights,
    ),
    Recipe(
        "int4-weights",
        "Linear layers: 4-bit weights in groups of 32, computed with real numbers.",
        weights=_four_bit_weights,
    ),
    _static("int16x8", "Static: activations in int16, weights in int8.", bits=16),
    Recipe(
        "float16",
        "Everything in float16, inputs and results as well.",
        dtype=torch.float16,
    ),
    Recipe(
        "bfloat16",
        "Everything in bfloat16, inputs and results as well.",
        dtype=torch.bfloat16,
    ),
)
RECIPES = {recipe.name: recipe for recipe in _ALL}


def recipe_of(chosen: str | Recipe | Quantizer | AOBaseConfig) -> Recipe:
    """The recipe with a name, or one made from a user's quantizer or configuration.

    Raises:
        ExportError: no recipe has that name.
    """
    if isinstance(chosen, Recipe):
        return chosen
    if isinstance(chosen, Quantizer):
        return Recipe(type(chosen).__name__, "", quantizer=lambda: chosen)
    if isinstance(chosen, AOBaseConfig):
        return Recipe(type(chosen).__name__, "", weights=lambda: chosen)
    if chosen not in RECIPES:
        raise ExportError(
            f"there is no recipe {chosen!r}; there are {', '.join(RECIPES)} (`rushlight recipes` "
            f"says what they mean), or pass a Quantizer or a configuration of torchao's quantize_",
            code=Code.NOT_FOUND,
        )
    return RECIPES[chosen]


def qat_quantizer_of(chosen: str | Quantizer) -> Quantizer:
    """The quantizer of a recipe for training.

    Raises:
        ExportError: no recipe has that name, or the recipe cannot be trained.
    """
    if isinstance(chosen, Quantizer):
        return chosen
    make = recipe_of(chosen).qat_quantizer
    if make is None:
        trained = ", ".join(name for name, recipe in RECIPES.items() if recipe.qat_quantizer)
        raise ExportError(
            f"recipe {chosen!r} cannot be trained: choose one of {trained}",
            code=Code.NOT_SUPPORTED,
        )
    return make()
