"""`rushlight.quantize`: by a recipe, or as far as a metric allows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from torch.export import ExportedProgram
from torchao.quantization.pt2e.quantizer import Quantizer

from rushlight.accuracy.budget import quantize_within
from rushlight.accuracy.trials import Metric
from rushlight.capture import Model
from rushlight.errors import Code, ExportError
from rushlight.forms import Backend
from rushlight.quantization.workflow import quantize as quantize_by_recipe


def quantize(
    model: Model,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    calibrate: Iterable[Any] | None = None,
    recipe: str | Quantizer | None = None,
    data: Iterable[Any] | None = None,
    metric: Metric | None = None,
    max_drop: float | None = None,
    recipes: Sequence[str] | None = None,
    backend: Backend = "cpu",
    workers: int = 1,
    ray: bool = False,
    resume: str | os.PathLike[str] | None = None,
    dynamic_shapes: Any = None,
    progress: Callable[[str], None] | None = None,
) -> ExportedProgram:
    """Quantise a trained model.

    By a recipe: `quantize(model, calibrate=inputs, recipe="int8")`. Or as far as a metric allows:
    `quantize(model, data=inputs, metric=accuracy, max_drop=0.01)` finds the smallest mix of
    precisions whose metric stays within the budget, and prints what it chose for each layer
    (`rushlight.accuracy.quantize_within` gives it as an object).

    Args:
        model: as `rushlight.export` takes it; not changed.
        args, kwargs: example inputs; default: the first ones of the data.
        calibrate: inputs like those that the model will see, each a tuple of arguments, one
            tensor, or a dict of keyword arguments. Recipes for static integers need them.
        recipe: a name that `rushlight recipes` lists, or a `Quantizer`; default "int8".
        data: with a metric, what `calibrate` is otherwise.
        metric: takes a module that is called like the model; greater is better.
        max_drop: how far the metric may fall below that of the float model.
        recipes: with a metric: the precisions to choose from besides float, the lowest first.
        backend: with a metric: what the times of layers are measured on.
        workers: with a metric: trials at a time, each in a process.
        ray: with a metric: run the trials on a Ray cluster.
        resume: with a metric: a file that finished trials are written to and read from.
        dynamic_shapes: sizes that may vary, as `torch.export.export` takes them.
        progress: called with each stage's name before it starts.

    Returns:
        The program whose graph quantises and dequantises, which `rushlight.export` takes.

    Raises:
        ExportError: a recipe that does not exist, data that is missing or not the model's, values
            that are not finite, or weights that a recipe cannot quantise, with the layer.
    """
    if metric is None and max_drop is None:
        if data is not None:
            raise _wrong("data= goes with metric= and max_drop=; with a recipe it is calibrate=")
        return quantize_by_recipe(
            model, args, kwargs, calibrate=calibrate, recipe=recipe or "int8",
            dynamic_shapes=dynamic_shapes, progress=progress,
        )  # fmt: skip
    if metric is None or max_drop is None or data is None:
        raise _wrong("a budget needs all of data=, metric= and max_drop=")
    if recipe is not None or calibrate is not None:
        raise _wrong("with a budget, recipes= says what to choose from, and data= calibrates")
    found = quantize_within(
        model, data, metric, max_drop, recipes=recipes, backend=backend,
        dynamic_shapes=dynamic_shapes, workers=workers, ray=ray, resume=resume, progress=progress,
    )  # fmt: skip
    Console().print(found)
    return found.program


def _wrong(why: str) -> ExportError:
    return ExportError(why, code=Code.INVALID_ARGUMENT)
