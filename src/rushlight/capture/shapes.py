"""Reads `dynamic_shapes` as the user wrote it: which size of which argument varies, and how."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export import Dim
from torch.export.dynamic_shapes import _DimHint, _DimHintType


@dataclass(frozen=True)
class Wanted:
    """A size that should vary.

    Attributes:
        path: the argument: "x", "batch['ids']".
        dim: the dimension; None for an integer argument.
        size: its value in the example inputs.
        spec: its entry in dynamic_shapes: a `Dim`, or `Dim.AUTO` or `Dim.DYNAMIC`.
    """

    path: str
    dim: int | None
    size: int
    spec: Any

    @property
    def text(self) -> str:
        """Its name in messages: "size 0 of x"."""
        return self.path if self.dim is None else f"size {self.dim} of {self.path}"

    @property
    def guard(self) -> str:
        """Its name in torch's guards and errors: "L['x'].size()[0]"."""
        name, at, rest = self.path.partition("[")
        root = f"L['{name}']{at}{rest}"
        return root if self.dim is None else f"{root}.size()[{self.dim}]"

    @property
    def name(self) -> str:
        """The name of its Dim; "" for a hint such as `Dim.AUTO`."""
        return "" if isinstance(self.spec, _DimHint) else str(getattr(self.spec, "__name__", ""))

    def suggestion(self, dim: str) -> str:
        """The entry of dynamic_shapes that declares this size as `dim`."""
        place = dim if self.dim is None else f"{{{self.dim}: {dim}}}"
        return f'dynamic_shapes={{"{self.path}": {place}}}'


def wanted_sizes(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], shapes: Any
) -> list[Wanted]:
    """Every size that `shapes` lets vary; empty if it does not fit the inputs."""
    try:
        inputs = inspect.signature(model.forward).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return []
    if isinstance(shapes, Mapping):
        pairs = [(name, value, shapes.get(name)) for name, value in inputs.items()]
    elif isinstance(shapes, tuple | list):
        pairs = [(n, v, s) for (n, v), s in zip(inputs.items(), shapes, strict=False)]
    else:
        return []
    return [wanted for name, value, spec in pairs for wanted in _walk(name, value, spec)]


def _walk(path: str, value: Any, spec: Any) -> Iterator[Wanted]:
    if spec is None:
        return
    if isinstance(value, torch.Tensor):
        items = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
        for dim, one in items:
            if _varies(one) and isinstance(dim, int) and -value.dim() <= dim < value.dim():
                yield Wanted(path, dim % value.dim(), value.shape[dim], one)
    elif isinstance(value, Mapping) and isinstance(spec, Mapping):
        for key, one in spec.items():
            yield from _walk(f"{path}[{key!r}]", value.get(key), one)
    elif isinstance(value, tuple | list) and isinstance(spec, tuple | list):
        for i, (item, one) in enumerate(zip(value, spec, strict=False)):
            yield from _walk(f"{path}[{i}]", item, one)
    elif isinstance(value, int) and _varies(spec):
        yield Wanted(path, None, value, spec)


def _varies(spec: Any) -> bool:
    if isinstance(spec, _DimHint):
        return spec.type != _DimHintType.STATIC
    return isinstance(spec, Dim)


def loosened(shapes: Any) -> Any:
    """`shapes` with every Dim replaced by a Dim.AUTO of its range, so that torch accepts what the
    model requires."""

    def loosen(spec: Any) -> Any:
        if not _varies(spec):
            return spec
        low, high = getattr(spec, "min", None), getattr(spec, "max", None)
        bounded = isinstance(high, int) and high < 2**31
        return Dim.AUTO(min=low if isinstance(low, int) else None, max=high if bounded else None)

    return pytree.tree_map(loosen, shapes, is_leaf=lambda s: isinstance(s, Dim | _DimHint))
