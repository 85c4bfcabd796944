# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""The kernels that the runtime has itself, under the names that ExecuTorch's files give them.

A functions.yaml that names `torch::executor::add_out` for add.out means the kernel that comes with
the runtime. It is in the runtime's own table, so that nothing is registered for it.
"""

from __future__ import annotations

import re

from torchgen.model import BackendMetadata, NativeFunction

from rushlight.ir.kernels import manifest
from rushlight.kernel_codegen.model import ETKernelIndex, ETParsedYaml

_NAMESPACE = "torch::executor::native"
_BEFORE = re.compile(r"^(?:opt_|quantized_)?_?")
_AFTER = re.compile(r"(?:_(?:\w+_)?(?:out(?:_mode)?|values)|_)?")


def is_of_runtime(f: NativeFunction, metadata: BackendMetadata) -> bool:
    """Whether a kernel is the runtime's own: the runtime has one, and it has ExecuTorch's name.

    Such names are made of the operator's: opt_add_out, max_unary_out, quantized_embedding_byte_out.

    Args:
        f: the operator.
        metadata: the kernel that a file names for it.
    """
    if metadata.cpp_namespace != _NAMESPACE or f"{f.namespace}::{f.func.name}" not in manifest():
        return False
    operator = str(f.func.name.name).lstrip("_")
    kernel = _BEFORE.sub("", metadata.kernel)
    return kernel.startswith(operator) and bool(_AFTER.fullmatch(kernel[len(operator) :]))


def without_runtime_kernels(parsed: ETParsedYaml) -> ETParsedYaml:
    """The operators whose kernels are not the runtime's own.

    Args:
        parsed: the operators, and their kernels.
    """
    index: ETKernelIndex = parsed.kernel_index

    def is_own(f: NativeFunction) -> bool:
        kernels = index.get_kernels(f).values()
        return not kernels or not all(is_of_runtime(f, kernel) for kernel in kernels)

    return ETParsedYaml([f for f in parsed.native_functions if is_own(f)], index)
