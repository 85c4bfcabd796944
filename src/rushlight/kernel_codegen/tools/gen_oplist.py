# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""Writes selected_operators.yaml: the operators, and the dtypes of each, that a build has.

    python -m rushlight.kernel_codegen.tools.gen_oplist --output_path=OUT.yaml \\
        [--model_file_path=MODEL.pte] [--root_ops=OPERATORS] [--ops_dict=JSON] \\
        [--ops_schema_yaml_path=FILE] [--include_all_operators]

What the sources name is merged. A file for `--root_ops=aten::add.out` is::

    operators:
      aten::add.out: {is_root_operator: true, is_used_for_training: true, …}
    et_kernel_metadata:
      aten::add.out: [default]            # for all dtypes
    include_all_operators: false
    …

For a program, the keys of the calls stand in place of `default`: "v1/6;0,1|6;0,1|6;0,1|6;0,1" for
four tensors of float32 (6) with dimensions in order (0,1).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import yaml
from torchgen.gen import LineLoader, parse_native_yaml_struct
from torchgen.selective_build.operator import SelectiveBuildOperator
from torchgen.selective_build.selector import merge_et_kernel_metadata

from rushlight.files import write_text
from rushlight.kernel_codegen.model import ScalarType
from rushlight.kernel_codegen.parse import strip_et_fields
from rushlight.kernel_codegen.tools import selective_build


class KernelType(IntEnum):
    """The kinds of values that have dtypes, with their numbers in programs."""

    TENSOR = 5
    TENSOR_LIST = 10
    OPTIONAL_TENSOR_LIST = 11


def _read(model_file: str) -> selective_build._Program:
    return selective_build._get_program_from_buffer(Path(model_file).read_bytes())


def _get_operators(model_file: str) -> list[str]:
    """The operators that a program calls."""
    return selective_build._get_program_operators(_read(model_file))


def _get_kernel_metadata_for_model(model_file: str) -> dict[str, list[str]]:
    """The keys of a program's calls by operator, the return alias's tensor included."""
    calls = selective_build._get_io_metadata_for_program_operators(_read(model_file))
    return {name: sorted(map(_key, found)) for name, found in calls.items()}


def _key(call: Sequence[selective_build._IOMetaData]) -> str:
    kinds = list(KernelType)
    tensors = [argument for argument in call if argument.kernel_type in kinds]
    return "v1/" + "|".join(f"{t.dtype};{','.join(map(str, t.dim_order))}" for t in tensors)


def _get_et_kernel_metadata_from_ops_yaml(ops_yaml_path: str) -> dict[str, list[str]]:
    """The operators of a functions.yaml or custom_ops.yaml, each for all dtypes."""
    with open(ops_yaml_path, encoding="utf-8") as file:
        entries = yaml.load(file, Loader=LineLoader) or []
    names = [e["op"] if "::" in e["op"] else f"aten::{e['op']}" for e in entries if "op" in e]
    with_schema = [e for e in entries if "op" not in e]
    strip_et_fields(with_schema)
    parsed = parse_native_yaml_struct(
        with_schema, set(), None, path=ops_yaml_path, skip_native_fns_gen=True
    )
    names += [f"{f.namespace}::{f.func.name}" for f in parsed.native_functions]
    return {name: ["default"] for name in names}


def _dump_yaml(
    op_list: Sequence[str],
    output_path: Path,
    model_name: str | None = None,
    et_kernel_metadata: dict[str, list[str]] | None = None,
    include_all_operators: bool = False,
) -> None:
    """Writes the file."""
    facts = {
        "is_root_operator": True,
        "is_used_for_training": True,
        "include_all_overloads": False,
        "debug_info": [model_name],
    }
    operators = {
        name: SelectiveBuildOperator.from_yaml_dict(name, dict(facts)).to_dict() for name in op_list
    }
    content = {
        "operators": operators,
        "custom_classes": [],
        "build_features": [],
        "include_all_non_op_selectives": False,
        "include_all_operators": include_all_operators,
        "kernel_metadata": {},
        "et_kernel_metadata": et_kernel_metadata,
    }
    write_text(output_path, yaml.safe_dump(content, default_flow_style=False))


