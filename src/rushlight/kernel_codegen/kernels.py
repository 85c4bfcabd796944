# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""The C++ that registers kernels in the runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torchgen.api import cpp as aten_cpp
from torchgen.api.types import CType, NamedCType
from torchgen.context import method_with_nested_native_function, native_function_manager
from torchgen.model import BackendMetadata, NativeFunction
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import FileManager

from rushlight.kernel_codegen.api import et_cpp
from rushlight.kernel_codegen.api.types import ExecutorchCppSignature, contextArg
from rushlight.kernel_codegen.api.unboxing import Unboxing, connector
from rushlight.kernel_codegen.functions import signature_of
from rushlight.kernel_codegen.model import ETKernelIndex, ETKernelKey

Entry = tuple[NativeFunction, tuple[ETKernelKey, BackendMetadata]]
"""An operator, and one of its kernels."""

_CATCH = """        } catch (const std::exception& ex) {
          ET_LOG(Error, "Kernel threw an exception: %s", ex.what());
          context.fail(torch::executor::Error::Internal);
        }"""

_KERNEL = """
Kernel(
    "{name}",{key}
    []({context}, Span<EValue*> stack) {{
        {count_check}
        {unboxing}

{begin}
        internal::EventTracerProfileOpScope event_tracer_op_scope(\
context.internal_event_tracer(), "{event}");
        EXECUTORCH_SCOPE_PROF("{event}");
        {result}{kernel}(context, {arguments});
        {store}
        {log}
{end}
    }}
),
"""


@dataclass(frozen=True)
class ComputeCodegenUnboxedKernels:
    """Writes the entries of the table of kernels for one kernel.

    Attributes:
        selector: says which operators are wanted, and for which dtypes.
        use_aten_lib: whether tensors are PyTorch's.
        add_exception_boundary: whether an exception of the kernel becomes an error of the run.
    """

    selector: SelectiveBuilder
    use_aten_lib: bool
    add_exception_boundary: bool = False

    @method_with_nested_native_function
    def __call__(
        self, unbox_kernel_entry: tuple[NativeFunction, tuple[Any, BackendMetadata]]
    ) -> str:
        """The entries, one for each key that is wanted; "" for none.

        Args:
            unbox_kernel_entry: the operator, and its kernel with a key or several.
        """
        f, (keys, _) = unbox_kernel_entry
        operator = f"{f.namespace}::{f.func.name}"
        if not self.selector.is_root_operator(operator):
            return ""
        all_keys = keys if isinstance(keys, list) else [keys]
        wanted = self.selector.et_get_selected_kernels(
            operator, [key.to_native_string() for key in all_keys]
        )
        return self.written(unbox_kernel_entry, wanted) if wanted else ""

    def written(
        self,
        unbox_kernel_entry: tuple[NativeFunction, tuple[Any, BackendMetadata]],
        wanted: Sequence[str],
    ) -> str:
        """The entries for some keys, whichever are selected.

        Args:
            unbox_kernel_entry: the operator, and its kernel.
            wanted: the keys.
        """
        f, (_, metadata) = unbox_kernel_entry
        with native_function_manager(f):
            fields = self._fields(f, metadata)
        return "\n".join(
            _KERNEL.format(key="" if key == "default" else f'\n    "{key}",', **fields)
            for key in wanted
        )

    def _fields(self, f: NativeFunction, metadata: BackendMetadata) -> dict[str, str]:
        """What an entry says, but for its key."""
        sig = signature_of(f, self.use_aten_lib)
        argument_type: Callable[..., NamedCType] = aten_cpp.argumenttype_type
        result_type: Callable[..., CType] = aten_cpp.returns_type
        if isinstance(sig, ExecutorchCppSignature):
            argument_type, result_type = et_cpp.argumenttype_type, et_cpp.returns_type
            arguments = list(sig.arguments(include_context=False))
            kernel = f"{metadata.cpp_namespace}::{metadata.kernel}"
        else:
            arguments = list(sig.arguments())
            kernel = f"torch::executor::{f.namespace}::{sig.name()}"
        unboxed, code = Unboxing(argument_type).convert_arguments(arguments)
        result, store, outputs = _result(f, result_type, len(unboxed))
        count = len(unboxed) + 1
        return {
            "name": f"{f.namespace}::{f.func.name}",
            "context": contextArg.defn(),
            "count_check": (
                f"ET_KERNEL_CHECK_MSG(context, stack.size() == {count}, InvalidProgram, "
                '/*void*/, "Expected %" ET_PRIsize_t "args received %" ET_PRIsize_t, '
                f"(size_t){count}, stack.size());"
            ),
            "unboxing": connector.join(code),
            "begin": "        try {" if self.add_exception_boundary else "",
            "event": f"native_call_{f.func.name}",
            "result": result,
            "kernel": kernel,
            "arguments": ", ".join(binding.name for binding in unboxed),
            "store": store,
            "log": "".join(
                "internal::event_tracer_log_evalue(context.internal_event_tracer(), "
                f"*stack[{index}]);\n"
                for index in outputs
            ),
            "end": _CATCH if self.add_exception_boundary else "",
        }


