"""The description of a program's tensor: dtype, sizes, layout and place in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch

from rushlight.schema.program import ScalarType

SCALAR_TYPES: dict[torch.dtype, ScalarType] = {
    torch.uint8: ScalarType.BYTE,
    torch.int8: ScalarType.CHAR,
    torch.int16: ScalarType.SHORT,
    torch.int32: ScalarType.INT,
    torch.int64: ScalarType.LONG,
    torch.float16: ScalarType.HALF,
    torch.float32: ScalarType.FLOAT,
    torch.float64: ScalarType.DOUBLE,
    torch.complex64: ScalarType.COMPLEX64,
    torch.bool: ScalarType.BOOL,
    torch.bfloat16: ScalarType.BFLOAT16,
    torch.uint16: ScalarType.UINT16,
    torch.uint32: ScalarType.UINT32,
    torch.float8_e5m2: ScalarType.FLOAT8E5M2,
    torch.float8_e4m3fn: ScalarType.FLOAT8E4M3FN,
}


@dataclass(eq=False, repr=False)
class TensorSpec:
    """One tensor value of a method.

    Attributes:
        dtype: element type.
        shape: the sizes; for a dynamic dimension its bound.
        dim_order: dimensions from outermost to innermost in memory.
        dynamic: True if any size may be smaller than `shape` says.
        const: True if the bytes are a constant of the program.
        alias_of: for a view, the spec that owns its memory; else None.
        mem_id, mem_offset: where the planner placed it; mem_id 0 means not placed (yet).
        requires_grad: True for a tensor that is trained.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamic: bool = False
    const: bool = False
    alias_of: TensorSpec | None = None
    mem_id: int = 0
    mem_offset: int = 0
    name: str = field(default="", compare=False)
    requires_grad: bool = False

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor, const: bool = False) -> TensorSpec:
        """The spec of a tensor, in its layout; a symbolic size counts as its example.

        Args:
            tensor: real or fake.
            const: whether its bytes are a constant of the program.
        """
        return cls(
            tensor.dtype,
            tuple(int(size) for size in tensor.shape),
            dim_order_of(tensor),
            dynamic=any(isinstance(size, torch.SymInt) for size in tensor.shape),
            const=const,
            requires_grad=tensor.requires_grad,
        )

    def __repr__(self) -> str:
        bound = "<=" if self.dynamic else ""
        place = f"@{self.mem_id}+{self.mem_offset}" if self.mem_id else ""
        view = f" view of {self.alias_of.name}" if self.alias_of else ""
        dtype = str(self.dtype).removeprefix("torch.")
        text = f"{dtype}{bound}{list(self.shape)}{place}{view}"
        return f"TensorSpec({text!r})"  # a Python expression, because graphs print it in their code

    @property
    def numel(self) -> int:
        """Elements at the greatest sizes."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes at the greatest sizes."""
        return self.numel * self.dtype.itemsize

    @property
    def scalar_type(self) -> ScalarType:
        """The dtype's number in the file."""
        return SCALAR_TYPES[self.dtype]

    @property
    def storage(self) -> TensorSpec:
        """The spec that owns the memory: this one, or the one that it is a view of."""
        return self if self.alias_of is None else self.alias_of

    @property
    def contiguous(self) -> bool:
        """Whether the memory order is row-major."""
        return self.dim_order == tuple(range(len(self.shape)))


def dim_order_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The dim order of a tensor: channels-last, such as (0, 2, 3, 1), if it is dense in that order
    and not contiguous; else row-major."""
    for memory_format, order in (
        (torch.channels_last, (0, 2, 3, 1)),
        (torch.channels_last_3d, (0, 2, 3, 4, 1)),
    ):
        if tensor.dim() != len(order) or tensor.is_contiguous():
            continue
        if tensor.is_contiguous(memory_format=memory_format):
            return order
    return tuple(range(tensor.dim()))


def raw_bytes(tensor: torch.Tensor) -> np.ndarray:
    """The tensor's bytes, dense in the order of its dim order; a view where possible."""
    tensor = tensor.detach().cpu()
    tensor = tensor.permute(dim_order_of(tensor)).contiguous()
    if not tensor.numel():
        return np.empty(0, np.uint8)
    # A tensor of one element may have any stride, and a view as bytes needs stride 1.
    flat = tensor.as_strided((tensor.numel(),), (1,))
    return flat.view(torch.uint8).numpy()


def common_dim_order(orders: Iterable[tuple[int, ...]], rank: int) -> tuple[int, ...]:
    """The dim order that an operator's result takes from its inputs of the same rank."""
    plain = tuple(range(rank))
    return next((o for o in orders if len(o) == rank and o != plain), plain)
