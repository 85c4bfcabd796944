"""Quantization-aware training: a model that simulates its integers, and can be trained.

prepared = prepare_qat(model, (x,))
train(prepared)             # as any module; freeze_batch_norms for the last epochs
program = convert(prepared)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import GraphModule
from torchao.quantization.pt2e import (
    allow_exported_model_train_eval,
    disable_observer,
    move_exported_model_to_eval,
)
from torchao.quantization.pt2e.quantizer import Quantizer

from rushlight.capture import capture
from rushlight.errors import Code, ExportError
from rushlight.ir.quiet import deep_copy
from rushlight.quantization.recipes import qat_quantizer_of
from rushlight.quantization.workflow import Examples, converted, prepared_module

aten = torch.ops.aten

_EXAMPLES = "rushlight_examples"
_TRAINING_AT = 5  # the index of batch_norm's argument `training`


def prepare_qat(
    model: torch.nn.Module,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    recipe: str | Quantizer = "int8",
    dynamic_shapes: Any = None,
) -> GraphModule:
    """A copy of `model` whose values are fake-quantised, in training mode.

    Batch norms stay, for training, and will be folded into the convolutions before them.

    Args:
        model: best already trained with real numbers; not changed.
        args, kwargs: example inputs, as `rushlight.export` takes them; a batch norm wants two
            samples or more.
        recipe: a static one, "int8", "int8-per-tensor" or "int16x8", or a `Quantizer` whose
            configurations have `is_qat`.
        dynamic_shapes: sizes that may vary: let the batch vary if it does in training.

    Returns:
        A module to train; `.train()` and `.eval()` switch batch norms and dropouts.

    Raises:
        ExportError: a model that cannot be captured, or a recipe that cannot be trained.
    """
    if not isinstance(model, torch.nn.Module):
        raise ExportError(
            f"prepare_qat trains an nn.Module, got {type(model).__name__}: pass the model itself",
            code=Code.INVALID_ARGUMENT,
        )
    quantizer = qat_quantizer_of(recipe)
    captured = capture(deep_copy(model).train(), args, kwargs, dynamic_shapes=dynamic_shapes)
    module: Any = captured.module(check_guards=False)
    prepared = prepared_module(module, quantizer, is_qat=True)
    prepared.meta[_EXAMPLES] = Examples(tuple(args), dict(kwargs or {}), dynamic_shapes)
    return allow_exported_model_train_eval(prepared)  # type: ignore[no-any-return]


def freeze_batch_norms(prepared: GraphModule) -> None:
    """Make batch norms use their present statistics, without updating them.

    Fine-tune some epochs with frozen statistics, because the program will use these.
    """
    for node in prepared.graph.nodes:
        if node.target is aten.batch_norm.default:
            node.update_arg(_TRAINING_AT, False)
    prepared.recompile()


def freeze_scales(prepared: GraphModule) -> None:
    """Keep scales and zero points as they are, so that only the weights are trained."""
    prepared.apply(disable_observer)


def convert(prepared: GraphModule) -> torch.export.ExportedProgram:
    """The program of a trained module of `prepare_qat`, with its batch norms folded.

    Args:
        prepared: the trained module; it is not changed, and can be trained further.

    Raises:
        ExportError: if the module is not from `prepare_qat`, or a scale cannot hold the values of
            its layer.
    """
    examples = getattr(prepared, "meta", {}).get(_EXAMPLES)
    if examples is None:
        raise ExportError(
            f"convert takes what prepare_qat made, got {type(prepared).__name__}; a model is "
            f"quantised without training by rushlight.quantize",
            code=Code.INVALID_ARGUMENT,
        )
    trained = deep_copy(prepared)
    move_exported_model_to_eval(trained)
    return converted(trained, examples, is_qat=True)
