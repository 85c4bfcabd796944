"""What all packed weights have in common: calls that use one dequantise it by an operator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional
from torchao.utils import TorchAOBaseTensor

Tensor = torch.Tensor
aten = torch.ops.aten
# Torch's stubs do not have them.
INT4: torch.dtype = torch.int4  # type: ignore[attr-defined]
INT5: torch.dtype = torch.int5  # type: ignore[attr-defined]


class PackedWeight(TorchAOBaseTensor):  # type: ignore[misc]  # torchao has no types
    """A matrix [rows, columns] whose tensors hold it in a packed form.

    In a captured graph it becomes its packed tensors, a call of the operator that dequantises
    them, and the plain call of linear or embedding. Subclasses name their tensors and facts in
    `tensor_data_names` and `tensor_attribute_names`, in the order of their constructor.

    Attributes:
        orig_dtype: the dtype of the numbers that it stands for.
    """

    orig_dtype: torch.dtype

    @abstractmethod
    def dequantize(self, output_dtype: torch.dtype | None = None) -> Tensor:
        """The numbers [rows, columns].

        Args:
            output_dtype: their dtype; None: `orig_dtype`.
        """

    @abstractmethod
    def _converted(self, device: torch.device, dtype: torch.dtype) -> PackedWeight:
        """The same weight on another device, or standing for numbers of another dtype."""

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move to a device, or change the dtype of the numbers; the packed integers stay.

        Raises:
            AssertionError: the dtype is not a floating one.
        """
        wanted = self._get_to_kwargs(*args, **kwargs)
        dtype = wanted["dtype"]
        assert dtype.is_floating_point, (
            f"{type(self).__name__}.to({dtype}): the numbers that packed weights stand for are "
            f"floating: give a floating dtype, or dequantize() first"
        )
        return self._converted(wanted["device"], dtype)

    __torch_function__ = torch._C._disabled_torch_function_impl


def wrap(
    kind: type[PackedWeight],
    shape: Sequence[int],
    device: torch.device,
    dtype: torch.dtype,
    **fields: Any,
) -> Any:
    """A new packed weight without storage of its own.

    Args:
        kind: its class.
        shape: rows and columns of the matrix that it stands for.
        device: of its tensors.
        dtype: of the numbers that it stands for.
        fields: its tensors and facts, by name.
    """
    made = torch.Tensor._make_wrapper_subclass(
        kind, tuple(shape), dtype=dtype, device=device, requires_grad=False
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return made


Rule = Callable[[Any, Any, Sequence[Any], dict[str, Any]], Any]


def _rule(*operators: Any) -> Callable[[Rule], Rule]:
    rule: Callable[[Rule], Rule] = PackedWeight.implements(list(operators))
    return rule


@_rule(aten.linear.default)
def _linear(func: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    input, weight, *bias = args
    return functional.linear(input, weight.dequantize(input.dtype), *bias)


@_rule(aten.embedding.default)
def _embedding(func: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    weight, indices = args[:2]
    return functional.embedding(indices, weight.dequantize())


@_rule(aten.t.default)
def _transposed(func: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    made: Tensor = args[0].dequantize().t()
    return made


@_rule(aten._to_copy.default)
def _copied(func: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    made: Tensor = args[0].dequantize(kwargs.get("dtype"))
    return made
