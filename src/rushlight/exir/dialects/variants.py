"""The variants of an operator: functional, out, and their schemas."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torchgen.model import FunctionSchema, SchemaKind
from torchgen.native_function_generation import (
    functional_to_out_signature,
    mutable_to_out_signature,
    self_to_out_signature,
)

from rushlight.errors import Code, ExportError
from rushlight.exir.operators import out_names
from rushlight.ir.operators import out_variant, overloads

_TO_OUT = {
    SchemaKind.functional: functional_to_out_signature,
    SchemaKind.inplace: self_to_out_signature,
    SchemaKind.mutable: mutable_to_out_signature,
}


def get_torch_op_overload(namespace: str, opname: str, overload: str | None) -> OpOverload:
    """An operator of torch; "" and None are its default overload."""
    packet = getattr(getattr(torch.ops, namespace), opname)
    return getattr(packet, overload or "default")  # type: ignore[no-any-return]


def get_callable(name: str) -> OpOverload:
    """An operator of ATen by its name and overload: "add.Tensor"."""
    base, _, overload = name.partition(".")
    return get_torch_op_overload("aten", base, overload)


def parse_qualified_opname(qualified_opname: str) -> tuple[str, str]:
    """("aten", "add") of "aten::add"; ExportError if there is no namespace."""
    namespace, _, name = qualified_opname.partition("::")
    if not name:
        raise ExportError(
            f"{qualified_opname!r} has no namespace: give one, as in 'aten::add'",
            code=Code.INVALID_ARGUMENT,
        )
    return namespace, name


def get_op_overload(qualified_opname: str, overload: str) -> OpOverload:
    """An operator by its qualified name, "aten::add", and its overload, "" for the default."""
    return get_torch_op_overload(*parse_qualified_opname(qualified_opname), overload)


def schema_of(op_overload: OpOverload) -> torch._C.FunctionSchema:
    """The schema of an operator."""
    return op_overload._schema


def to_variant(op: OpOverload, variant: SchemaKind) -> OpOverload:
    """The functional or the out variant of an operator; itself if it is that.

    Raises:
        ExportError: there is none, or another variant is asked for.
    """
    if variant not in (SchemaKind.functional, SchemaKind.out):
        raise ExportError(
            f"variant={variant}: it must be SchemaKind.functional or SchemaKind.out",
            code=Code.INVALID_ARGUMENT,
        )
    if variant is SchemaKind.out:
        found = op if out_names(op) else out_variant(op)
    else:
        found = _functional(op)
    if found is None:
        listed = "; ".join(str(o._schema) for o in overloads(op))
        raise ExportError(
            f"the {variant} variant of operator {op.name()} can't be found. Its overloads are: "
            f"{listed}",
            code=Code.OPERATOR_MISSING,
        )
    return found


def _functional(op: OpOverload) -> OpOverload | None:
    def inputs(one: OpOverload) -> list[tuple[str, str]]:
        return [(a.name, str(a.type)) for a in one._schema.arguments if not a.is_out]

    candidates = (op, *overloads(op))
    same = (o for o in candidates if not o._schema.is_mutable and inputs(o) == inputs(op))
    return next(same, None)


def output_to_aliased_input_map(schema: torch._C.FunctionSchema) -> dict[int, int]:
    """For each result that is an input which the operator writes: {result: input}, by position."""
    written: dict[str, int] = {}
    for index, argument in enumerate(schema.arguments):
        for name in _written(argument):
            written.setdefault(name, index)
    found = {}
    for index, result in enumerate(schema.returns):
        inputs = [written[name] for name in _written(result) if name in written]
        if inputs:
            found[index] = min(inputs)
    return found


def _written(argument: Any) -> set[str]:
    alias = argument.alias_info
    return set(alias.before_set) if alias is not None and alias.is_write else set()


def gen_out_variant_schema(func_op_schema: str) -> str:
    """The schema of the out variant that an operator of this schema has.

    Args:
        func_op_schema: "acme::foo(Tensor a) -> Tensor".
    """
    namespace, separator, rest = func_op_schema.partition("::")
    if "(" in namespace:  # the text has no namespace
        namespace, separator, rest = "", "", func_op_schema
    schema = FunctionSchema.parse(rest)
    made = _TO_OUT[schema.kind()](schema) if schema.kind() in _TO_OUT else schema
    return f"{namespace}{separator}{made}"
