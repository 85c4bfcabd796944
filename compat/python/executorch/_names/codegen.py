"""`executorch.codegen`: C++ that binds kernels to operators, and its tools."""

from __future__ import annotations

_CODEGEN = "rushlight.kernel_codegen"
_MODULES = (
    "api",
    "api.custom_ops",
    "api.et_cpp",
    "api.types",
    "api.types.signatures",
    "api.types.types",
    "api.unboxing",
    "gen",
    "model",
    "parse",
    "tools",
    "tools.combine_prim_ops_headers",
    "tools.gen_all_oplist",
    "tools.gen_max_kernel_num",
    "tools.gen_oplist",
    "tools.gen_ops_def",
    "tools.gen_selected_op_variants",
    "tools.gen_selected_prim_ops",
    "tools.merge_yaml",
    "tools.selective_build",
    "tools.yaml_util",
)

# Modules that are ours as a whole, so that they can be run (`python -m`) and patched.
WHOLE: dict[str, str] = {
    "codegen": _CODEGEN,
    **{f"codegen.{name}": f"{_CODEGEN}.{name}" for name in _MODULES},
}
