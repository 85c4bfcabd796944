# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""C++ that registers operators of the user's own in PyTorch, for export."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from torchgen import dest
from torchgen.api.types import DispatcherSignature
from torchgen.context import method_with_native_function
from torchgen.model import BaseTy, BaseType, DispatchKey, NativeFunction, Variant
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import Target, concatMap

from rushlight.kernel_codegen.model import ETKernelIndex

_TENSOR = BaseType(BaseTy.Tensor)


@dataclass(frozen=True)
class ComputeNativeFunctionStub:
    """Writes a function that stands for an operator's kernel in PyTorch, and computes nothing."""

    @method_with_native_function
    def __call__(self, f: NativeFunction) -> str | None:
        """The function's definition; None for an operator that is only a method.

        Args:
            f: the operator.
        """
        if Variant.function not in f.variants:
            return None
        prefix = f"wrapper_CPU_{f.func.name.overload_name}_"
        signature = DispatcherSignature.from_schema(f.func, prefix=prefix, symint=False)
        value = _value(f)
        returned = f"return {value};" if value else ""
        return f"\n{signature.defn()} {{\n    {returned}\n}}\n    "


def _value(f: NativeFunction) -> str:
    """What a function without a computation returns; "" for nothing."""
    results, outs = f.func.returns, f.func.arguments.out
    if not results:
        return ""
    if len(results) > 1:
        if len(outs) == len(results):
            return _tuple("at::Tensor &", [out.name for out in outs])
        if any(result.type != _TENSOR for result in results):
            raise AssertionError(f"several results must all be tensors: {f.func}")
        return _tuple("at::Tensor", ["at::Tensor()" for _ in results])
    if outs:
        return outs[0].name
    of_type = [a.name for a in f.func.arguments.flat_non_out if a.type == results[0].type]
    if of_type:
        return of_type[0]
    if results[0].type != _TENSOR:
        raise NotImplementedError(
            f"Can't handle this return type {f.func}: no argument has it, so that there is nothing "
            "to return; return a tensor, or add an out variant"
        )
    return "at::Tensor()"


def _tuple(type_: str, values: Sequence[str]) -> str:
    types = ", ".join([type_] * len(values))
    items = ", ".join(values)
    return f"::std::tuple<{types}>(\n                {items}\n            )"


def gen_custom_ops_registration(
    *,
    native_functions: Sequence[NativeFunction],
    selector: SelectiveBuilder,
    kernel_index: ETKernelIndex,
    rocm: bool,
) -> tuple[str, str]:
    """The C++ that registers kernels of operators of the user's own in PyTorch.

    Args:
        native_functions: the operators.
        selector: says which of them are wanted.
        kernel_index: their kernels.
        rocm: whether names of CUDA stand for those of ROCm.

    Returns:
        The functions that wrap the kernels, and the blocks that register them.
    """
    index = kernel_index._to_backend_index()

    def written(target: Target, functions: Sequence[NativeFunction]) -> str:
        write = dest.RegisterDispatchKey(
            index,
            target,
            selector,
            rocm=rocm,
            symint=False,
            class_method_name=None,
            skip_dispatcher_op_registration=False,
        )
        return "\n".join(concatMap(write, functions))

    by_namespace: dict[str, list[NativeFunction]] = defaultdict(list)
    for f in native_functions:
        by_namespace[f.namespace].append(f)
    blocks = [
        f"\nTORCH_LIBRARY_IMPL({namespace}, {DispatchKey.CPU}, m) {{\n"
        f"{written(Target.REGISTRATION, functions)}\n}}"
        for namespace, functions in by_namespace.items()
    ]
    return written(Target.ANONYMOUS_DEFINITION, native_functions), "".join(blocks)
