# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""C++ that makes operators of PyTorch of kernels on the runtime's tensors, for export.

RegisterCPUCustomOps.cpp, in the form of ExecuTorch, wants the kernels compiled a second time, on
PyTorch's tensors. RegisterCPUWrappedOps.cpp calls them as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from torchgen.api.types import Binding, DispatcherSignature
from torchgen.context import native_function_manager
from torchgen.model import (
    Argument,
    BackendMetadata,
    BaseTy,
    BaseType,
    ListType,
    NativeFunction,
    OptionalType,
)
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import FileManager

from rushlight.kernel_codegen.api.types import ExecutorchCppSignature
from rushlight.kernel_codegen.model import ETKernelIndex, ETKernelKey

_OPTIONAL_TENSORS = ListType(OptionalType(BaseType(BaseTy.Tensor)), None)

_FUNCTIONS = """
// {operator}
void {name}_kernel({parameters}) {{
  torch::executor::KernelRuntimeContext context;
  {kernel}(context, {arguments});
  check(context, "{operator}");
}}
{signature} {{
  WRAP_TO_ATEN({name}_kernel)({values});
{result}}}
"""


def gen_wrapped_ops(
    *,
    native_functions: Sequence[NativeFunction],
    selector: SelectiveBuilder,
    kernel_index: ETKernelIndex,
    cpu_fm: FileManager,
) -> None:
    """Writes RegisterCPUWrappedOps.cpp, for the operators that write to arguments.

    Args:
        native_functions: the operators.
        selector: says which of them are wanted.
        kernel_index: their kernels; those for all dtypes are called.
        cpu_fm: writes the file.
    """
    functions, registered = [], defaultdict(list)
    for f in native_functions:
        kernel = kernel_index.get_kernels(f).get(ETKernelKey(default=True))
        if kernel is None or not f.func.arguments.out:
            continue
        if selector.is_root_operator(f"{f.namespace}::{f.func.name}"):
            with native_function_manager(f):
                functions.append(_functions(f, kernel))
            line = f'  m.impl("{f.func.name}", TORCH_FN({_name(f)}));'
            registered[f.namespace].append(line)
    blocks = [
        f"TORCH_LIBRARY_IMPL({namespace}, CPU, m) {{\n" + "\n".join(lines) + "\n}"
        for namespace, lines in registered.items()
    ]
    cpu_fm.write(
        "RegisterCPUWrappedOps.cpp",
        lambda: {"functions": "".join(functions), "registrations": "\n".join(blocks)},
    )


def _name(f: NativeFunction) -> str:
    return f"wrapped_{f.namespace}_{f.func.name.unambiguous_name()}"


def _value(binding: Binding) -> str:
    """An argument of PyTorch's as WRAP_TO_ATEN takes it."""
    name, argument = binding.name, binding.argument
    if isinstance(argument, Argument) and argument.type == _OPTIONAL_TENSORS:
        return f"{name}.vec()"
    if binding.nctype.type.cpp_type() == "at::OptionalIntArrayRef":
        return f"{name}.has_value() ? std::optional<at::IntArrayRef>(*{name}) : std::nullopt"
    return name


def _functions(f: NativeFunction, kernel: BackendMetadata) -> str:
    """The function on the runtime's tensors, which has no overloads, and the one on PyTorch's."""
    own = ExecutorchCppSignature.from_native_function(f).arguments(include_context=False)
    of_torch = DispatcherSignature.from_schema(f.func, prefix="", symint=False)
    by_name = {binding.name: binding for binding in of_torch.arguments()}
    outs = [out.name for out in f.func.arguments.out]
    result = ""
    if f.func.returns:
        value = outs[0] if len(outs) == 1 else "{" + ", ".join(outs) + "}"
        result = f"  return {value};\n"
    return _FUNCTIONS.format(
        operator=f"{f.namespace}::{f.func.name}",
        name=_name(f),
        parameters=", ".join(binding.defn() for binding in own),
        kernel=f"::{kernel.cpp_namespace}::{kernel.kernel}",
        arguments=", ".join(binding.name for binding in own),
        signature=of_torch.defn(name=_name(f)),
        values=", ".join(_value(by_name[binding.name]) for binding in own),
        result=result,
    )
