"""Facts about torch's operators: their out variants, and which arguments those write to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch._C import DispatchKey
from torch._ops import OpOverload
from torch.library import Library

from rushlight.edge.operators import backend_operator
from rushlight.errors import Code, ExportError
from rushlight.ir.operators import out_variant, overloads

if TYPE_CHECKING:
    from torchgen.model import FunctionSchema

Pattern = TypeVar("Pattern", bound=Callable[..., Any])
_MEANINGS = (
    DispatchKey.CompositeExplicitAutograd,
    DispatchKey.CompositeImplicitAutograd,
    DispatchKey.Meta,
)


def get_schema_for_operators(ops: Iterable[str]) -> dict[str, str]:
    """The schemas of operators by their names, such as "torch.ops.aten.add.Tensor".

    Those that torch does not have in this process are left out.
    """
    found = {}
    for name in ops:
        value: Any = torch.ops
        try:
            for part in name.removeprefix("torch.ops.").split("."):
                value = getattr(value, part)
        except AttributeError:
            continue
        if isinstance(value, OpOverload):
            found[name] = str(value._schema)
    return found


def extract_out_arguments(
    schema: torch._C.FunctionSchema, keyword_args: Mapping[str, Any]
) -> tuple[str, Any] | list[tuple[str, Any]]:
    """The arguments that an out variant writes to, with their names; a pair if it is one."""
    found = [
        (argument.name, keyword_args[argument.name])
        for argument in schema.arguments
        if argument.is_out and argument.name in keyword_args
    ]
    return found[0] if len(found) == 1 else found


def unwrap_op_overload(target: Any) -> OpOverload:
    """The operator of torch that a target of a graph is, or stands for."""
    inner: Any = target if isinstance(target, OpOverload) else getattr(target, "_op", None)
    if isinstance(getattr(inner, "_op", None), OpOverload):
        inner = inner._op
    if not isinstance(inner, OpOverload):
        raise TypeError(
            f"{target!r} is a {type(target).__name__}, not an operator such as "
            f"torch.ops.aten.add.Tensor"
        )
    return inner


def _overload(qualified_opname: str, overload: str) -> OpOverload | None:
    namespace, _, name = qualified_opname.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    return getattr(packet, overload or "default", None)


def out_names(operator: OpOverload) -> tuple[str, ...]:
    """The arguments that an out variant writes to; () for another operator."""
    return tuple(a.name for a in operator._schema.arguments if a.is_out)


def get_out_args_from_schema(out_var_schema: FunctionSchema) -> tuple[str, ...]:
    """The arguments that an operator of an out variant's schema writes to.

    Args:
        out_var_schema: as torchgen parses it.
    """
    return tuple(argument.name for argument in out_var_schema.arguments.out)


def schema_to_opoverload(schema: FunctionSchema) -> OpOverload:
    """The operator of torch that a schema describes.

    Args:
        schema: as torchgen parses it, with the namespace in its name.

    Raises:
        ExportError: torch has no such operator in this process.
    """
    name, overload = str(schema.name.name), str(schema.name.overload_name)
    found = _overload(name, overload)
    if found is None:
        raise ExportError(
            f"torch has no operator {name} with the overload {overload or 'default'}: load its "
            f"library",
            code=Code.OPERATOR_MISSING,
        )
    return found


def is_out_variant(qualified_opname: str, overload: str) -> bool:
    """Whether an operator, "aten::topk" with its overload "values", is an out variant."""
    operator = _overload(qualified_opname, overload)
    return operator is not None and bool(out_names(operator))


def is_inplace_variant(qualified_opname: str, overload: str) -> bool:
    """Whether an operator changes its first argument, and is no out variant."""
    operator = _overload(qualified_opname, overload)
    if operator is None or out_names(operator) or not operator._schema.arguments:
        return False
    alias = operator._schema.arguments[0].alias_info
    return alias is not None and alias.is_write


def to_out_variant(op_overload: OpOverload) -> tuple[OpOverload, tuple[str, ...]]:
    """The out variant of an operator, and the arguments that it writes to.

    Raises:
        ExportError: it has none; names those with other schemas.
    """
    operator = unwrap_op_overload(op_overload)
    names = out_names(operator)
    if names:
        return operator, names
    found = out_variant(operator)
    if found is not None:
        return found, out_names(found)
    told = f"Missing out variant for functional op: {operator._schema}. Load its library"
    others = [o for o in overloads(operator) if out_names(o)]
    if others:
        told = (
            f"Found an out variant for operator name {operator.name()} but its schema mismatched "
            f"with functional op.\nfunctional: {operator._schema}\n"
            + "\n".join(f"out variant: {o._schema}" for o in others)
        )
    raise ExportError(told, code=Code.OPERATOR_MISSING)


def bind_pattern_to_op(library: Library, schema_or_name: str) -> Callable[[Pattern], Pattern]:
    """Makes a function the meaning of an operator of a backend.

    Args:
        library: of torch, in which the operator is or will be defined.
        schema_or_name: "add_relu(Tensor a, Tensor b) -> Tensor" defines it, "add_relu" names it.
    """

    def bind(function: Pattern) -> Pattern:
        text = schema_or_name.split("::")[-1]
        if "(" in text:
            library.define(text)
        full = text.partition("(")[0].strip()
        name, _, overload = full.partition(".")
        packet = getattr(getattr(torch.ops, library.ns), name)
        operator: OpOverload = getattr(packet, overload or "default")
        if not any(operator.has_kernel_for_dispatch_key(key) for key in _MEANINGS):
            library.impl(full, function, "CompositeImplicitAutograd")
        backend_operator(operator).equivalent_callable = function
        return function

    return bind
