"""ExecuTorch's description of a tensor: `TensorSpec`, which its passes write and read.

Ours is `rushlight.ir.spec.TensorSpec`, which has fewer attributes, under other names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.exir.dim_orders import contiguous_stride_from_shape, dim_order_from_stride
from rushlight.exir.dim_orders import stride_from_dim_order as strides_of
from rushlight.exir.symbols import eval_expr
from rushlight.ir import spec as ours
from rushlight.schema.program import DeviceType, ExtraTensorInfo, TensorShapeDynamism

ALIGNMENT = 16
"""Bytes to a multiple of which tensors are placed."""


def calculate_aligned_num_bytes(num: int, alignment: int) -> int:
    """The least multiple of `alignment` that is not below `num`."""
    return -(-num // alignment) * alignment


def determine_tensor_dynanism(shape: Sequence[Any]) -> TensorShapeDynamism:
    """Whether sizes are fixed, or only have bounds."""
    if all(isinstance(size, int) for size in shape):
        return TensorShapeDynamism.STATIC
    return TensorShapeDynamism.DYNAMIC_BOUND


class TensorSpec:
    """A tensor of a graph, and where it is planned to be.

    Attributes:
        scalar_type, dtype: the element type.
        shape: the sizes, which may be symbolic until a pass has put their bounds in place.
        stride, dim_order: how the elements lie in memory.
        shape_dynamism: whether the sizes may be smaller than `shape` says.
        const: whether the bytes are a constant of the program; `storage` has them then.
        lifetime: [first, last] index of the nodes that use it; None before planning.
        mem_id, mem_obj_id, mem_offset: where it is planned to be; None for nowhere yet.
        inplace_base: the spec whose memory this one takes over.
        device, device_index: whose memory it is in.
    """

    def __init__(
        self,
        dtype: torch.dtype,
        shape: Iterable[Any],
        layout: torch.layout = torch.strided,
        is_sparse: bool = False,
        const: bool = False,
        requires_grad: bool = False,
        extra_tensor_info: ExtraTensorInfo | None = None,
    ) -> None:
        self.scalar_type = dtype
        self.const = const
        self.alignment = ALIGNMENT
        self.storage: Any = None
        self.shape: list[Any] = list(shape)
        self.stride: Any = contiguous_stride_from_shape(self.shape)
        self.dim_order: tuple[int, ...] = tuple(range(len(self.shape)))
        self.requires_grad = requires_grad
        self.layout = layout
        self.is_sparse = is_sparse
        self.init_mem_planning_fields()
        self.shape_dynamism = determine_tensor_dynanism(self.shape)
        self.extra_tensor_info = extra_tensor_info
        self.device = DeviceType.CPU
        self.device_index = 0

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor, const: bool = False) -> TensorSpec:
        """The spec of a tensor, real or fake.

        Args:
            tensor: what is described.
            const: whether its bytes are a constant of the program; row-major then.
        """
        if const:
            tensor = tensor.contiguous()
            if tensor.nbytes != tensor.untyped_storage().nbytes():
                tensor = tensor.clone()  # a part of a storage is not written as a constant
        spec = cls(tensor.dtype, tensor.shape, tensor.layout, tensor.is_sparse, const)
        spec.stride = tensor.stride()
        spec.dim_order = dim_order_from_stride(spec.stride)
        spec.requires_grad = tensor.requires_grad
        spec.storage = tensor.untyped_storage() if const else None
        return spec

    def init_mem_planning_fields(self) -> None:
        """Forget where the tensor is planned to be."""
        self.lifetime: list[Any] = [None, None]
        self.mem_id: int | None = None
        self.mem_obj_id: int | None = None
        self.mem_offset: int | None = None
        self.inplace_base: TensorSpec | None = None

    @property
    def dtype(self) -> torch.dtype:
        """The element type."""
        return self.scalar_type

    def nbytes(self) -> int:
        """The bytes of the elements; symbolic as long as the sizes are."""
        count: int = math.prod(self.shape)
        return count * self.dtype.itemsize

    @property
    def allocated_memory(self) -> int:
        """The bytes that are planned for it, a multiple of the alignment."""
        return calculate_aligned_num_bytes(self.nbytes(), self.alignment)

    def realign(self, new_alignment: int) -> int:
        """Set the alignment; returns the bytes that are planned then."""
        self.alignment = new_alignment
        return self.allocated_memory

    @property
    def is_dynamic_shape_tensor(self) -> bool:
        """Whether sizes may vary."""
        return self.shape_dynamism != TensorShapeDynamism.STATIC

    @property
    def is_static_shape_tensor(self) -> bool:
        """Whether the sizes are fixed."""
        return self.shape_dynamism == TensorShapeDynamism.STATIC

    @property
    def is_upper_bound_tensor(self) -> bool:
        """Whether sizes may vary below a bound."""
        return self.shape_dynamism == TensorShapeDynamism.DYNAMIC_BOUND

    @property
    def is_dynamic_unbound_tensor(self) -> bool:
        """Whether sizes may vary without a bound."""
        return self.shape_dynamism == TensorShapeDynamism.DYNAMIC_UNBOUND

    def debug(self) -> str:
        """All that planning knows of it, in one line."""
        return (
            f"TensorSpec(id={id(self)}, const={self.const}, scalar_type={self.scalar_type}, "
            f"allocated_memory={self._allocated()}, mem_id={self.mem_id}, "
            f"mem_offset={self.mem_offset}, lifetime={self.lifetime}, "
            f"shape_dynamism={self.shape_dynamism}, shape={self.shape})"
        )

    def _allocated(self) -> int | None:
        known = all(eval_expr(size) is not None for size in self.shape)
        return self.allocated_memory if known else None

    def __repr__(self) -> str:
        return (
            f"TensorSpec(dtype={self.scalar_type}, shape={self.shape}, layout={self.layout}, "
            f"is_sparse={self.is_sparse}, shape_dynamism={self.shape_dynamism}, "
            f"const={self.const}, requires_grad={self.requires_grad}, "
            f"device={self.device.name}:{self.device_index})"
        )


class ViewSpec(TensorSpec):
    """The spec of a view: its sizes are its own, all else is its base's, read and written there.

    Args:
        base: the spec of the tensor that is viewed.
        shape: the sizes of the view, of as many bytes.

    Raises:
        ExportError: the base is sparse, or is not of the same bytes or kind of sizes.
    """

    _OWN = frozenset(("shape", "stride", "dim_order", "shape_dynamism"))
    _base: TensorSpec

    def __init__(self, base: TensorSpec, shape: Sequence[Any]) -> None:
        object.__setattr__(self, "_base", base)
        self.shape = list(shape)
        self.stride = contiguous_stride_from_shape(self.shape)
        self.dim_order = tuple(range(len(self.shape)))
        self.shape_dynamism = determine_tensor_dynanism(self.shape)
        problem = ""
        if base.is_sparse or base.layout != torch.strided:
            problem = f"its base has the layout {base.layout}; a dense tensor can be viewed"
        elif base.shape_dynamism != self.shape_dynamism:
            problem = f"it is {self.shape_dynamism.name}, and its base {base.shape_dynamism.name}"
        elif base.nbytes() != self.nbytes():
            problem = f"it has {self.nbytes()} bytes, and its base {base.nbytes()}"
        if problem:
            raise ExportError(
                f"no view of sizes {self.shape}: {problem}", code=Code.INVALID_ARGUMENT
            )

    def __getattribute__(self, name: str) -> Any:
        # Methods and properties are of this object, so that they count with its sizes.
        if name.startswith("_") or name in ViewSpec._OWN or hasattr(TensorSpec, name):
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_base"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self if name in ViewSpec._OWN else self._base, name, value)


def spec_from_ours(spec: ours.TensorSpec) -> TensorSpec:
    """ExecuTorch's spec of a tensor of a lowered method; for a view see `ViewSpec`."""
    new = TensorSpec(spec.dtype, spec.shape, const=spec.const, requires_grad=spec.requires_grad)
    new.dim_order = spec.dim_order
    new.stride = tuple(strides_of(spec.shape, spec.dim_order))
    if spec.dynamic:
        new.shape_dynamism = TensorShapeDynamism.DYNAMIC_BOUND
    if spec.mem_id:
        new.mem_id, new.mem_offset = spec.mem_id, spec.mem_offset
    return new


def check_spec(tensor: torch.Tensor, spec: TensorSpec) -> None:
    """Check that a tensor is what a spec says.

    Raises:
        ExportError: names the attribute that differs.
    """
    for name in ("is_sparse", "shape", "dtype"):
        actual, wanted = getattr(tensor, name), getattr(spec, name)
        if (list(actual) if name == "shape" else actual) != wanted:
            raise ExportError(
                f"the tensor has {name} {actual}, and its spec {wanted}",
                code=Code.INVALID_ARGUMENT,
            )


ScalarSpec = int | float
LeafValueSpec = TensorSpec | ScalarSpec
ValueSpec = LeafValueSpec | list[Any] | tuple[Any, ...]
"""What describes a value of a graph: lists and tuples have descriptions in them."""
