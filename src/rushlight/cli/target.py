"""Loads the model that a command names, and reads its `--dynamic` options."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from rushlight.errors import Code, ExportError

_DYNAMIC = re.compile(
    r"(?P<input>\w+):(?P<dim>-?\d+)=(?:(?P<name>[A-Za-z_]\w*):)?(?P<min>\d+)\.\.(?P<max>\d+)"
)


@dataclass
class Target:
    """A model with its example inputs; an ExportedProgram has its own."""

    model: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def dynamic_shapes(self, options: Sequence[str]) -> dict[str, Any] | None:
        """torch.export's `dynamic_shapes` from "INPUT:DIM=[NAME:]MIN..MAX".

        Raises:
            ExportError: an option is written differently, or names an input or a size that the
                model does not have.
        """
        import torch

        if not options:
            return None
        if not isinstance(self.model, torch.nn.Module):
            raise ExportError(
                "--dynamic does not apply to an exported program: its sizes were settled when it "
                "was exported",
                code=Code.INVALID_ARGUMENT,
            )
        inputs = self._inputs()
        shapes: dict[str, Any] = dict.fromkeys(inputs)
        dims: dict[str, Any] = {}
        for option in options:
            name, dim, size = _parse_dynamic(option, inputs, dims)
            shapes[name] = {**(shapes[name] or {}), dim: size}
        return shapes

    def _inputs(self) -> dict[str, Any]:
        """The example inputs by the names of forward's parameters."""
        signature = inspect.signature(self.model.forward)
        try:
            bound = signature.bind(*self.args, **self.kwargs)
        except TypeError as error:
            raise ExportError(
                f"the example inputs do not fit forward{signature}: {error}",
                code=Code.INVALID_ARGUMENT,
            ) from error
        return dict(bound.arguments)


def _parse_dynamic(
    option: str, inputs: Mapping[str, Any], dims: dict[str, Any]
) -> tuple[str, int, Any]:
    """(input, dimension, torch's Dim); dims with a name are made once and kept in `dims`."""
    import torch

    match = _DYNAMIC.fullmatch(option.strip())
    if match is None:
        raise _bad_dynamic(option, 'write INPUT:DIM=MIN..MAX, such as "x:0=1..8"')
    name, dim = match["input"], int(match["dim"])
    low, high = int(match["min"]), int(match["max"])
    tensor = inputs.get(name)
    if not isinstance(tensor, torch.Tensor):
        tensors = [key for key, value in inputs.items() if isinstance(value, torch.Tensor)]
        have = f"tensors are {', '.join(tensors)}" if tensors else "it takes no plain tensor"
        raise _bad_dynamic(option, f"{name!r} is not a tensor that forward takes; {have}")
    if not -tensor.dim() <= dim < tensor.dim():
        raise _bad_dynamic(option, f"{name} has {tensor.dim()} dimensions, counted from 0")
    if low > high:
        raise _bad_dynamic(option, f"{low} is greater than {high}")
    dim %= tensor.dim()
    label = match["name"] or f"{name}_{dim}"
    size = dims.setdefault(label, torch.export.Dim(label, min=low, max=high))
    if (size.min, size.max) != (low, high):
        raise _bad_dynamic(option, f"{label} was given the range {size.min}..{size.max} before")
    return name, dim, size


def _bad_dynamic(option: str, what: str) -> ExportError:
    return ExportError(f"--dynamic {option!r}: {what}", code=Code.INVALID_ARGUMENT)


def default_output(model: str) -> str:
    """The name of the program file if none is given: "model.py:build" makes "model.pte"."""
    if model.endswith(".pt2"):
        return f"{Path(model).stem}.pte"
    place = model.rpartition(":")[0]
    return f"{Path(place).stem if place.endswith('.py') else place.rpartition('.')[2]}.pte"