def _result(
    f: NativeFunction, result_type: Callable[..., CType], count: int
) -> tuple[str, str, list[int]]:
    """What stands before a kernel's call and after it, and the places of what the kernel writes.

    Args:
        f: the operator.
        result_type: gives the type of its results.
        count: of its arguments, which the result follows.
    """
    outs = f.func.arguments.out
    if not f.func.returns:
        if not outs:
            raise NotImplementedError(
                f"{f.func} has no results and writes to no argument, so that it has no effect; "
                "add an argument Tensor(a!) out"
            )
        return "", f"stack[{count}] = &{outs[0].name};", [count]
    if not outs:
        type_ = result_type(f.func.returns).cpp_type()
        return f"{type_} result_ = ", f"*stack[{count}] = EValue(result_);", [count]
    return "", "", list(range(count - len(outs), count))


def wanted_keys(f: NativeFunction, keys: Sequence[str], selector: SelectiveBuilder) -> set[str]:
    """The keys of an operator's kernels that are selected, taken all together.

    The keys of a program's calls have one tensor more than a kernel's: the call's result, which is
    its last argument once again.

    Args:
        f: the operator.
        keys: of all its kernels.
        selector: says which calls there are.

    Raises:
        ValueError: there is no kernel for a call.
    """
    operator = f"{f.namespace}::{f.func.name}"
    if not selector.is_root_operator(operator):
        return set()
    calls = selector.et_kernel_metadata.get(operator)
    if calls is None:
        return set(keys)
    tensors = {key.partition("/")[2]: key for key in keys if key != "default"}
    wanted = set()
    for call in calls:
        of_call = call.partition("/")[2]
        if any(not tensor.partition(";")[2] for tensor in of_call.split("|")):
            return set(keys)  # "default", or dtypes without an order of dimensions
        found = tensors.get(of_call) or tensors.get(of_call.rpartition("|")[0])
        if found is None and "default" not in keys:
            raise ValueError(
                f"no kernel of {operator} is for the call {call}; there are {', '.join(keys)}: add "
                "one with arg_meta: null, which serves whatever no other is for"
            )
        wanted.add(found or "default")
    return wanted


def gen_unboxing(
    *,
    native_functions: Sequence[NativeFunction],
    cpu_fm: FileManager,
    selector: SelectiveBuilder,
    use_aten_lib: bool,
    kernel_index: ETKernelIndex,
    manual_registration: bool,
    add_exception_boundary: bool = False,
) -> None:
    """Writes RegisterCodegenUnboxedKernelsEverything.cpp, or RegisterKernelsEverything.cpp.

    Args:
        native_functions: the operators.
        cpu_fm: writes the file.
        selector: says which operators are wanted, and for which dtypes.
        use_aten_lib: whether tensors are PyTorch's.
        kernel_index: their kernels.
        manual_registration: whether the application registers the kernels by a call, not a static
            object.
        add_exception_boundary: whether exceptions of kernels become errors of the run.
    """
    entries: list[Entry] = []
    for f in native_functions:
        kernels = kernel_index.get_kernels(f)
        wanted = wanted_keys(f, [key.to_native_string() for key in kernels], selector)
        entries += [(f, item) for item in kernels.items() if item[0].to_native_string() in wanted]
    write = ComputeCodegenUnboxedKernels(selector, use_aten_lib, add_exception_boundary)
    header = "Functions.h" if use_aten_lib else "NativeFunctions.h"

    def key_of(entry: Entry) -> str:
        return f"{entry[0].root_name}:{entry[1][0].to_native_string()}"

    cpu_fm.write_sharded(
        "RegisterKernels.cpp" if manual_registration else "RegisterCodegenUnboxedKernels.cpp",
        entries,
        key_fn=key_of,
        env_callable=lambda entry: {
            "unboxed_kernels": [write.written(entry, [entry[1][0].to_native_string()])]
        },
        base_env={"fn_header": [header]},
        num_shards=1,
        sharded_keys={"unboxed_kernels", "fn_header"},
    )
