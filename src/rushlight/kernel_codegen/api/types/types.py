# ruff: noqa: N816, names of ExecuTorch
# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""The C++ types of the runtime's values."""

from __future__ import annotations

from dataclasses import dataclass

from torchgen.api.types import (
    BaseCppType,
    BaseCType,
    Binding,
    CType,
    Expr,
    MutRefCType,
    NamedCType,
    boolT,
    doubleT,
    longT,
)
from torchgen.model import BaseTy


def _of_runtime(name: str) -> BaseCppType:
    return BaseCppType("torch::executor", name)


halfT = _of_runtime("Half")
bfloat16T = _of_runtime("BFloat16")
scalarTypeT = _of_runtime("ScalarType")
tensorT = _of_runtime("Tensor")
tensorListT = _of_runtime("TensorList")
scalarT = _of_runtime("Scalar")
memoryFormatT = _of_runtime("MemoryFormat")
intArrayRefT = _of_runtime("IntArrayRef")
contextT = _of_runtime("KernelRuntimeContext")
stringT = BaseCppType("std", "string_view")
optionalT = BaseCppType("std", "optional")

BaseTypeToCppMapping: dict[BaseTy, BaseCppType] = {
    BaseTy.int: longT,
    BaseTy.float: doubleT,
    BaseTy.bool: boolT,
    BaseTy.str: stringT,
    BaseTy.ScalarType: scalarTypeT,
    BaseTy.Tensor: tensorT,
    BaseTy.Scalar: scalarT,
    BaseTy.MemoryFormat: memoryFormatT,
}

_CONTEXT = NamedCType("context", MutRefCType(BaseCType(contextT)))
contextExpr = Expr(expr="context", type=_CONTEXT)
# It belongs to no argument of a schema.
contextArg = Binding(name="context", nctype=_CONTEXT, argument=None, default=None)


@dataclass(frozen=True)
class OptionalCType(CType):
    """A value that may be absent.

    Attributes:
        elem: the type of the value.
    """

    elem: CType

    def cpp_type(self, *, strip_ref: bool = False) -> str:
        """The type in C++; a reference inside stays one."""
        return f"std::optional<{self.elem.cpp_type()}>"

    def remove_const_ref(self) -> CType:
        """The same of values that are neither const nor references."""
        return OptionalCType(self.elem.remove_const_ref())


@dataclass(frozen=True)
class ArrayRefCType(CType):
    """A list that the caller owns.

    Attributes:
        elem: the type of its items.
    """

    elem: CType

    def cpp_type(self, *, strip_ref: bool = False) -> str:
        """The type in C++; a reference inside stays one."""
        return f"torch::executor::ArrayRef<{self.elem.cpp_type()}>"

    def remove_const_ref(self) -> CType:
        """The same of items that are neither const nor references."""
        return ArrayRefCType(self.elem.remove_const_ref())
