# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""Reads functions.yaml and custom_ops.yaml."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO

import yaml
from torchgen.gen import LineLoader, parse_native_yaml_struct, parse_tags_yaml
from torchgen.model import BackendMetadata, DispatchKey, Location, NativeFunction, OperatorName
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import context

from rushlight.files import write_text
from rushlight.kernel_codegen.model import ETKernelIndex, ETParsedYaml
from rushlight.kernel_codegen.parse import (
    operator_of,
    parse_et_yaml,
    parse_et_yaml_struct,
    strip_et_fields,
)

Indices = Mapping[DispatchKey, Mapping[OperatorName, BackendMetadata]]
"""Kernels without dtypes by dispatch key."""


def _has_content(path: str | None) -> bool:
    return bool(path) and os.path.exists(str(path)) and os.stat(str(path)).st_size > 0


def translate_native_yaml(
    tags_yaml_path: str,
    aten_yaml_path: str,
    native_yaml_path: str | None,
    use_aten_lib: bool,
    out_file: TextIO,
) -> None:
    """Writes a functions.yaml in the form of PyTorch's native_functions.yaml.

    An entry that names its operator, ``op: add.out``, gets the schema in its place, and the fields
    that the operator's kernels have in PyTorch's file.

    Args:
        tags_yaml_path: PyTorch's tags.yaml.
        aten_yaml_path: PyTorch's native_functions.yaml.
        native_yaml_path: the functions.yaml; nothing is written if it does not exist.
        use_aten_lib: whether PyTorch's own file is wanted in place of it.
        out_file: what is written to.
    """
    if use_aten_lib:
        out_file.write(Path(aten_yaml_path).read_text(encoding="utf-8"))
        return
    if not _has_content(native_yaml_path):
        return
    assert native_yaml_path is not None
    with open(native_yaml_path, encoding="utf-8") as file:
        entries = yaml.load(file, Loader=LineLoader)
    if not entries:
        return
    functions, fields = parse_et_yaml(aten_yaml_path, tags_yaml_path, None)
    known = {f"{f.namespace}::{f.func.name}": f for f in functions}
    for entry in entries:
        location = Location(native_yaml_path, entry.pop("__line__"))
        with context(lambda location=location: f"in {location}:\n  "):
            entry.setdefault("variants", "function")
            if "func" not in entry:
                f = _function(entry.pop("op", None), known)
                entry["func"] = str(f.func)
                entry.update(fields.get(f.func.name, {}))
    yaml.dump(entries, out_file, width=1000)


def _function(op: object, known: Mapping[str, NativeFunction]) -> NativeFunction:
    if not isinstance(op, str):
        raise AssertionError(f"an entry has neither func: nor op:, which is {op!r}; write one")
    name = op if "::" in op else f"aten::{op}"
    if name not in known:
        raise AssertionError(
            f"op: {op} is no operator of PyTorch; write its whole schema as func:, or correct the "
            "name (with the overload: add.out)"
        )
    return known[name]


def parse_yaml(
    path: str | None,
    tags_yaml_path: str,
    function_filter: Callable[[NativeFunction], bool],
    skip_native_fns_gen: bool = False,
) -> tuple[list[NativeFunction], Indices | ETKernelIndex]:
    """The operators of a file, and their kernels.

    Args:
        path: the file, whose entries have schemas; nothing is read if it does not exist.
        tags_yaml_path: PyTorch's tags.yaml.
        function_filter: says which operators are wanted.
        skip_native_fns_gen: whether no operators are made that follow from others.

    Returns:
        The operators; and the index of their kernels if an entry has the field `kernels`, which
        hides `dispatch`, else dispatch key to operator to kernel.
    """
    if not _has_content(path):
        return [], {}
    assert path is not None
    with open(path, encoding="utf-8") as file:
        entries = yaml.load(file, Loader=LineLoader) or []
    has_kernels = any("kernels" in entry for entry in entries)
    kernels = parse_et_yaml_struct(entries) if has_kernels else None
    dispatched = {operator_of(entry) for entry in entries if entry.get("dispatch")}
    strip_et_fields(entries)
    parsed = parse_native_yaml_struct(
        entries,
        parse_tags_yaml(tags_yaml_path),
        path=path,
        skip_native_fns_gen=skip_native_fns_gen,
    )
    functions = [f for f in parsed.native_functions if function_filter(f)]
    names = {f.func.name for f in functions}
    indices = {
        key: {op: metadata for op, metadata in index.index.items() if op in names}
        for key, index in parsed.backend_indices.items()
    }
    if kernels is None:
        return functions, indices
    plain = ETKernelIndex.from_backend_indices(indices).index
    others = {op: of for op, of in plain.items() if op in dispatched - set(kernels.index)}
    own = {op: of for op, of in kernels.index.items() if op in names}
    return functions, ETKernelIndex({**others, **own})


def parse_yaml_files(
    tags_yaml_path: str,
    aten_yaml_path: str,
    native_yaml_path: str | None,
    custom_ops_yaml_path: str | None,
    selector: SelectiveBuilder,
    use_aten_lib: bool,
) -> tuple[ETParsedYaml, ETParsedYaml | None]:
    """The operators and kernels of functions.yaml and custom_ops.yaml.

    Args:
        tags_yaml_path: PyTorch's tags.yaml.
        aten_yaml_path: PyTorch's native_functions.yaml.
        native_yaml_path: the functions.yaml, if there is one.
        custom_ops_yaml_path: the custom_ops.yaml, if there is one.
        selector: says which operators are wanted.
        use_aten_lib: whether tensors are PyTorch's, and functions.yaml PyTorch's own file.

    Returns:
        What both files have, and what custom_ops.yaml has.
    """

    def parsed(path: str | None, skip: bool) -> ETParsedYaml:
        functions, indices = parse_yaml(
            path, tags_yaml_path, selector.is_native_function_selected, skip
        )
        if not isinstance(indices, ETKernelIndex):
            indices = ETKernelIndex.from_backend_indices(indices)
        return ETParsedYaml(functions, indices)

    translated = io.StringIO()
    translate_native_yaml(
        tags_yaml_path, aten_yaml_path, native_yaml_path, use_aten_lib, translated
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "functions.yaml"
        write_text(path, translated.getvalue())
        functions = parsed(str(path), not use_aten_lib)
    own = parsed(custom_ops_yaml_path, True)
    return (
        ETParsedYaml(
            functions.native_functions + own.native_functions,
            ETKernelIndex.merge_indices(functions.kernel_index, own.kernel_index),
        ),
        own,
    )
