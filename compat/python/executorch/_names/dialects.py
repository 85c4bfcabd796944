"""`executorch.exir.dialects`, `exir.operator` and `exir.verification`: operators, their dtypes."""

from __future__ import annotations

_OPERATORS = "rushlight.exir.operators"
_EDGE = "rushlight.edge.operators"
_DTYPES = "rushlight.edge.dtype_constraints"
_DIALECTS = "rushlight.exir.dialects"
_VARIANTS = f"{_DIALECTS}.variants"
_YAML = f"{_DIALECTS}.edge_yaml"

MODULES: dict[str, dict[str, str]] = {
    "exir.dialects._ops": {
        "_DialectNamespace": f"{_EDGE}:Dialect",
        "_Ops": f"{_EDGE}:Operators",
        "bind_pattern_to_op": _OPERATORS,
        "ops": _EDGE,
    },
    "exir.dialects.backend._ops": {"BackendOpOverload": _EDGE},
    "exir.dialects.edge._ops": {
        **dict.fromkeys(
            (
                "AllowedDtypeSet",
                "EdgeDialectArgument",
                "EdgeDialectFunctionSchema",
                "FunctionDtypeConstraint",
            ),
            _DTYPES,
        ),
        "EdgeOpOverload": _EDGE,
        "EdgeOpOverloadPacket": _EDGE,
        "_edge_dialect_info": f"{_DTYPES}:EXPLICIT",
    },
    "exir.dialects.edge.dtype.supported": {
        "regular_tensor_dtypes_to_str": f"{_DTYPES}:NAMES",
        "regular_tensor_str_to_dtypes": f"{_DTYPES}:DTYPES",
    },
    "exir.dialects.edge.op.api": dict.fromkeys(
        ("get_callable", "get_torch_op_overload", "to_variant"), _VARIANTS
    ),
    "exir.dialects.edge.spec.gen": dict.fromkeys(
        (
            "EdgeOpYamlInfo",
            "EdgeYamlInfo",
            "gen_edge_yaml",
            "gen_op_yaml",
            "get_func_name_yaml",
            "get_func_schema",
            "get_sample_input",
            "in_legal_edge_type",
            "try_all_dtypes_input_samples",
        ),
        _YAML,
    ),
    "exir.dialects.edge.spec.utils": {
        **dict.fromkeys(
            (
                "get_tensor_variable_names",
                "is_essential_tensor_arg",
                "is_optional_tensor_arg",
                "type_aggregrate",
            ),
            _YAML,
        ),
        "get_torch_op_overload": _VARIANTS,
        "is_tensor_arg": "rushlight.edge.dtype_trials:is_tensor",
    },
    "exir.operator.convert": {
        **dict.fromkeys(
            (
                "get_out_args_from_schema",
                "is_inplace_variant",
                "is_out_variant",
                "schema_to_opoverload",
                "to_out_variant",
                "unwrap_op_overload",
            ),
            _OPERATORS,
        ),
        **dict.fromkeys(
            ("get_op_overload", "output_to_aliased_input_map", "parse_qualified_opname"), _VARIANTS
        ),
        "_get_overload_schema": f"{_VARIANTS}:schema_of",
        "get_out_args_from_opoverload": f"{_OPERATORS}:out_names",
    },
    "exir.operator.util": {"gen_out_variant_schema": _VARIANTS},
    "exir.verification.arg_validator": {
        "EdgeOpArgValidator": f"{_DIALECTS}.arg_validator",
        "RunHigherOrderOperatorError": "rushlight.errors:ExportError",
    },
}

_TRIED = "executorch.exir.dialects.edge.spec.gen.gen_op_yaml tries dtypes"

ABSENT: dict[str, str] = {
    "exir.dialects.edge.arg": f"arguments are made by trying: {_TRIED}",
    "exir.dialects.edge.dtype.runner": _TRIED,
    "exir.dialects.edge.dtype.supported": "quantised values are integers with calls that "
    "dequantise them: programs have no tensors of quantised dtypes",
    "exir.dialects.edge.dtype.utils": _TRIED,
    "exir.dialects.edge.op.sample_input": "get_sample_input gives samples of PyTorch's own tests",
    "exir.dialects.edge.spec.gen": f"a step of that tool: {_TRIED}",
    "exir.dialects.edge.spec.utils": f"a step of spec.gen: {_TRIED}",
    "exir.operator.convert": "out variants are found by their schemas: call to_out_variant",
    "exir.operator.manip": "kernels get scratch memory from their context: see "
    "docs/custom-operators.md",
}
