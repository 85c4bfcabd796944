"""Recipes that change a model's modules before capture: weight-only and half precisions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torchao.core.config import AOBaseConfig
from torchao.quantization import FqnToConfig, quantize_
from torchao.quantization.granularity import PerGroup

from rushlight.errors import Code, ExportError
from rushlight.ir.quiet import deep_copy
from rushlight.quantization.recipes import Recipe, eight_bit_weights


def change_modules(model: Any, recipe: Recipe) -> torch.nn.Module:
    """A copy of `model` with its weights quantised or converted by `recipe`.

    Raises:
        ExportError: if there are no modules to change.
    """
    if not isinstance(model, torch.nn.Module):
        raise ExportError(
            f"recipe {recipe.name!r} changes a model's modules, and this is "
            f"{type(model).__name__}: pass the nn.Module itself with its example inputs",
            code=Code.INVALID_ARGUMENT,
        )
    changed = deep_copy(model)
    if recipe.dtype is not None:
        return changed.to(recipe.dtype)
    assert recipe.weights is not None
    _quantise_weights(changed, recipe.weights(), recipe.name)
    return changed


def _quantise_weights(model: torch.nn.Module, config: AOBaseConfig, name: str) -> None:
    layers = {n: m for n, m in model.named_modules() if isinstance(m, torch.nn.Linear)}
    if not layers:
        raise ExportError(
            f"recipe {name!r} quantises the weights of linear layers, and the model has none: "
            f"choose recipe='int8', or leave it as it is",
            code=Code.INVALID_ARGUMENT,
        )
    for layer, module in layers.items():
        if not bool(torch.isfinite(module.weight).all()):
            raise ExportError(
                f"{layer}.weight has NaN or infinite values, which have no scale",
                code=Code.INVALID_ARGUMENT,
            )
    if isinstance(config, FqnToConfig):  # it names the modules by itself
        _run(model, config, None)
        return
    granularity = getattr(config, "granularity", getattr(config, "weight_granularity", None))
    size = granularity.group_size if isinstance(granularity, PerGroup) else 1
    odd = {n for n, m in layers.items() if m.in_features % size}
    for layer in sorted(odd):
        warnings.warn(
            f"{layer} has {layers[layer].in_features} inputs, which groups of {size} do not "
            f"divide: its weight gets 8 bits with a scale for each output channel; pass a "
            f"configuration with another group size",
            UserWarning,
            stacklevel=4,
        )
    _run(model, config, lambda m, n: n in layers and n not in odd)
    if odd:
        _run(model, eight_bit_weights(), lambda m, n: n in odd)


def _run(
    model: torch.nn.Module,
    config: AOBaseConfig,
    chosen: Callable[[torch.nn.Module, str], bool] | None,
) -> None:
    """Let torchao change the modules of `model` that are chosen.

    Raises:
        ExportError: torchao fails: the configuration is for another processor, or is incomplete.
    """
    at = ""  # the weight that torchao changes now

    def is_next(module: torch.nn.Module, name: str) -> bool:
        nonlocal at
        is_chosen = chosen is not None and chosen(module, name)
        at = f" to {name}.weight" if is_chosen and name else at
        return is_chosen

    try:
        quantize_(model, config, None if chosen is None else is_next)
    except Exception as error:  # torchao raises many kinds
        raise ExportError(
            f"torchao cannot apply {type(config).__name__}{at} here: it lacks something, as the "
            f"scales of static activations, or is for another processor; complete it, or choose "
            f"a recipe that `rushlight recipes` lists ('int8' finds scales by calibration). "
            f"torchao says {type(error).__name__}: {error}",
            code=Code.NOT_SUPPORTED,
        ) from error


def converted_inputs(
    dtype: torch.dtype, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example inputs with their floating tensors in `dtype`."""

    def convert(value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(dtype) if is_float else value

    return pytree.tree_map(convert, args), pytree.tree_map(convert, dict(kwargs))