def read_target(model: str) -> Target:
    """The model that "FILE.py:NAME", "PACKAGE.MODULE:NAME" or "FILE.pt2" names.

    Raises:
        ExportError: it cannot be found or loaded, or cannot be exported.
    """
    import torch

    if model.endswith(".pt2"):
        from rushlight.capture import load_exported

        return Target(load_exported(model))
    value, name = _named(
        model,
        f"{model!r} names no model: write FILE.py:NAME, where NAME is a function that returns "
        f"(model, args), or give a .pt2 file",
    )
    models = (torch.nn.Module, torch.export.ExportedProgram)  # both can be called as well
    if callable(value) and not isinstance(value, models):
        value = _users_code(value, f"{name}()")
    return _target(value, model)


def read_data(data: str) -> Any:
    """The calibration data that "FILE.py:NAME" or "PACKAGE.MODULE:NAME" names.

    Raises:
        ExportError: it cannot be found, or its function raises.
    """
    value, name = _named(
        data,
        f"{data!r} names no calibration data: write FILE.py:NAME, where NAME is a function that "
        f"returns, or an attribute that is, an iterable of inputs",
    )
    return _users_code(value, f"{name}()") if callable(value) else value


def read_object(reference: str) -> Any:
    """The object that "FILE.py:NAME" or "PACKAGE.MODULE:NAME" names.

    Raises:
        ExportError: it cannot be found.
    """
    return _named(reference, f"{reference!r} names nothing: write FILE.py:NAME")[0]


def _named(reference: str, refused: str) -> tuple[Any, str]:
    """The object that "FILE.py:NAME" names, and NAME; `refused` is the error for other texts."""
    place, _, name = reference.rpartition(":")
    if not place or not name:
        raise ExportError(refused, code=Code.INVALID_ARGUMENT)
    module = _import(place)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            public = [n for n in vars(module) if not n.startswith("_")]
            raise ExportError(
                f"{place} has no {name!r}; it has {', '.join(public[:20]) or 'nothing'}",
                code=Code.NOT_FOUND,
            )
        value = getattr(value, part)
    return value, name


def _import(place: str) -> ModuleType:
    """Import a file ("model.py") or a module by its dotted name."""
    if not place.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        imported: ModuleType = _users_code(lambda: importlib.import_module(place), place)
        return imported
    path = Path(place).resolve()
    if not path.is_file():
        raise ExportError(f"no such file: {place}; check the path", code=Code.ACCESS_FAILED)
    sys.path.insert(0, str(path.parent))  # the file may import files beside it
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # it ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    loader = spec.loader
    _users_code(lambda: loader.exec_module(module), place)
    return module


def _users_code(call: Any, what: str) -> Any:
    """Run the user's code; an exception becomes an ExportError that names its line."""
    try:
        return call()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        last = frames[-1] if len(frames) > 1 else None
        where = f" at {last.filename}:{last.lineno}" if last is not None else ""
        if isinstance(error, SyntaxError):
            where = f" at {error.filename}:{error.lineno}"
        raise ExportError(
            f"{what} raised {type(error).__name__}{where}: {error}", code=Code.INVALID_ARGUMENT
        ) from error


def _target(value: Any, name: str) -> Target:
    import torch

    if isinstance(value, torch.export.ExportedProgram) or _is_methods(value):
        return Target(value)
    parts = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(parts) <= 3 or not isinstance(parts[0], torch.nn.Module):
        raise ExportError(
            f"{name} is {type(value).__name__}: it must be an nn.Module, (model, args), "
            f"(model, args, kwargs) or an ExportedProgram",
            code=Code.INVALID_TYPE,
        )
    args = parts[1] if len(parts) > 1 else ()
    kwargs = parts[2] if len(parts) > 2 else {}
    if isinstance(args, torch.Tensor):
        args = (args,)
    if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
        raise ExportError(
            f"{name}: args must be a tuple and kwargs a dict; they are {type(args).__name__} and "
            f"{type(kwargs).__name__}",
            code=Code.INVALID_TYPE,
        )
    return Target(parts[0].eval(), tuple(args), dict(kwargs))  # programs are for inference


def _is_methods(value: Any) -> bool:
    import torch

    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(program, torch.export.ExportedProgram) for program in value.values())
    )
