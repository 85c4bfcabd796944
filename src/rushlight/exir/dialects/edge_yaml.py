"""What dtypes operators take, as ExecuTorch's YAML file of the Edge dialect writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import torch

from rushlight.edge.dtype_constraints import NAMES
from rushlight.edge.dtype_trials import Aliases, TensorNames, aggregate, combinations, is_tensor
from rushlight.errors import Code, ExportError
from rushlight.exir.dialects.variants import get_callable

# Those that ExecuTorch tries, too.
_TRIED = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float32, torch.float64, torch.bool, torch.float16, torch.uint16),
)


class EdgeOpYamlInfo:
    """The dtypes of one operator.

    Args:
        func_name: the operator, "aten::add.Tensor".
        tensor_variable_names: its tensors; results are `__ret_0`….
        allowed_types: the names of dtypes that go together, in the order of the tensors.
        inherits: the operator that computes it; or
        custom: that of a library.

    Attributes:
        type_alias: the dtypes of each alias, sorted.
        type_constraint: the alternatives: for each tensor the index of an alias.

    Raises:
        ExportError: both `inherits` and `custom` are given, or none; or a combination has another
            number of dtypes than there are tensors.
    """

    def __init__(
        self,
        func_name: str,
        tensor_variable_names: list[str],
        allowed_types: set[tuple[str, ...]],
        inherits: str = "",
        custom: str = "",
    ) -> None:
        if bool(inherits) == bool(custom):
            raise ExportError(
                f"{func_name}: give one of inherits={inherits!r} and custom={custom!r}",
                code=Code.INVALID_ARGUMENT,
            )
        wrong = [one for one in allowed_types if len(one) != len(tensor_variable_names)]
        if wrong:
            raise ExportError(
                f"{func_name}: allowed_types has {wrong[0]} for the tensors "
                f"{tensor_variable_names}: each needs one dtype",
                code=Code.INVALID_ARGUMENT,
            )
        self.func_name, self.tensor_variable_names = func_name, tensor_variable_names
        self.inherits, self.custom = inherits, custom
        self.type_alias, self.type_constraint = type_aggregrate(allowed_types)

    def to_yaml(self) -> dict[str, Any]:
        """The entry as a dict: `func`, `namespace`, `inherits` or `custom`, `type_alias`,
        `type_constraint`."""
        source = {"inherits": self.inherits} if self.inherits else {"custom": self.custom}
        return {
            "func": self.func_name,
            "namespace": "edge",
            **source,
            "type_alias": {f"T{i}": list(types) for i, types in enumerate(self.type_alias)},
            "type_constraint": [
                {n: f"T{i}" for n, i in zip(self.tensor_variable_names, row, strict=True)}
                for row in self.type_constraint
            ],
        }


class EdgeYamlInfo:
    """The entries of a file.

    Attributes:
        all_op_yaml_info: the entries.
    """

    def __init__(self) -> None:
        self.all_op_yaml_info: list[EdgeOpYamlInfo] = []

    def append(self, op_yaml_info: EdgeOpYamlInfo) -> None:
        """Add an entry."""
        self.all_op_yaml_info.append(op_yaml_info)

    def to_yaml(self, yaml_stream: TextIO) -> list[str]:
        """Write the entries by name; returns the operators that could not be written: none."""
        for info in sorted(self.all_op_yaml_info, key=lambda one: one.func_name):
            entry = info.to_yaml()
            lines = [f"- func: {entry.pop('func')}"]
            aliases, rows = entry.pop("type_alias"), entry.pop("type_constraint")
            lines += [f"  {key}: {value}" for key, value in entry.items()]
            lines += ["  type_alias:"]
            lines += [f"    {alias}: [{', '.join(types)}]" for alias, types in aliases.items()]
            lines += ["  type_constraint:"]
            for row in rows:
                first, *others = (f"{name}: {alias}" for name, alias in row.items())
                lines += [f"  - {first}", *(f"    {other}" for other in others)]
            yaml_stream.write("\n".join(lines) + "\n\n")
        return []


def get_func_schema(op_name_may_with_overload: str) -> torch._C.FunctionSchema:
    """The schema of an operator.

    Args:
        op_name_may_with_overload: "aten::add.Tensor"; "aten::relu" is the default overload.

    Raises:
        ExportError: there is no such overload.
    """
    name, _, overload = op_name_may_with_overload.partition(".")
    schemas = torch._C._jit_get_schemas_for_operator(name)
    found = next((one for one in schemas if one.overload_name == overload), None)
    if found is None:
        raise ExportError(
            f"{name} has no overload {overload!r}; it has "
            f"{sorted(one.overload_name for one in schemas)}",
            code=Code.NOT_FOUND,
        )
    return found


def get_func_name_yaml(func_schema: torch._C.FunctionSchema) -> str:
    """The name of a schema with its overload, "aten::add.Tensor"; a default one has none."""
    return f"{func_schema.name}.{func_schema.overload_name}".rstrip(".")


def get_tensor_variable_names(
    func_schema: torch._C.FunctionSchema,
) -> tuple[list[str], list[str], list[str]]:
    """The names of a schema's tensors: those that must be given and the results, inputs that may
    be left out, and all in order."""
    names = TensorNames.of(func_schema)
    required, every = [*names.required, *names.results], [*names.inputs, *names.results]
    return required, list(names.optional), every


def is_essential_tensor_arg(arg: torch._C.Argument) -> bool:
    """Whether an argument or result is a tensor, or a list of tensors, that must be given."""
    return is_tensor(arg) and not is_optional_tensor_arg(arg)


def is_optional_tensor_arg(arg: torch._C.Argument) -> bool:
    """Whether an argument is a tensor that may be left out."""
    return str(arg.type) == "Optional[Tensor]"


def in_legal_edge_type(vals: Sequence[Any]) -> bool:
    """Whether those of the values that are tensors have dtypes that programs may have."""
    return all(one.dtype in NAMES for one in vals if isinstance(one, torch.Tensor))


def type_aggregrate(allow_types: set[tuple[str, ...]]) -> Aliases[str]:
    """Write combinations of dtypes as few alternatives of aliases.

    Args:
        allow_types: the names of dtypes that go together, one for each tensor.

    Returns:
        The dtypes of each alias; and the alternatives: for each tensor the index of an alias.
        Tensors with the same alias have the same dtype.
    """
    return aggregate(allow_types, key=str)


def try_all_dtypes_input_samples(op_name: str) -> set[tuple[str, ...]]:
    """The names of dtypes that go together: those for which eager computes the operator.

    Args:
        op_name: an operator of ATen with its overload, "add.Tensor", "cat.default".
    """
    op = get_callable(op_name)
    dtypes = dict.fromkeys(TensorNames.of(op._schema).inputs, _TRIED)
    found = combinations(op, dtypes) or ()
    known = (one for one in found if all(dtype in NAMES for dtype in one))
    return {tuple(NAMES[dtype] for dtype in one) for one in known}


def gen_op_yaml(op_name: str) -> EdgeOpYamlInfo | None:
    """The entry of an operator of ATen; None if no arguments are found that it takes."""
    schema = get_callable(op_name)._schema
    allowed = try_all_dtypes_input_samples(op_name)
    if not allowed:
        return None
    names = TensorNames.of(schema)
    full = get_func_name_yaml(schema)
    return EdgeOpYamlInfo(full, [*names.inputs, *names.results], allowed, inherits=full)


def gen_edge_yaml(op_names: Sequence[str], yaml_out_stream: TextIO) -> list[str]:
    """Write the entries of operators; returns those for which there is none."""
    made = {name: gen_op_yaml(name) for name in op_names}
    info = EdgeYamlInfo()
    for entry in made.values():
        if entry is not None:
            info.append(entry)
    info.to_yaml(yaml_out_stream)
    return [name for name, entry in made.items() if entry is None]


def get_sample_input(
    key: str, overload_name: str, edge_type: torch.dtype
) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Arguments for an operator, from the samples that PyTorch tests it with.

    Args:
        key: the operator's name there: "add"; "to" gives a sample for each dtype of programs.
        overload_name: "Scalar" chooses samples with numbers.
        edge_type: the dtype of the tensors.
    """
    from torch.testing._internal.common_methods_invocations import op_db

    info = next((one for one in op_db if key in (one.aten_name, one.name)), None)
    if info is None:
        raise ExportError(
            f"PyTorch tests no operator {key!r}: give a name of its op_db, such as 'add'",
            code=Code.INVALID_ARGUMENT,
        )
    for sample in info.sample_inputs(torch.device("cpu"), edge_type, requires_grad=False):
        args = [sample.input, *sample.args]
        if key == "to":
            yield from (([sample.input], {"dtype": dtype}) for dtype in NAMES)
            return
        if overload_name != "Scalar" or not any(isinstance(a, torch.Tensor) for a in args[1:]):
            yield args, dict(sample.kwargs)
