"""Captures a module as an `ExportedProgram` of the ATen dialect."""

from __future__ import annotations

import inspect
import io
import os
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils._pytree import tree_map

from rushlight.capture.contract import FORWARD_PARAMETERS
from rushlight.capture.diagnose import Attempt, diagnose, specialised_sizes
from rushlight.capture.mutations import refused_writes
from rushlight.capture.packed import packed_in_results
from rushlight.capture.saved import Saved, load_exported
from rushlight.capture.tracing import tracing
from rushlight.errors import Code, ExportError
from rushlight.ir.dialect import ATEN
from rushlight.ir.findings import refusal
from rushlight.ir.torch_release import warn_if_untested
from rushlight.ir.verify import verify

Model = torch.nn.Module | ExportedProgram | Saved


def capture(
    model: Model,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    name: str = "forward",
) -> ExportedProgram:
    """Capture the whole graph of `model`, or check one that was captured before.

    Args:
        model: a module, or an `ExportedProgram`, which is returned as it is, or the file of one
            (a path or an open binary file).
        args, kwargs: example inputs; a size that `dynamic_shapes` does not name is fixed to theirs.
        dynamic_shapes: as `torch.export.export` takes it.
        name: the method's name, for messages.

    Raises:
        ExportError: if torch cannot capture the model, with torch's reason and the line, or if
            the file was not written by `torch.export.save`.
    """
    warn_if_untested()
    if isinstance(model, str | os.PathLike | io.IOBase):
        model = load_exported(model)
    if not isinstance(model, ExportedProgram):
        if not isinstance(args, tuple):
            raise ExportError(
                f"args must be a tuple of the model's inputs, got {type(args).__name__}: "
                f"write export(model, (x,))",
                code=Code.INVALID_ARGUMENT,
                where=name,
            )
        model = _export(model, args, dict(kwargs or {}), dynamic_shapes, name)
    written = refused_writes(model)
    if written:
        raise refusal(*written, where=name)
    verify(model.graph, ATEN, f"{name}: after capture")
    return model


def _distinct(inputs: Any) -> Any:
    """The inputs, of which no two are the same tensor: torch.export takes those for one input, and
    the program would read the last of them in place of all."""
    seen: set[int] = set()

    def own(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        is_first = id(value) not in seen
        seen.add(id(value))
        return value if is_first else value.detach().clone()

    return tree_map(own, inputs)


def _export(
    model: object,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    name: str,
) -> ExportedProgram:
    if not isinstance(model, torch.nn.Module):
        raise ExportError(
            f"cannot export {type(model).__name__}: pass an nn.Module, an ExportedProgram or its "
            f".pt2 file, or a dict of method names to these two",
            code=Code.INVALID_ARGUMENT,
            where=name,
        )
    program = trace(model, args, kwargs, dynamic_shapes=dynamic_shapes, name=name)
    packed = packed_in_results(program)
    if packed is not None:
        raise refusal(packed, where=name)
    for finding in specialised_sizes(Attempt(model, args, kwargs, dynamic_shapes), program):
        warnings.warn(f"{name}: {finding}", UserWarning, stacklevel=4)
    return program


def trace(
    model: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    name: str = "forward",
) -> ExportedProgram:
    """Capture the graph of a module as torch gives it, without a check of the result.

    Args:
        model, args, kwargs, dynamic_shapes, name: as for `capture`.
        strict: read the model's code with Dynamo (`torch.export.export(strict=True)`) instead of
            running it.

    Raises:
        ExportError: if torch cannot capture the model, with torch's reason and the line.
    """
    args, kwargs = _distinct((args, dict(kwargs or {})))
    inputs = (args, kwargs) if kwargs else (args,)
    try:
        with tracing():
            program = torch.export.export(
                model, *inputs, dynamic_shapes=dynamic_shapes, strict=strict
            )
    except Exception as error:  # torch raises many kinds: all mean that there is no graph
        attempt = Attempt(model, args, kwargs, dynamic_shapes)
        raise refusal(*diagnose(error, attempt), where=name) from error
    parameters = list(inspect.signature(model.forward).parameters)
    program.graph_module.meta.update({FORWARD_PARAMETERS: parameters})
    return program
