# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""The kernels of operators, and the dtypes and dim orders that each of them is for."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from torchgen.model import (
    BackendIndex,
    BackendMetadata,
    DispatchKey,
    NativeFunction,
    NativeFunctionsGroup,
    OperatorName,
)

KERNEL_KEY_VERSION = 1
"""The form of keys of kernels, "v1/…"."""

ETParsedYaml = namedtuple("ETParsedYaml", ["native_functions", "kernel_index"])
"""What was read from a file: the operators, and the index of their kernels."""


class ScalarType(IntEnum):
    """The dtypes that files of kernels and `--ops_dict` name, with their numbers in programs."""

    Byte = 0
    Char = 1
    Short = 2
    Int = 3
    Long = 4
    Half = 5
    Float = 6
    Double = 7
    ComplexHalf = 8
    ComplexFloat = 9
    ComplexDouble = 10
    Bool = 11
    QInt8 = 12
    QUInt8 = 13
    QInt32 = 14
    BFloat16 = 15
    QUInt4X2 = 16
    QUInt2X4 = 17
    UInt16 = 27
    UInt32 = 28
    UInt64 = 29


@dataclass(frozen=True)
class ETKernelKeyOpArgMeta:
    """What a kernel wants one tensor to be.

    Attributes:
        arg_name: the argument.
        dtype: the name of a :class:`ScalarType`.
        dim_order: the order of its dimensions in memory.
    """

    arg_name: str
    dtype: str
    dim_order: tuple[int, ...]

    def to_native_string(self) -> str:
        """The tensor's part of a key: "6;0,1"."""
        return f"{ScalarType[self.dtype].value};{','.join(map(str, self.dim_order))}"


@dataclass(frozen=True)
class ETKernelKey:
    """What a kernel wants all its tensors to be.

    Attributes:
        arg_meta: of each tensor, in order.
        default: whether the kernel serves whatever no other is for.
        version: of the form of keys.
    """

    arg_meta: tuple[ETKernelKeyOpArgMeta, ...] = ()
    default: bool = False
    version: int = KERNEL_KEY_VERSION

    @staticmethod
    def gen_from_yaml(
        args: Mapping[str, Sequence[str]],
        type_alias_map: Mapping[str, Sequence[str]],
        dim_order_alias_map: Mapping[str, Sequence[int | str]],
    ) -> list[ETKernelKey]:
        """The keys that an entry of a file stands for: one for each choice of dtypes.

        Args:
            args: argument to the names of its dtypes and of its dim order.
            type_alias_map: name to dtypes.
            dim_order_alias_map: name to dim order.

        Raises:
            AssertionError: a name is not in its map.
        """
        for argument, (dtypes, order) in args.items():
            for kind, used, known in (
                ("type", dtypes, list(type_alias_map)),
                ("dim_order", order, list(dim_order_alias_map)),
            ):
                if used not in known:
                    raise AssertionError(
                        f"Undefined {kind} alias: {argument} has {used}; {kind}_alias has: "
                        f"{', '.join(known) or 'none'}"
                    )
        names = list(dict.fromkeys(dtypes for dtypes, _ in args.values()))
        orders = {name: tuple(int(d) for d in dims) for name, dims in dim_order_alias_map.items()}
        keys = []
        for choice in itertools.product(*(type_alias_map[name] for name in names)):
            chosen = dict(zip(names, choice, strict=True))
            tensors = [
                ETKernelKeyOpArgMeta(argument, chosen[dtypes], orders[order])
                for argument, (dtypes, order) in args.items()
            ]
            keys.append(ETKernelKey(tuple(tensors)))
        return keys

    def to_native_string(self) -> str:
        """The key as the runtime compares it: "v1/6;0,1|6;0,1", or "default"."""
        if self.default:
            return "default"
        tensors = "|".join(tensor.to_native_string() for tensor in self.arg_meta)
        return f"v{KERNEL_KEY_VERSION}/{tensors}"


Kernels = dict[ETKernelKey, BackendMetadata]
"""The kernels of one operator by their keys."""


@dataclass(frozen=True)
class ETKernelIndex:
    """The kernels of operators.

    Attributes:
        index: operator to key to the C++ function.
    """

    index: dict[OperatorName, Kernels]

    def has_kernels(self, g: NativeFunction | NativeFunctionsGroup) -> bool:
        """Always true: an operator without kernels has an empty table of them.

        Args:
            g: the operator, or a group of its variants.
        """
        return self.get_kernels(g) is not None

    def get_kernels(self, g: NativeFunction | NativeFunctionsGroup) -> Kernels:
        """The kernels of an operator, of the functional one if it is a group.

        Args:
            g: the operator, or a group of its variants.
        """
        f = g.functional if isinstance(g, NativeFunctionsGroup) else g
        return self.index.get(f.func.name, {})

    @staticmethod
    def grow_from_backend_indices(
        kernel_index: dict[OperatorName, Kernels],
        backend_indices: Mapping[DispatchKey, Mapping[OperatorName, BackendMetadata]],
    ) -> None:
        """Adds kernels without dtypes to an index.

        Args:
            kernel_index: the index, which is changed.
            backend_indices: dispatch key to operator to function.
        """
        for functions in backend_indices.values():
            for operator, function in functions.items():
                kernel_index.setdefault(operator, {})[ETKernelKey(default=True)] = function

    @staticmethod
    def from_backend_indices(
        backend_indices: Mapping[DispatchKey, Mapping[OperatorName, BackendMetadata]],
    ) -> ETKernelIndex:
        """The index of kernels without dtypes.

        Args:
            backend_indices: dispatch key to operator to function.
        """
        return ETKernelIndex({}).grow(backend_indices)

    def grow(
        self, backend_indices: Mapping[DispatchKey, Mapping[OperatorName, BackendMetadata]]
    ) -> ETKernelIndex:
        """Adds kernels without dtypes; returns this index.

        Args:
            backend_indices: dispatch key to operator to function.
        """
        ETKernelIndex.grow_from_backend_indices(self.index, backend_indices)
        return self

    def _to_backend_index(self) -> BackendIndex:
        """The kernels without dtypes, in the form in which torchgen writes declarations."""
        default = ETKernelKey(default=True)
        index = {op: kernels[default] for op, kernels in self.index.items() if default in kernels}
        return BackendIndex(
            dispatch_key=DispatchKey.CPU,
            use_out_as_primary=False,
            device_guard=False,
            external=False,
            index=index,
        )

    @staticmethod
    def merge_indices(index_a: ETKernelIndex, index_b: ETKernelIndex) -> ETKernelIndex:
        """Both indices in one; where both have a kernel, the second's.

        Args:
            index_a: the first.
            index_b: the second.
        """
        merged = {operator: dict(kernels) for operator, kernels in index_a.index.items()}
        for operator, kernels in index_b.index.items():
            merged.setdefault(operator, {}).update(kernels)
        return ETKernelIndex(merged)