def create_kernel_key(maybe_kernel_key: str) -> str:
    """The key of a kernel: a key as it is, or that of one dtype, "v1/6;".

    Args:
        maybe_kernel_key: the key, or the name of a :class:`ScalarType`.

    Raises:
        ValueError: it is neither.
    """
    if maybe_kernel_key.lstrip().startswith("v1"):
        return maybe_kernel_key
    if maybe_kernel_key not in ScalarType.__members__:
        known = ", ".join(ScalarType.__members__)
        raise ValueError(
            f"Unknown dtype: {maybe_kernel_key}; use one of {known}, or a key such as 'v1/6;0,1'"
        )
    return f"v1/{ScalarType[maybe_kernel_key].value};"


def _file(option: str, path: str) -> str:
    if not Path(path).is_file():
        raise AssertionError(f"--{option} needs a file; there is none at {path}")
    return path


def _named(root_ops: str) -> list[str]:
    separator = "," if "," in root_ops else " "
    return [name.strip() for name in root_ops.split(separator) if name.strip()]


def gen_oplist(
    output_path: Path,
    model_file_path: str | None = None,
    ops_schema_yaml_path: str | None = None,
    root_ops: str | None = None,
    ops_dict: str | None = None,
    include_all_operators: bool = False,
) -> None:
    """Writes selected_operators.yaml; an empty one if no operators are named.

    Args:
        output_path: the file.
        model_file_path: a program, whose operators are taken with the dtypes of its calls.
        ops_schema_yaml_path: a file of kernels, whose operators are taken.
        root_ops: operators, with commas or spaces between them.
        ops_dict: operator to dtypes or keys, as JSON.
        include_all_operators: whether all others are built, too.
    """
    sources = (model_file_path, ops_schema_yaml_path, root_ops, ops_dict)
    if not any(sources) and not include_all_operators:
        _dump_yaml([], output_path)
        return
    names: set[str] = set()
    keys: dict[str, list[str]] = {}
    if root_ops:
        named = _named(root_ops)
        names.update(named)
        keys = merge_et_kernel_metadata(keys, {name: ["default"] for name in named})
    if ops_dict:
        listed: dict[str, list[str]] = json.loads(ops_dict)
        names.update(listed)
        own = {
            name: [create_kernel_key(k) for k in of] or ["default"] for name, of in listed.items()
        }
        keys = merge_et_kernel_metadata(keys, own)
    if model_file_path:
        model = _file("model_file_path", model_file_path)
        names.update(_get_operators(model))
        keys = merge_et_kernel_metadata(keys, _get_kernel_metadata_for_model(model))
    if ops_schema_yaml_path:
        schemas = _file("ops_schema_yaml_path", ops_schema_yaml_path)
        own = _get_et_kernel_metadata_from_ops_yaml(schemas)
        names.update(own)
        keys = merge_et_kernel_metadata(keys, own)
    source = ops_schema_yaml_path or model_file_path
    _dump_yaml(sorted(names), output_path, source, keys, include_all_operators)


def main(args: Sequence[Any]) -> None:
    """Writes the file that the command line asks for.

    Args:
        args: the arguments.

    Raises:
        RuntimeError: a source cannot be read; has the command that does it again.
    """
    parser = argparse.ArgumentParser(description="Lists the operators that a build has")
    add = parser.add_argument
    add("--output_path", "--output-path", required=True, help="the file, or a folder for it")
    add("--model_file_path", "--model-file-path", help="a program")
    add("--ops_schema_yaml_path", "--ops-schema-yaml-path", help="a file of kernels")
    add("--root_ops", "--root-ops", help="operators, with commas between them")
    add("--ops_dict", "--ops-dict", help="operator to dtypes or keys, as JSON")
    add(
        "--include-all-operators",
        "--include_all_operators",
        action="store_true",
        help="all others are built, too",
    )
    options = parser.parse_args(args)
    output = Path(options.output_path)
    if output.is_dir():
        output /= "selected_operators.yaml"
    try:
        gen_oplist(
            output_path=output,
            model_file_path=options.model_file_path,
            ops_schema_yaml_path=options.ops_schema_yaml_path,
            root_ops=options.root_ops,
            ops_dict=options.ops_dict,
            include_all_operators=options.include_all_operators,
        )
    except Exception as error:
        again = " ".join(str(argument) for argument in args)
        raise RuntimeError(
            f"Failed to generate {output.name}: {error}. To do it again: "
            f"python -m {__spec__.name if __spec__ else 'gen_oplist'} {again}"
        ) from error


if __name__ == "__main__":
    main(sys.argv[1:])
