"""What a session is given, by method: models, example inputs, sizes that vary, constants."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.nn import Module

from rushlight.capture import load_exported

EXPORTED, GRAPH, EAGER = "ExportedProgram", "GraphModule", "nn.Module"


def models_of(model: Any) -> dict[str, Any]:
    """The models by method; one alone is `forward`, and paths are read.

    Raises:
        TypeError: a model is of another type, or captured programs are mixed with modules.
        ValueError: there are none.
    """
    if isinstance(model, Mapping) and not model:
        raise ValueError("model is an empty mapping: give at least one method with its model")
    models = dict(model) if isinstance(model, Mapping) else {"forward": model}
    for name, one in models.items():
        if isinstance(one, str | os.PathLike):
            models[name] = load_exported(one)
        elif not isinstance(one, ExportedProgram | Module):
            raise TypeError(
                f"Unsupported model type: {name!r} is {type(one)}; give an nn.Module, a "
                f"GraphModule, an ExportedProgram, or the path of one that torch.export.save wrote"
            )
    captured = [name for name, one in models.items() if isinstance(one, ExportedProgram)]
    if captured and len(captured) < len(models):
        other = next(name for name in models if name not in captured)
        raise TypeError(
            f"model mixes captured programs ({captured[0]!r}) with modules ({other!r}), which need "
            f"other stages: capture all with torch.export.export, or none"
        )
    return models


def kind_of(models: Mapping[str, Any]) -> str:
    """What all models are: captured programs, graph modules, or modules."""
    if all(isinstance(one, ExportedProgram) for one in models.values()):
        return EXPORTED
    return GRAPH if all(isinstance(one, GraphModule) for one in models.values()) else EAGER


def examples_of(models: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """The example inputs by method; those that captured programs bring are added.

    Raises:
        ValueError: modules have none.
    """
    kind = kind_of(models)
    if given is None and kind != EXPORTED:
        raise ValueError(
            f"example_inputs are required when model is {kind}: give a list of tuples, each with "
            f"the inputs of one call, as example_inputs=[(x,)]; only an ExportedProgram brings its "
            f"own"
        )
    named = given if isinstance(given, Mapping) else {} if given is None else {"forward": given}
    examples = dict(named)
    for name, one in models.items():
        if isinstance(one, ExportedProgram) and name not in examples and one.example_inputs:
            args, kwargs = one.example_inputs
            if not kwargs:  # the interface has positional inputs alone
                examples[name] = [args]
    return examples


def shapes_of(models: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """The sizes that vary by method, each as `torch.export.export` takes them.

    Args:
        models: by method.
        given: such sizes for the only method, or a mapping of methods to them.

    Raises:
        ValueError: it is for methods that do not exist, or several methods would share it.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping) and given.keys() <= models.keys():
        return dict(given)
    if len(models) == 1:  # a mapping may be torch's own, of the names of inputs to sizes
        return {next(iter(models)): given}
    what = sorted(map(str, given)) if isinstance(given, Mapping) else type(given).__name__
    raise ValueError(
        f"dynamic_shapes is for {what}, and the methods are {sorted(models)}: give a mapping of "
        f"methods to sizes"
    )


def constants_of(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The constant methods' values; functions are called for them."""
    if given is None:
        return None
    return {name: value() if callable(value) else value for name, value in given.items()}


def first_inputs(name: str, examples: Sequence[Any]) -> tuple[Any, ...]:
    """The inputs for the capture of the method `name`: the first of its list.

    Raises:
        ValueError: they are no tuple.
    """
    inputs = examples[0]
    if not isinstance(inputs, tuple):
        raise ValueError(
            f"example_inputs of {name} holds {type(inputs).__name__}: give a list of tuples, each "
            f"with the inputs of one call, as [(x,)]"
        )
    return inputs
