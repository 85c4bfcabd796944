# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""C++ functions for operators: those that an application calls, and the kernels' declarations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from torchgen.api import cpp as aten_cpp
from torchgen.api.types import CppSignature, CppSignatureGroup
from torchgen.context import method_with_native_function, with_native_function_and_index
from torchgen.model import (
    DEFAULT_KERNEL_NAMESPACE,
    BackendIndex,
    NativeFunction,
    NativeFunctionsGroup,
    Variant,
)
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import NamespaceHelper, mapMaybe

from rushlight.kernel_codegen.api.types import ExecutorchCppSignature, contextArg
from rushlight.kernel_codegen.model import ETKernelIndex

Signature: TypeAlias = CppSignature | ExecutorchCppSignature


def signature_of(f: NativeFunction, use_aten_lib: bool) -> Signature:
    """The C++ signature of an operator, with those arguments last that are written.

    Args:
        f: the operator.
        use_aten_lib: whether its tensors are PyTorch's.
    """
    if not use_aten_lib:
        return ExecutorchCppSignature.from_native_function(f)
    group = CppSignatureGroup.from_native_function(
        f, method=False, fallback_binding=f.manual_cpp_binding
    )
    return group.most_faithful_signature()


def _declaration(sig: Signature) -> str:
    """The declaration with the context first, which PyTorch's signatures do not have."""
    if isinstance(sig, ExecutorchCppSignature):
        return sig.decl()
    arguments = ", ".join(a.decl() for a in (contextArg, *sig.arguments()))
    return f"{aten_cpp.returns_type(sig.func.returns).cpp_type()} {sig.name()}({arguments})"


def _inline(f: NativeFunction, sig: Signature, body: str) -> str:
    """An inline function, under its schema."""
    schema = f"{f.namespace}::{f.func}"
    return f"\n// {schema}\nTORCH_API inline {_declaration(sig)} {{\n    {body}\n}}\n"


def static_dispatch(
    sig: Signature, f: NativeFunction, backend_indices: Sequence[BackendIndex]
) -> str:
    """A function that calls the operator's kernel; "" if the kernel is registered by hand.

    Args:
        sig: the function's signature.
        f: the operator.
        backend_indices: tables of kernels; one of them must have the operator's.
    """
    if not backend_indices or f.manual_kernel_registration:
        return ""
    kernels = [index.get_kernel(f) for index in backend_indices if index.has_kernel(f)]
    if len(kernels) != 1 or kernels[0] is None:
        why = f"The number of native function(s) binding to {f.func.name} is {len(kernels)}."
        return _inline(f, sig, f'ET_ASSERT_UNREACHABLE_MSG("{why}");')
    arguments = ", ".join(a.name for a in sig.arguments())
    kernel = kernels[0]
    return _inline(f, sig, f"return ::{kernel.cpp_namespace}::{kernel.kernel}({arguments});")


@dataclass(frozen=True)
class ComputeFunction:
    """Writes the function by which an application calls an operator without a program.

    Attributes:
        static_dispatch_backend_indices: tables of kernels.
        selector: says which operators are wanted.
        use_aten_lib: whether tensors are PyTorch's.
        is_custom_op: whether an operator is the user's own, which PyTorch has no function for.
    """

    static_dispatch_backend_indices: list[BackendIndex]
    selector: SelectiveBuilder
    use_aten_lib: bool
    is_custom_op: Callable[[NativeFunction], bool]

    @method_with_native_function
    def __call__(self, f: NativeFunction) -> str | None:
        """The function's definition; None for an operator that is not wanted.

        Args:
            f: the operator.
        """
        if not self.selector.is_root_operator(f"{f.namespace}::{f.func.name}"):
            return None
        if not f.variants & {Variant.function, Variant.method}:
            raise ValueError(f"variants: of {f.func.name} has neither function nor method")
        sig = signature_of(f, self.use_aten_lib)
        if not self.use_aten_lib or self.is_custom_op(f):
            return static_dispatch(sig, f, self.static_dispatch_backend_indices)
        names = [a.name for a in sig.arguments()]
        if Variant.function in f.variants:
            return _inline(f, sig, f"return at::{sig.name()}({', '.join(names)});")
        return _inline(f, sig, f"return {names[0]}.{sig.name()}({', '.join(names[1:])});")


def gen_functions_declarations(
    *,
    native_functions: Sequence[NativeFunction],
    kernel_index: ETKernelIndex,
    selector: SelectiveBuilder,
    use_aten_lib: bool,
    custom_ops_native_functions: Sequence[NativeFunction] | None = None,
) -> str:
    """The functions of all operators, each in the namespace of its operator.

    Args:
        native_functions: the operators.
        kernel_index: their kernels. An operator without one for all dtypes gets no function.
        selector: says which operators are wanted.
        use_aten_lib: whether tensors are PyTorch's.
        custom_ops_native_functions: the operators among them that are the user's own.
    """
    own = custom_ops_native_functions or ()
    index = kernel_index._to_backend_index()
    write = ComputeFunction([index], selector, use_aten_lib, lambda f: f in own)
    by_namespace: dict[str, list[NativeFunction]] = defaultdict(list)
    for f in native_functions:
        if use_aten_lib or index.has_kernel(f) or not kernel_index.get_kernels(f):
            by_namespace[f.namespace].append(f)
    written = ""
    for namespace, functions in by_namespace.items():
        helper = NamespaceHelper(namespace_str=namespace, entity_name="", max_level=3)
        body = "\n".join(mapMaybe(write, functions))
        written += f"\n{helper.prologue}\n{body}\n{helper.epilogue}\n        "
    return written


@with_native_function_and_index
def compute_native_function_declaration(
    g: NativeFunctionsGroup | NativeFunction, kernel_index: ETKernelIndex
) -> list[str]:
    """The declarations of an operator's kernels, with the context and without it.

    Args:
        g: the operator.
        kernel_index: the kernels.
    """
    assert isinstance(g, NativeFunction)
    sig = ExecutorchCppSignature.from_native_function(g)
    names = [metadata.kernel for metadata in kernel_index.get_kernels(g).values()]
    return [
        f"{sig.decl(name=name, include_context=context)};"
        for context in (False, True)
        for name in dict.fromkeys(names)
    ]


def get_ns_grouped_kernels(
    *,
    native_functions: Sequence[NativeFunction],
    kernel_index: ETKernelIndex,
    native_function_decl_gen: Callable[
        [NativeFunctionsGroup | NativeFunction, ETKernelIndex], list[str]
    ],
) -> dict[str, list[str]]:
    """The declarations of kernels by their C++ namespace.

    Args:
        native_functions: the operators.
        kernel_index: their kernels.
        native_function_decl_gen: writes the declarations of one operator's kernels.

    Raises:
        AssertionError: an operator has kernels in two namespaces.
    """
    grouped: dict[str, list[str]] = defaultdict(list)
    for f in native_functions:
        kernels = kernel_index.get_kernels(f).values()
        spaces = {k.cpp_namespace if k else DEFAULT_KERNEL_NAMESPACE for k in kernels}
        if len(spaces) > 1:
            raise AssertionError(
                f"the kernels of {f.namespace}::{f.func.name} are in the namespaces "
                f"{', '.join(sorted(spaces))}; put them into one"
            )
        for namespace in spaces:
            grouped[namespace] += native_function_decl_gen(f, kernel_index)
    return grouped
