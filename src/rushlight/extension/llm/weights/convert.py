"""Changing the form of quantised weights, without changing the numbers that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torchao.quantization import IntxUnpackedToInt8Tensor
from torchao.quantization.quantize_.workflows.int4.int4_tensor import Int4Tensor
from torchao.utils import TorchAOBaseTensor

from rushlight.extension.llm.weights.gguf import ExportableGGUFTensor
from rushlight.extension.llm.weights.int4 import ExportableInt4Tensor
from rushlight.extension.llm.weights.packed import INT4

Tensor = torch.Tensor
Convert = Callable[[str, Tensor], Tensor]
"""Takes a weight's name and the weight, and returns it in another form."""
# Along which dimension the outputs lie, of each packed tensor.
_OUTPUTS: dict[Any, dict[str, int]] = {
    ExportableInt4Tensor: {"qdata": 0, "scale": 1, "zero_point": 1},
    ExportableGGUFTensor: {"raw": 0},
    IntxUnpackedToInt8Tensor: {"qdata": 0, "scale": 0, "zero_point": 0},
}


def maybe_cast(value: Tensor, dtype: torch.dtype | None) -> Tensor:
    """A weight in another dtype, if that keeps its packed form.

    Args:
        value: integers, and quantised weights that cannot be converted, are returned as they are.
        dtype: None: return the weight as it is.
    """
    if dtype is None or value.dtype == dtype or not value.dtype.is_floating_point:
        return value
    if type(value) is Tensor or isinstance(value, tuple(_OUTPUTS)):
        return value.to(dtype)
    return value


def fuse_along_output(tensors: Sequence[Tensor]) -> Tensor:
    """One weight whose outputs are those of several, one after the other.

    Args:
        tensors: [outputs, inputs] each, all of one form.

    Raises:
        ValueError: there is none, or they are quantised in different ways.
        TypeError: they have different forms, or one that cannot be joined.
    """
    if not tensors:
        raise ValueError("there is no tensor to join: give one or more")
    first: Any = tensors[0]
    if len(tensors) == 1:
        return tensors[0]
    is_plain = [not isinstance(t, TorchAOBaseTensor) for t in tensors]
    if all(is_plain):
        return torch.cat(list(tensors))
    if any(is_plain) or len({type(t) for t in tensors}) > 1:
        names = ", ".join(type(t).__name__ for t in tensors)
        raise TypeError(f"the tensors have different forms, {names}: give tensors of one form")
    if type(first) not in _OUTPUTS:
        known = ", ".join(kind.__name__ for kind in _OUTPUTS)
        raise TypeError(f"{type(first).__name__} cannot be joined: give plain tensors, or {known}")
    facts = [getattr(first, name) for name in first.tensor_attribute_names]
    for other in tensors[1:]:
        for name, fact in zip(first.tensor_attribute_names, facts, strict=True):
            if getattr(other, name) != fact:
                raise ValueError(
                    f"one tensor has {name}={fact!r}, another {getattr(other, name)!r}: give "
                    f"tensors that are quantised in the same way"
                )
    dimensions = _OUTPUTS[type(first)]
    joined = [
        torch.cat([getattr(t, name) for t in tensors], dim=dimensions[name])
        for name in first.tensor_data_names
    ]
    made: Tensor = type(first)(*joined, *facts)
    return made


def to_exportable(fqn: str, w: Tensor) -> Tensor:
    """A weight that can be exported: torchao's `Int4Tensor` becomes an `ExportableInt4Tensor`.

    Args:
        fqn: the weight's name, which changes nothing.
        w: the weight; others are returned as they are.
    """
    made: Tensor = ExportableInt4Tensor.from_int4_tensor(w) if isinstance(w, Int4Tensor) else w
    return made


def to_default(fqn: str, w: Tensor) -> Tensor:
    """As `to_exportable`; integers of 4 bits that have a byte each are packed, too.

    Args:
        fqn: the weight's name, which changes nothing.
        w: the weight.

    Raises:
        ValueError: the weight also quantises activations.
    """
    if isinstance(w, IntxUnpackedToInt8Tensor) and w.target_dtype == INT4:
        packed: Tensor = ExportableInt4Tensor.from_intx_unpacked_to_int8_tensor(w)
        return packed
    return to_exportable(fqn, w)


def identity(fqn: str, w: Tensor) -> Tensor:
    """The weight as it is."""
    return w
