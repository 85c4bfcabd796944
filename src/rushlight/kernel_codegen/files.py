# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""Writes the headers, and the sources that register operators of the user's own in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from torchgen import dest
from torchgen.gen import (
    get_native_function_declarations,
    get_native_function_declarations_from_ns_grouped_kernels,
    get_native_function_schema_registrations,
)
from torchgen.model import DispatchKey, NativeFunction
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import FileManager, mapMaybe

from rushlight.kernel_codegen.api.custom_ops import (
    ComputeNativeFunctionStub,
    gen_custom_ops_registration,
)
from rushlight.kernel_codegen.functions import (
    compute_native_function_declaration,
    gen_functions_declarations,
    get_ns_grouped_kernels,
)
from rushlight.kernel_codegen.model import ETKernelIndex

_RUNTIME_HEADERS = [
    "#include <executorch/runtime/core/exec_aten/exec_aten.h>",
    "#include <executorch/runtime/kernel/kernel_runtime_context.h>",
    "#include <executorch/runtime/core/error.h>",
]


def gen_headers(
    *,
    native_functions: Sequence[NativeFunction],
    gen_custom_ops_header: bool,
    custom_ops_native_functions: Sequence[NativeFunction],
    selector: SelectiveBuilder,
    kernel_index: ETKernelIndex,
    cpu_fm: FileManager,
    use_aten_lib: bool,
) -> None:
    """Writes Functions.h, NativeFunctions.h and RegisterKernels.h.

    Args:
        native_functions: the operators.
        gen_custom_ops_header: whether CustomOpsNativeFunctions.h is written, too.
        custom_ops_native_functions: the operators that are the user's own.
        selector: says which operators are wanted.
        kernel_index: the kernels.
        cpu_fm: writes the files.
        use_aten_lib: whether tensors are PyTorch's.
    """

    def aten_declarations(functions: Sequence[NativeFunction]) -> list[str]:
        return get_native_function_declarations(
            grouped_native_functions=functions,
            backend_indices={DispatchKey.CPU: kernel_index._to_backend_index()},
            native_function_decl_gen=dest.compute_native_function_declaration,
        )

    if gen_custom_ops_header:
        headers = ["#include <ATen/ATen.h>", "#include <torch/torch.h>"]
        cpu_fm.write_with_template(
            "CustomOpsNativeFunctions.h",
            "NativeFunctions.h",
            lambda: {
                "nativeFunctions_declarations": aten_declarations(custom_ops_native_functions),
                "headers": headers,
            },
        )
    before = ['#include "NativeFunctions.h"']
    if use_aten_lib:
        own = ['#include "CustomOpsNativeFunctions.h"'] if gen_custom_ops_header else []
        before = ["#include <ATen/Functions.h>", *own]
    cpu_fm.write(
        "Functions.h",
        lambda: {
            "static_dispatch_extra_headers": before,
            "Functions_declarations": gen_functions_declarations(
                native_functions=native_functions,
                kernel_index=kernel_index,
                selector=selector,
                use_aten_lib=use_aten_lib,
                custom_ops_native_functions=custom_ops_native_functions,
            ),
        },
    )
    cpu_fm.write("RegisterKernels.h", dict)
    macros = ["#include <executorch/codegen/macros.h>"] if use_aten_lib else []
    cpu_fm.write(
        "NativeFunctions.h",
        lambda: {
            "nativeFunctions_declarations": aten_declarations(native_functions)
            if use_aten_lib
            else _declarations(native_functions, kernel_index),
            "headers": [*_RUNTIME_HEADERS, *macros],
        },
    )


def _declarations(functions: Sequence[NativeFunction], index: ETKernelIndex) -> list[str]:
    """The declarations of kernels on the runtime's tensors, in lines."""
    grouped = get_ns_grouped_kernels(
        native_functions=functions,
        kernel_index=index,
        native_function_decl_gen=compute_native_function_declaration,
    )
    return get_native_function_declarations_from_ns_grouped_kernels(ns_grouped_kernels=grouped)


def gen_custom_ops(
    *,
    native_functions: Sequence[NativeFunction],
    selector: SelectiveBuilder,
    kernel_index: ETKernelIndex,
    cpu_fm: FileManager,
    rocm: bool,
) -> None:
    """Writes RegisterCPUCustomOps.cpp, RegisterCPUStub.cpp and RegisterSchema.cpp.

    A library of them gives PyTorch the operators of the user's own, with the same kernels or with
    functions that compute nothing.

    Args:
        native_functions: the operators.
        selector: says which of them are wanted.
        kernel_index: their kernels.
        cpu_fm: writes the files.
        rocm: whether names of CUDA stand for those of ROCm.
    """
    wrappers, registrations = gen_custom_ops_registration(
        native_functions=native_functions,
        selector=selector,
        kernel_index=kernel_index,
        rocm=rocm,
    )
    key = DispatchKey.CPU
    shared = {
        "DispatchKey": key,
        "dispatch_namespace": key.lower(),
        "dispatch_namespaced_definitions": "",
        "static_init_dispatch_registrations": registrations,
    }
    header = '#include "CustomOpsNativeFunctions.h"'
    for name, own in (
        (
            f"Register{key}CustomOps.cpp",
            {"ops_headers": header, "dispatch_anonymous_definitions": wrappers},
        ),
        (
            f"Register{key}Stub.cpp",
            {
                "ops_headers": "",
                "dispatch_anonymous_definitions": list(
                    mapMaybe(ComputeNativeFunctionStub(), native_functions)
                ),
            },
        ),
    ):
        fields = {**shared, **own}
        cpu_fm.write_with_template(
            name, "RegisterDispatchKeyCustomOps.cpp", lambda fields=fields: fields
        )
    aten, others = get_native_function_schema_registrations(
        native_functions=native_functions, schema_selector=selector
    )
    cpu_fm.write(
        "RegisterSchema.cpp",
        lambda: {"schema_registrations": others, "aten_schema_registrations": aten},
    )
