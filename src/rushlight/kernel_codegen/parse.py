# mypy: disable-error-code="import-untyped,misc,no-any-return,untyped-decorator"
"""Reads the kernels that a file names for dtypes and dim orders.

An entry of such a file says, beside its operator::

    type_alias: {T0: [Float, Double]}
    dim_order_alias: {D0: [0, 1]}
    kernels:
      - arg_meta: null               # whatever no other kernel is for
        kernel_name: own::add_out
      - arg_meta: {self: [T0, D0], other: [T0, D0], out: [T0, D0]}
        kernel_name: own::add_floats
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from torchgen.gen import LineLoader, parse_native_yaml
from torchgen.model import (
    BackendMetadata,
    DispatchKey,
    FunctionSchema,
    NativeFunction,
    OperatorName,
)
from torchgen.utils import NamespaceHelper

from rushlight.kernel_codegen.model import ETKernelIndex, ETKernelKey

ETParsedYaml = namedtuple("ETParsedYaml", ["native_functions", "et_kernel_indices"])
"""What was read from a file: the operators, and the indices of their kernels."""

ET_FIELDS = ["kernels", "type_alias", "dim_order_alias"]
"""The fields of an entry that say which kernels there are. torchgen does not know them."""


def operator_of(entry: Mapping[str, Any]) -> OperatorName:
    """The operator of an entry that has its schema.

    Args:
        entry: of a file.
    """
    schema = entry.get("func")
    if not isinstance(schema, str):
        raise AssertionError(f"func: is {schema!r}; write a schema, such as own::f(Tensor x) -> …")
    helper = NamespaceHelper.from_namespaced_entity(schema, max_level=1)
    return FunctionSchema.parse(helper.entity_name).name


def parse_from_yaml(ei: Mapping[str, object]) -> dict[ETKernelKey, BackendMetadata]:
    """The kernels that an entry names for dtypes; none if it has no field `kernels`.

    Args:
        ei: the entry.
    """
    entry: dict[str, Any] = dict(ei)
    types = _without_line(entry.get("type_alias"))
    orders = _without_line(entry.get("dim_order_alias"))
    mapping: dict[ETKernelKey, BackendMetadata] = {}
    for kernel in entry.get("kernels") or ():
        helper = NamespaceHelper.from_namespaced_entity(kernel.get("kernel_name"), max_level=3)
        metadata = BackendMetadata(
            kernel=helper.entity_name,
            structured=False,
            cpp_namespace=f"{helper.get_cpp_namespace(default='at')}::native",
        )
        tensors = kernel.get("arg_meta")
        if tensors is None:
            keys = [ETKernelKey(default=True)]
        else:
            keys = ETKernelKey.gen_from_yaml(_without_line(tensors), types, orders)
        for key in keys:
            if key in mapping:
                raise AssertionError(
                    f"Duplicate kernel key: {key.to_native_string()} belongs to "
                    f"{mapping[key].kernel} and to {metadata.kernel} of {entry.get('func')}; "
                    "leave one of them out"
                )
            mapping[key] = metadata
    return mapping


def _without_line(fields: Mapping[str, Any] | None) -> dict[str, Any]:
    """The fields of a mapping of the file, without the number of its line."""
    return {name: value for name, value in (fields or {}).items() if name != "__line__"}


def parse_et_yaml_struct(es: Sequence[Mapping[str, Any]]) -> ETKernelIndex:
    """The kernels that all entries name for dtypes.

    Args:
        es: the entries of a file.
    """
    indices: dict[OperatorName, dict[ETKernelKey, BackendMetadata]] = {}
    for entry in es:
        operator = operator_of(entry)
        if operator in indices:
            raise AssertionError(f"Duplicate func found in yaml: {operator} already")
        kernels = parse_from_yaml(entry)
        if kernels:
            indices[operator] = kernels
    return ETKernelIndex(indices)


def extract_kernel_fields(es: Sequence[Mapping[str, Any]]) -> dict[OperatorName, dict[str, Any]]:
    """The fields of :data:`ET_FIELDS` that entries have, by operator.

    Args:
        es: the entries of a file.
    """
    fields = {}
    for entry in es:
        own = {field: entry[field] for field in ET_FIELDS if entry.get(field) is not None}
        if own:
            fields[operator_of(entry)] = own
    return fields


def parse_et_yaml(
    path: str,
    tags_yaml_path: str,
    ignore_keys: set[DispatchKey] | None = None,
    skip_native_fns_gen: bool = False,
) -> tuple[list[NativeFunction], dict[OperatorName, dict[str, Any]]]:
    """The operators of a file, and the fields of their kernels.

    Args:
        path: the file, in the form of PyTorch's native_functions.yaml.
        tags_yaml_path: PyTorch's tags.yaml.
        ignore_keys: dispatch keys whose kernels are left out.
        skip_native_fns_gen: whether no operators are made that follow from others.
    """
    with open(path, encoding="utf-8") as file:
        entries = yaml.load(file, Loader=LineLoader)
    fields = extract_kernel_fields(entries)
    strip_et_fields(entries)
    parsed = parse_native_yaml(
        path,
        tags_yaml_path,
        ignore_keys,
        skip_native_fns_gen=skip_native_fns_gen,
        loaded_yaml=entries,
    )
    return parsed.native_functions, fields


def strip_et_fields(es: Sequence[dict[str, Any]]) -> None:
    """Takes the fields of :data:`ET_FIELDS` out of the entries themselves.

    Args:
        es: the entries of a file.
    """
    for entry in es:
        for field in ET_FIELDS:
            entry.pop(field, None)
