"""The recipes: what each name means, and the quantizer that carries it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torchao.quantization.pt2e.quantizer import Quantizer

from rushlight.errors import Code, ExportError
from rushlight.quantization.config import dynamic_config, static_config
from rushlight.quantization.quantizer import CpuQuantizer


@dataclass(frozen=True)
class Recipe:
    """A way to quantise a whole model.

    Attributes:
        name: what `recipe=` and `--quantize` take.
        meaning: one line for `rushlight recipes`.
        quantizer: makes the quantizer.
        qat_quantizer: makes the one for training; None of a recipe that cannot be trained.
        needs_data: whether calibration data must be given.
    """

    name: str
    meaning: str
    quantizer: Callable[[], Quantizer]
    needs_data: bool
    qat_quantizer: Callable[[], Quantizer] | None = None


_ALL = (
    Recipe(
        "int8",
        "Static: activations and weights in int8, a scale for each output channel of a weight.",
        lambda: CpuQuantizer(static_config()),
        needs_data=True,
        qat_quantizer=lambda: CpuQuantizer(static_config(is_qat=True)),
    ),
    Recipe(
        "int8-per-tensor",
        "Static, with one scale for the whole of a weight.",
        lambda: CpuQuantizer(static_config(is_per_channel=False)),
        needs_data=True,
        qat_quantizer=lambda: CpuQuantizer(static_config(is_per_channel=False, is_qat=True)),
    ),
    Recipe(
        "int8-dynamic",
        "Linear layers with int8 weights; activations to int8 at run time, row by row.",
        lambda: CpuQuantizer(dynamic_config()),
        needs_data=False,
    ),
    Recipe(
        "int4-dynamic",
        "Linear layers with 4-bit weights in groups of 32; activations to int8 at run time.",
        lambda: CpuQuantizer(dynamic_config(weight_bits=4)),
        needs_data=False,
    ),
    Recipe(
        "int16x8",
        "Static, with activations in int16 and weights in int8.",
        lambda: CpuQuantizer(static_config(activation_bits=16)),
        needs_data=True,
        qat_quantizer=lambda: CpuQuantizer(static_config(activation_bits=16, is_qat=True)),
    ),
)
RECIPES = {recipe.name: recipe for recipe in _ALL}


def recipe_of(chosen: str | Quantizer) -> Recipe:
    """The recipe of a name, or one that is a user's quantizer.

    Raises:
        ExportError: no recipe has that name.
    """
    if isinstance(chosen, Quantizer):
        return Recipe(type(chosen).__name__, "", lambda: chosen, needs_data=True)
    if chosen not in RECIPES:
        raise ExportError(
            f"there is no recipe {chosen!r}; there are {', '.join(RECIPES)} (`rushlight recipes` "
            f"says what they mean), or pass a torchao Quantizer",
            code=Code.NOT_FOUND,
        )
    return RECIPES[chosen]


def qat_quantizer_of(chosen: str | Quantizer) -> Quantizer:
    """The quantizer of a recipe for training.

    Raises:
        ExportError: no recipe has that name, or it cannot be trained.
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
