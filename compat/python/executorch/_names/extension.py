"""`executorch.runtime` and `executorch.extension`: running programs."""

from __future__ import annotations

_PORTABLE = "rushlight.portable_lib"
_RUNTIME = "rushlight.runtime"
_DATA_FILES = "rushlight.exir.data_files"

MODULES: dict[str, dict[str, str]] = {
    "runtime": {
        "BackendRegistry": "rushlight.runtime.registries",
        "Method": "rushlight.runtime.runtime",
        "OperatorRegistry": "rushlight.runtime.registries",
        "Program": "rushlight.runtime.runtime",
        "Runtime": _RUNTIME,
        "Verification": _RUNTIME,
    },
    "extension.pybindings.portable_lib": {
        **dict.fromkeys(
            (
                "BundledModule",
                "ExecuTorchMethod",
                "ExecuTorchModule",
                "ExecuTorchProgram",
                "_get_operator_names",
                "_get_registered_backend_names",
                "_is_available",
                "_load_bundled_program_from_buffer",
                "_load_for_executorch",
                "_load_for_executorch_from_buffer",
                "_load_for_executorch_from_bundled_program",
                "_load_program",
                "_load_program_from_buffer",
            ),
            _PORTABLE,
        ),
        "MethodMeta": "rushlight.runtime.runtime",
        "TensorInfo": "rushlight.runtime.runtime",
        "Verification": _RUNTIME,
    },
    "extension.flat_tensor.serialize.serialize": dict.fromkeys(
        ("FlatTensorConfig", "FlatTensorHeader", "FlatTensorSerializer"), _DATA_FILES
    ),
    "extension.flat_tensor.serialize.flat_tensor_schema": dict.fromkeys(
        ("DataSegment", "FlatTensor", "NamedData"), "rushlight.schema.flat_tensor"
    ),
    "extension.pytree": dict.fromkeys(
        ("TreeSpec", "tree_flatten", "tree_map", "tree_unflatten"), "torch.utils._pytree"
    ),
}

ABSENT: dict[str, str] = {
    "extension.pybindings.aten_lib": "use executorch.extension.pybindings.portable_lib: kernels on "
    "ATen tensors are not built",
    "extension.training": "training on a device is not built: train in PyTorch, and export again",
}
