# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""The C++ types that kernels take, and the signatures that are made of them."""

from __future__ import annotations

from torchgen.api.types import boolT, doubleT, longT

from rushlight.kernel_codegen.api.types.signatures import ExecutorchCppSignature
from rushlight.kernel_codegen.api.types.types import (
    ArrayRefCType,
    BaseTypeToCppMapping,
    OptionalCType,
    bfloat16T,
    contextArg,
    contextExpr,
    contextT,
    halfT,
    intArrayRefT,
    memoryFormatT,
    optionalT,
    scalarT,
    scalarTypeT,
    stringT,
    tensorListT,
    tensorT,
)

__all__ = [
    "ArrayRefCType",
    "BaseTypeToCppMapping",
    "ExecutorchCppSignature",
    "OptionalCType",
    "bfloat16T",
    "boolT",
    "contextArg",
    "contextExpr",
    "contextT",
    "doubleT",
    "halfT",
    "intArrayRefT",
    "longT",
    "memoryFormatT",
    "optionalT",
    "scalarT",
    "scalarTypeT",
    "stringT",
    "tensorListT",
    "tensorT",
]
