"""`rushlight.quantize`: a model becomes a captured program with quantised values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torchao.core.config import AOBaseConfig
from torchao.quantization.pt2e import quantize_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer

from rushlight.capture import Model, capture
from rushlight.capture.tracing import one_at_a_time
from rushlight.errors import Code, ExportError, answers_keywords
from rushlight.quantization.calibrate import (
    Item,
    calibration,
    items_of,
    needs_ranges,
    observe_constants,
    run_through,
)
from rushlight.quantization.joins import requantise_joined, share_near_scales
from rushlight.quantization.layers import unchanged
from rushlight.quantization.modules import change_modules, converted_inputs
from rushlight.quantization.recipes import Recipe, recipe_of
from rushlight.quantization.scales import check_biases, mend_scales, quantise_biases
from rushlight.quantization.shapes import shapes_of
from rushlight.quantization.transform import part_norms

_WITHIN = "rushlight.quantize_within(model, data, metric, max_drop) searches within a budget"


@answers_keywords(
    data=f"with a recipe it is calibrate=; {_WITHIN}", metric=_WITHIN, max_drop=_WITHIN,
    recipes=_WITHIN,
)  # fmt: skip
def quantize(
    model: Model,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    calibrate: Iterable[Any] | None = None,
    recipe: str | Recipe | Quantizer | AOBaseConfig = "int8",
    dynamic_shapes: Any = None,
    progress: Callable[[str], None] | None = None,
) -> ExportedProgram:
    """Quantise a trained model.

    Args:
        model: as `rushlight.export` takes it; not changed.
        args, kwargs: example inputs; default: the first ones of `calibrate`.
        calibrate: inputs like those that the model will see, each a tuple of arguments, one
            tensor, or a dict of keyword arguments. Recipes for static integers need them.
        recipe: a name that `rushlight recipes` lists, or a torchao `Quantizer`, or a
            configuration of torchao's `quantize_`.
        dynamic_shapes: sizes that may vary, as `torch.export.export` takes them.
        progress: called with each stage's name before it starts.

    Returns:
        The program whose graph quantises and dequantises (docs/quantization.md has its forms),
        which `rushlight.export` takes.

    Raises:
        ExportError: a recipe that does not exist, data that is missing or not the model's, values
            that are not finite, or weights that a recipe cannot quantise, with the layer.
    """
    return quantised_from(model, args, kwargs, calibrate, recipe, dynamic_shapes, progress).program


class Quantised(NamedTuple):
    """A quantised program with its float model.

    Attributes:
        program: the quantised program.
        model: the captured float model; None if only its weights were changed.
    """

    program: ExportedProgram
    model: ExportedProgram | None


def quantised_from(
    model: Model,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    calibrate: Iterable[Any] | None,
    recipe: str | Recipe | Quantizer | AOBaseConfig,
    dynamic_shapes: Any,
    progress: Callable[[str], None] | None,
) -> Quantised:
    """`quantize` that also returns the captured float model; the arguments are the same."""
    say = progress or (lambda stage: None)
    chosen = recipe_of(recipe)
    data = items_of(calibrate) if calibrate is not None else None
    if chosen.needs_data and not data:
        raise _no_data(chosen, data)
    args, kwargs = _examples(model, args, kwargs, data)
    if chosen.quantizer is None:
        say("quantise")
        changed = change_modules(model, chosen)
        if chosen.dtype is not None:
            args, kwargs = converted_inputs(chosen.dtype, args, kwargs)
        say("capture")
        return Quantised(capture(changed, args, kwargs, dynamic_shapes=dynamic_shapes), None)
    say("capture")
    captured = capture(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    shapes = dynamic_shapes if isinstance(model, torch.nn.Module) else shapes_of(captured)
    say("quantise")
    module: Any = captured.module(check_guards=False)
    prepared = prepared_module(module, chosen.quantizer())
    if data:
        run_through(prepared, calibration(captured, data), progress)
    elif needs_ranges(prepared):
        raise _no_data(chosen, data)
    else:
        observe_constants(prepared)
    assert captured.example_inputs is not None
    args, kwargs = captured.example_inputs
    return Quantised(converted(prepared, Examples(args, dict(kwargs), shapes)), captured)


class Examples(NamedTuple):
    """The example inputs and dynamic sizes with which a module is captured again."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic_shapes: Any


def prepared_module(
    module: GraphModule, quantizer: Quantizer, *, is_qat: bool = False
) -> GraphModule:
    """A captured module with the observers, or for training the fake quantizers, of a quantizer.

    Args:
        module: is changed.
        quantizer: annotates it.
        is_qat: whether the module will be trained.
    """
    part_norms(module)
    prepare = quantize_pt2e.prepare_qat_pt2e if is_qat else quantize_pt2e.prepare_pt2e
    return prepare(module, quantizer)  # type: ignore[no-any-return]


def converted(
    prepared: GraphModule, examples: Examples, *, is_qat: bool = False
) -> ExportedProgram:
    """The program of a prepared module that was calibrated or trained."""
    module = converted_module(prepared, is_qat=is_qat)
    # A second capture, since conversion gives a module and no program: constants are attributes
    # again, writes to state are calls, and new calls know no sizes. torch.export is what makes a
    # program of these. Of MobileNetV2, it takes 0.6 of the 1.9 CPU seconds of quantization.
    return capture(module, examples.args, examples.kwargs, dynamic_shapes=examples.dynamic_shapes)


@one_at_a_time  # a function of torchao is replaced meanwhile
def converted_module(prepared: GraphModule, *, is_qat: bool = False) -> GraphModule:
    """The module that quantises and dequantises, of a prepared one.

    Args:
        prepared: is changed.
        is_qat: whether it was trained, instead of calibrated.
    """
    if not is_qat:  # a trained model keeps the scales of its training
        share_near_scales(prepared)
    mend_scales(prepared)
    with ExitStack() as stack:
        stack.enter_context(unchanged(list(prepared.buffers())))  # calls are run to fold constants
        if not is_qat:  # the norms that are left cannot be folded, and the search takes 10 s
            stack.enter_context(
                mock.patch.object(quantize_pt2e, "_fold_conv_bn_qat", lambda model: model)
            )
        module: GraphModule = quantize_pt2e.convert_pt2e(prepared)
    requantise_joined(module)
    if is_qat:
        quantise_biases(module)
    check_biases(module)
    _drop_unused(module)
    return module


def _drop_unused(module: GraphModule) -> None:
    """Delete parameters and buffers that are not used, such as weights that were quantised."""
    used = {str(n.target) for n in module.graph.nodes if n.op == "get_attr"}
    for name, _ in [*module.named_parameters(), *module.named_buffers()]:
        if name not in used:
            owner, _, attribute = name.rpartition(".")
            delattr(module.get_submodule(owner), attribute)


def _examples(
    model: Model,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    data: list[Item] | None,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example inputs: the user's, or the first of the calibration data."""
    if args or kwargs or not data or not isinstance(model, torch.nn.Module):
        return args, dict(kwargs or {})
    return data[0].args, dict(data[0].kwargs)


def _no_data(recipe: Recipe, data: list[Item] | None) -> ExportError:
    missing = "there is none" if data is None else "the iterable is empty"
    return ExportError(
        f"recipe {recipe.name!r} finds the ranges of values by running the model, and {missing}: "
        f"pass calibrate=[(x,), ...] with some dozens of inputs like the real ones, or choose "
        f"recipe='int8-dynamic', which needs no data",
        code=Code.INVALID_ARGUMENT,
    )
